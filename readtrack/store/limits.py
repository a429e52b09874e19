"""The numbers of the settings by which views count.

They are in the source of the scripts that count views, so that no hit sends them.
"""

from typing import NamedTuple

from readtrack import parts
from readtrack.conf import cached_setting, conf
from readtrack.store import keys

NO_LIMIT = keys.ROBOT - 1  # hits


class RateLimit(NamedTuple):
    """How many hits of one visitor count, and in how many seconds from the first of them."""

    hits: int
    seconds: int


@cached_setting()
def rate_limit() -> RateLimit:
    """Returns the setting RATE. In the setting, 0 hits mean no limit, and 0 seconds mean one."""
    hits, seconds = conf.RATE
    return RateLimit(hits or NO_LIMIT, seconds or 1)


@cached_setting("INSTALLED_APPS", maxsize=1)
def view_weight() -> int:
    """Returns what a view adds to what is trending: 0 where rankings go by views that were seen."""
    return int(not any(part.trends_by_seen() for part in parts.installed()))


def lua() -> str:
    """Returns the Lua that gives the numbers their names, in the place of `-- settings`."""
    texts = {  # numbers that are arguments of commands, which Lua passes on as texts
        "window": conf.WINDOW or 1,  # without a window, a hit that is sent again would count twice
        "bucket_life": keys.trending_bucket.ttl,
        "minute_life": keys.minute_visitors.ttl,
        "rate_window": rate_limit().seconds,
        "view_weight": view_weight(),
    }
    numbers = {"most_hits": rate_limit().hits, "robot": keys.ROBOT}
    lines = [f"local {name} = '{number:d}'" for name, number in texts.items()]
    lines += [f"local {name} = {number:d}" for name, number in numbers.items()]
    return "\n".join(lines)
