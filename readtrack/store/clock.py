"""Redis's clock, computed from the last answer, without a round trip."""

from collections.abc import Sequence
from datetime import datetime, timezone
from math import ceil
from time import perf_counter, time
from typing import Any

from readtrack.conf import conf
from readtrack.store import scripts
from readtrack.store.cluster import Cluster
from readtrack.store.connection import connect, server_time
from readtrack.store.scripts import Call

EVERY = 60.0  # seconds after which a process asks for Redis's time again
FRESH = (
    1.0  # seconds in which the two clocks drift apart by less than DRIFT; NTP slews half as fast
)
DRIFT = 1_000  # µs

# By cache alias: the difference between Redis's clock and `perf_counter` (µs), and when it was
# learnt.
_offsets: dict[str, int] = {}
_learnt: dict[str, float] = {}

skew = 0.0  # Redis's clock less this machine's (seconds), which may be minutes off
due = 0.0  # the `perf_counter` from which to ask again; 0 for never asked
_second = 0, datetime.fromtimestamp(0, timezone.utc)  # the last that `now` returned


def now() -> datetime:
    """Returns the running second of Redis's clock, without a round trip. The time of a hit.

    Not of this machine's clock, because the flush looks into buckets by Redis's.
    """
    global _second
    second = int(time() + skew)
    if second != _second[0]:  # a new object for each hit takes 30 times as long
        _second = second, datetime.fromtimestamp(second, timezone.utc)
    return _second[1]


def at(began: float) -> int:
    """Returns Redis's time (µs) at a reading of `time.perf_counter`.

    It is too early by at most the time that an answer takes, and off by what either clock was set
    since the last answer. Asks Redis once in a process, and with partitions, whose marks teach no
    clock, once in EVERY seconds. Raises redis.RedisError.
    """
    if conf.CACHE not in _offsets or (
        conf.PARTITIONS > 1 and perf_counter() - _learnt[conf.CACHE] >= EVERY
    ):
        ask()
    return int(began * 1_000_000) + _offsets[conf.CACHE]


def recent() -> int:
    """Returns Redis's time (µs), up to a millisecond too early and not too late. Raises
    redis.RedisError.
    """
    if perf_counter() - _learnt.get(conf.CACHE, -FRESH) >= FRESH:
        ask()
    return at(perf_counter()) - DRIFT


def ask() -> None:
    """Learns Redis's time, in one round trip. Raises redis.RedisError."""
    if isinstance(connect(), Cluster):
        learn(server_time())  # the earliest of its servers
    else:
        learn(scripts.run(Call("TIME", (), (), _microseconds)))


def question() -> Call[None]:
    """Compares the clocks by the answer to a call that goes along with others, and so may come
    late.
    """
    return Call("TIME", (), (), lambda answer: learn(_microseconds(answer), is_late=True), None)


def _microseconds(answer: Sequence[Any]) -> int:
    seconds, microseconds = answer
    return int(seconds) * 1_000_000 + int(microseconds)


def learn(server: int, *, is_late: bool = False) -> None:
    """Takes Redis's time (µs) from an answer that arrived just now; or `is_late`, and then only
    tells the skew.
    """
    global skew, due
    skew = server / 1_000_000 - time()
    due = perf_counter() + EVERY
    if not is_late:
        _learnt[conf.CACHE] = perf_counter()
        _offsets[conf.CACHE] = server - ceil(_learnt[conf.CACHE] * 1_000_000)
