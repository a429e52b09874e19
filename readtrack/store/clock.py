"""Redis's clock, computed from the last answer, without a round trip."""

from collections.abc import Sequence
from datetime import datetime, timezone
from math import ceil
from time import perf_counter, time
from typing import Any, NamedTuple

from readtrack.conf import conf
from readtrack.store import keys, scripts
from readtrack.store.connection import connect, server_time
from readtrack.store.scripts import Call
from readtrack.store.servers import SeveralServers

EVERY = 60.0  # seconds after which a process asks for Redis's time again
# Seconds in which the two clocks drift apart by less than DRIFT: NTP changes clocks half as fast.
FRESH = 1.0
DRIFT = 1_000  # µs
STEP = 100_000  # µs; of an answer that is later than others by that, the clock was set

# By cache alias: Redis's clock less `perf_counter` (µs).
_offsets: dict[str, int] = {}
# By cache alias: the `perf_counter` when the offset was learnt.
_learnt: dict[str, float] = {}

skew = 0.0  # Redis's clock less this machine's (seconds), which may be minutes off
due = 0.0  # the `perf_counter` from which to ask again; 0 if Redis was never asked


class _Second(NamedTuple):
    """One second of Redis's clock."""

    number: int  # since 1970
    start: datetime  # UTC


# The last one that `now` returned. One value, because another thread may replace it at any time.
_last_second = _Second(0, datetime.fromtimestamp(0, timezone.utc))


def now() -> datetime:
    """Returns the present second of Redis's clock, without a round trip. It is the time of a hit.

    This machine's clock would not do, because the flush looks for buckets by Redis's clock.
    """
    global _last_second
    number = int(time() + skew)
    second = _last_second
    if second.number != number:
        # Only once a second, because a new object for each hit takes 30 times as long.
        second = _Second(number, datetime.fromtimestamp(number, timezone.utc))
        _last_second = second
    return second.start


def at(began: float) -> int:
    """Returns Redis's time (µs) when `time.perf_counter` was `began`.

    It is too early by at most the time that an answer takes, and off by what either clock was set
    since the last answer. Asks Redis once in a process; with partitions once in EVERY seconds.
    Raises redis.RedisError.
    """
    if keys.test_prefix():
        # A site's tests may freeze `perf_counter`, so that what was learnt before is of no use.
        age = perf_counter() - began
        return server_time() - int(age * 1_000_000)
    # Without partitions, each call that marks something read or publishes learns the time, too.
    is_outdated = keys.is_divided() and perf_counter() - _learnt.get(conf.CACHE, 0.0) >= EVERY
    if is_outdated or conf.CACHE not in _offsets:
        ask()
    return int(began * 1_000_000) + _offsets[conf.CACHE]


def recent() -> int:
    """Returns Redis's time (µs), a millisecond too early at most, and never too late.

    Raises redis.RedisError.
    """
    if perf_counter() - _learnt.get(conf.CACHE, -FRESH) >= FRESH:
        ask()
    return at(perf_counter()) - DRIFT


def ask() -> None:
    """Learns Redis's time, in one round trip. Raises redis.RedisError."""
    if isinstance(connect(), SeveralServers):
        learn(server_time())  # the earliest of its servers
    else:
        learn(scripts.run(Call("TIME", (), (), _microseconds)))


def question() -> Call[None]:
    """Returns the call that learns Redis's time in the round trip of other calls.

    Its answer may be delayed, because the other calls take time. If a server of a cluster is
    silent, nothing is learnt, and that is no error.
    """

    def decode(answer: Sequence[Any]) -> None:
        learn(_microseconds(answer), is_delayed=True)

    return Call("TIME", (), (), decode, absent=None)


def _microseconds(answer: Sequence[Any]) -> int:
    """Returns the time in an answer to TIME (µs)."""
    seconds, microseconds = answer
    return int(seconds) * 1_000_000 + int(microseconds)


def learn(redis_time: int, *, is_delayed: bool = False) -> None:
    """Learns Redis's time (µs) from an answer that arrived just now: the skew and the offset.

    The offset is too early by the time that the answer has taken. So of the answers of one second
    the one is kept that took the least time. An answer that is known to be delayed only sets the
    skew.
    """
    global skew, due
    skew = 0.0
    if not keys.test_prefix():  # in a site's tests, which may freeze the time, hits have that time
        skew = redis_time / 1_000_000 - time()
    due = perf_counter() + EVERY
    if is_delayed:
        return
    arrived = perf_counter()
    offset = redis_time - ceil(arrived * 1_000_000)
    is_fresh = arrived - _learnt.get(conf.CACHE, -FRESH) < FRESH
    # A lower offset is that of an answer that took more time, unless the clock was set.
    if is_fresh and 0 <= _offsets.get(conf.CACHE, offset - 1) - offset < STEP:
        return
    _learnt[conf.CACHE] = arrived
    _offsets[conf.CACHE] = offset


def learn_from_server(redis_time: int) -> None:
    """Learns the time (µs) that a script has answered with, unless Redis is several servers, whose
    clocks differ.
    """
    if not isinstance(connect(), SeveralServers):
        learn(redis_time)
