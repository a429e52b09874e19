"""The record of flushes: how one begins, how much it has to look at, and what it leaves."""

from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from readtrack import buckets
from readtrack.conf import conf
from readtrack.flush import resets
from readtrack.models import FlushRun
from readtrack.sql.runs import Kind, _runs, ended_well
from readtrack.store import counters, flushes
from readtrack.store.counters import BUCKET_LIFE
from readtrack.store.flushes import FlushMemory

# Buckets are named by the web servers' clocks. Read again what those few minutes behind hold, and what those a
# little ahead hold already; a clock further off is put right by the full flush.
OVERLAP = timedelta(minutes=3)
AHEAD = timedelta(minutes=2)
KNOWN = timedelta(minutes=BUCKET_LIFE - 5)  # how far back buckets are sure to live, with the overlap


class Scope(NamedTuple):
    """What a run has to look at: those minutes' buckets, and whether a restored Redis is to be put right."""

    minutes: list[datetime]
    is_restored: bool


def begin_run(run: FlushRun, *, only_changed: bool) -> Scope:
    """Enters the run in Redis and SQL; gives what it has to look at.

    A Redis that does not remember the newest flush that SQL knows of was restored from before it: it has to
    be looked at as a whole. Redis remembers first, so a kill between the two never makes a sound Redis look
    restored.
    """
    memory = _memory(run)
    covered = _covered(run.flushed_until)
    is_full = not only_changed or memory.is_full_requested or covered is None
    run.kind = (Kind.ARCHIVE if _is_archive_due(run.flushed_until) else Kind.FULL) if is_full else Kind.CHANGED
    run.save()
    return Scope(_minutes(run.flushed_until, covered), memory.is_full_requested)


def _memory(run: FlushRun) -> FlushMemory:
    """What Redis remembers of flushes, this one being the newest from now on."""
    while True:
        newest = _runs().order_by("-redis_time").values_list("redis_time", flat=True).first() or 0
        memory = flushes.memory()
        resets.repeat(since=memory.last)
        if memory.last < newest:
            resets.delete_marks(before=newest)
            requested = max(counters.clock(), newest + 1)
            flushes.request_full_flush(requested)
            memory = memory._replace(requested=requested)
        run.flushed_until = counters.clock()
        run.redis_time = max(run.flushed_until, newest + 1)  # the order of flushes, whatever becomes of the clock
        if flushes.remember(run.redis_time, known=memory.last):
            return memory


def end_run(run: FlushRun) -> None:
    """Enters the end of the run: a snapshot from in the midst of it is an old one, too."""
    time = max(counters.clock(), run.redis_time + 1)
    if flushes.remember(time, known=run.redis_time):
        run.redis_time = time


def _covered(clock: int) -> int | None:
    """Until when everything is stored (µs); None where the buckets since may be gone by now."""
    covered = ended_well().order_by("-pk").values_list("flushed_until", flat=True).first()
    # A time to come was told by a clock that has been set back since: it proves nothing.
    if covered is None or covered > clock or _time(clock) - _time(covered) > KNOWN:
        return None
    return covered


def _minutes(clock: int, covered: int | None) -> list[datetime]:
    """The minutes since then, with some overlap; all that there may be a bucket of where that is not known."""
    now = _time(clock)
    since = now - KNOWN if covered is None else _time(covered)
    return buckets.minute_starts((now + AHEAD - since + OVERLAP) // buckets.MINUTE + 2, until=now + AHEAD)


def _is_archive_due(clock: int) -> bool:
    if not conf.ARCHIVE_EVERY:
        return False
    past = ended_well().order_by("-pk").values_list("flushed_until", flat=True)
    # A new site has all of its first period before it is archived.
    last = past.filter(kind=Kind.ARCHIVE).first() or past.last() or clock
    return not 0 <= clock - last < conf.ARCHIVE_EVERY * 1_000_000


def run_time(run: FlushRun) -> datetime:
    """When the run began, by Redis's clock."""
    return _time(run.flushed_until)


def run_hour(run: FlushRun) -> int:
    """The hour since 1970 that the run's history is kept under."""
    return buckets.hour_index(run_time(run))


def _time(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1_000_000, timezone.utc)
