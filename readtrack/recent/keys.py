"""The key of a reader's list."""

from readtrack.recent.options import recent_options
from readtrack.store.keys import DAY, Key


def _is_used() -> bool:
    return bool(recent_options().labels)


# `tracker.erase` removes it with the reader, because the reader's id is in its name.
recent = Key(
    "recent:{visitor}",
    "sorted set",
    30 * DAY,
    "what a reader opened lately, by when (µs); `RECENT` says for how many days",
    united="highest",
    holds="subjects",
    is_used=_is_used,
)
