"""What record.lua is told of the categories that a hit reads."""

from time import perf_counter
from typing import cast

from readtrack import keys, readers
from readtrack.conf import conf
from readtrack.hits import Hit
from readtrack.readers import Reader
from readtrack.store import clock

NOW = 2**53  # later than any time in microseconds, and exact in Lua


def names(hit: Hit) -> list[str]:
    """The keys, in the order of record.lua."""
    family = readers.family()
    found = [name for token in hit.reads for name in (keys.state(token, family), keys.news(token))]
    return [*found, keys.readers()] if isinstance(hit.reader, str) else found


def arguments(hit: Hit) -> list[str | int]:
    """The arguments, in the order of record.lua. Raises redis.RedisError."""
    reader = cast(Reader, hit.reader)
    found: list[str | int] = [reader, *_began(hit)]
    if conf.READ_STATE != "bitmap" or isinstance(reader, str):
        found += (conf.READ_STATE, readers.highest())
    return found


def _began(hit: Hit) -> tuple[int, int]:
    """How long ago the page began, and when that was by Redis's clock, both in microseconds."""
    if hit.began is None:
        return 0, NOW if hit.as_of is None else hit.as_of
    stale = conf.STALE_FOR * 1_000_000
    since = clock.at(hit.began) - stale
    return int((perf_counter() - hit.began) * 1_000_000) + stale, since
