"""Redis's own time, as this process works it out from the last answer: no round trip of its own."""

from math import ceil
from time import perf_counter

from readtrack.conf import conf
from readtrack.store.connection import connect

# By cache alias: what to add to our clock, which never steps, to have Redis's.
_offsets: dict[str, int] = {}
# When that was learnt, by our clock.
_learnt: dict[str, float] = {}

FRESH = 1.0  # seconds in which the two clocks drift apart by less than DRIFT, a thousandth: twice what NTP slews
DRIFT = 1_000  # microseconds


def at(began: float) -> int:
    """Redis's time (µs) at that reading of `time.perf_counter`, too early by the way of an answer at most.

    Or off by as much as the two clocks have drifted apart since that answer. Asks Redis the first time in a
    process. Raises redis.RedisError.
    """
    if conf.CACHE not in _offsets:
        ask()
    return int(began * 1_000_000) + _offsets[conf.CACHE]


def recent() -> int:
    """Redis's time (µs), too early by a millisecond and never too late. Asks Redis where that is not known.

    Raises redis.RedisError.
    """
    if perf_counter() - _learnt.get(conf.CACHE, -FRESH) >= FRESH:
        ask()
    return at(perf_counter()) - DRIFT


def ask() -> None:
    """Learns Redis's time from itself. Raises redis.RedisError."""
    seconds, microseconds = connect().time()
    learn(seconds * 1_000_000 + microseconds)


def learn(now: int) -> None:
    """Takes up what an answer, however long it was on its way, says of Redis's time (µs)."""
    _learnt[conf.CACHE] = perf_counter()
    _offsets[conf.CACHE] = now - ceil(_learnt[conf.CACHE] * 1_000_000)
