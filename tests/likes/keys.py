"""The keys of the part."""

from readtrack.store.keys import DAY, HOUR, Key

likes = Key("likes:total:{subject}", "string", 0, "likes", kept_with="counts", united="add")
likes_of_day = Key(
    "likes:day:{date}:{subject}", "string", 2 * DAY, "of a day", kept_with="counts", united="add"
)
likers = Key(
    "likes:by:{subject}",
    "set",
    0,
    "who likes it",
    kept_with="counts",
    united="SUNIONSTORE",
    holds="visitors",
)
reasons = Key(
    "likes:reason:{subject}",
    "hash",
    0,
    "likes by reason",
    kept_with="counts",
    united="add",
    settles=True,
)
seen = Key("likes:seen:{subject}", "string", 0, "likes seen", kept_with="read state")
unlike = Key("likes:undo:{visitor}:{subject}", "string", HOUR, "1: may be undone")
newest = Key(
    "likes:newest:{hour}",
    "sorted set",
    2 * HOUR,
    "subjects, by when they were liked (µs)",
    united="highest",
    holds="subjects",
)
switch = Key("likes:switch", "string", 0, "1: on", divided="copied")

ROWS = (likes, likes_of_day, likers, reasons, seen, unlike, newest, switch)
