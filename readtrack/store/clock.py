"""Redis's clock, computed from the last answer, without a round trip."""

from math import ceil
from time import perf_counter

from readtrack.conf import conf
from readtrack.store.connection import server_time

FRESH = 1.0  # seconds in which the two clocks drift apart by less than DRIFT; NTP slews half as fast
DRIFT = 1_000  # µs

# By cache alias: the difference between Redis's clock and `perf_counter` (µs), and when it was learnt.
_offsets: dict[str, int] = {}
_learnt: dict[str, float] = {}


def at(began: float) -> int:
    """Returns Redis's time (µs) at a reading of `time.perf_counter`.

    It is too early by at most the time that an answer takes, and off by the drift of the two clocks since the last
    answer. Asks Redis once in a process. Raises redis.RedisError.
    """
    if conf.CACHE not in _offsets:
        learn(server_time())
    return int(began * 1_000_000) + _offsets[conf.CACHE]


def recent() -> int:
    """Returns Redis's time (µs), up to a millisecond too early and not too late. Raises redis.RedisError."""
    if perf_counter() - _learnt.get(conf.CACHE, -FRESH) >= FRESH:
        learn(server_time())
    return at(perf_counter()) - DRIFT


def learn(now: int) -> None:
    """Takes Redis's time (µs) from an answer that arrived just now."""
    _learnt[conf.CACHE] = perf_counter()
    _offsets[conf.CACHE] = now - ceil(_learnt[conf.CACHE] * 1_000_000)
