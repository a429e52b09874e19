"""Redis's own time, as this process works it out from the last answer: no round trip of its own."""

from math import ceil
from time import perf_counter

from readtrack.conf import conf
from readtrack.store.connection import connect

# By cache alias: what to add to our clock, which never steps, to have Redis's.
_offsets: dict[str, int] = {}


def at(began: float) -> int:
    """Redis's time (µs) at that reading of `time.perf_counter`: exact, or too early by the way of an answer.

    Asks Redis the first time in a process. Raises redis.RedisError.
    """
    if conf.CACHE not in _offsets:
        seconds, microseconds = connect().time()
        learn(seconds * 1_000_000 + microseconds)
    return int(began * 1_000_000) + _offsets[conf.CACHE]


def learn(now: int) -> None:
    """Takes up what an answer, however long it was on its way, says of Redis's time (µs)."""
    _offsets[conf.CACHE] = now - ceil(perf_counter() * 1_000_000)
