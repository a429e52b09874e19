"""The keys of the part in Redis."""

from readtrack.store.keys import HOUR, Key


def _never() -> bool:
    return False


# One line for each key.
# fmt: off
reading = Key("reading:{subject}", "hash", 0, "views that were seen, engaged views, reads, and views by seconds of engagement reached", kept_with="counts", united="add", settles=True, is_used=_never)
reading_pass = Key("reading:pass:{visitor}:{subject}", "string", "WINDOW", "seconds' bin that a visitor reached", is_used=_never)
stage_pass = Key("reading:stage:{visitor}:{subject}", "string", "WINDOW", "the last stage that a visitor reached after engagement, such as reads", is_used=_never)
robots = Key("robots", "string", HOUR, "new marks of the honeypot; after 5,000 an hour there are no more")
honeypot_visits = Key("robots:address:{visitor}", "string", HOUR, "visits of an address to the honeypot, by a hash of the day", is_used=_never)
# fmt: on

ROWS = (reading, reading_pass, stage_pass, robots, honeypot_visits)
