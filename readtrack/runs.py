"""The record of flushes: how one begins, how much it has to look at, and what it leaves."""

from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from django.db.models import QuerySet

from readtrack import buckets, databases, resets
from readtrack.conf import conf
from readtrack.models import FlushRun
from readtrack.store import counters
from readtrack.store import runs as store
from readtrack.store.minutes import BUCKET_LIFE
from readtrack.store.runs import Memory

# Buckets are named by the web servers' clocks. Read again what those few minutes behind hold, and what those a
# little ahead hold already; a clock further off is put right by the full flush.
OVERLAP = timedelta(minutes=3)
AHEAD = timedelta(minutes=2)
KNOWN = timedelta(minutes=BUCKET_LIFE - 5)  # how far back buckets are sure to live, with the overlap

Kind = FlushRun.Kind


class Scope(NamedTuple):
    """What a run has to look at: those minutes' buckets, and whether a restored Redis is to be put right."""

    minutes: list[datetime]
    is_restored: bool


def begin(run: FlushRun, *, only_changed: bool) -> Scope:
    """Enters the run in Redis and SQL; gives what it has to look at.

    A Redis that does not remember the newest flush that SQL knows of was restored from before it: it has to
    be looked at as a whole. Redis remembers first, so a kill between the two never makes a sound Redis look
    restored.
    """
    memory = _memory(run)
    covered = _covered(run.covers)
    is_full = not only_changed or memory.is_full_owed or covered is None
    run.kind = (Kind.ARCHIVE if _is_archive_due(run.covers) else Kind.FULL) if is_full else Kind.CHANGED
    run.save()
    return Scope(_minutes(run.covers, covered), memory.is_full_owed)


def _memory(run: FlushRun) -> Memory:
    """What Redis remembers of flushes, this one being the newest from now on."""
    while True:
        newest = _runs().order_by("-redis_time").values_list("redis_time", flat=True).first() or 0
        memory = store.memory()
        resets.repeat(since=memory.last)
        if memory.last < newest:
            resets.forget(before=newest)
            owed = max(counters.clock(), newest + 1)
            store.owe(owed)
            memory = memory._replace(owed=owed)
        run.covers = counters.clock()
        run.redis_time = max(run.covers, newest + 1)  # the order of flushes, whatever becomes of the clock
        if store.remember(run.redis_time, known=memory.last):
            return memory


def end(run: FlushRun) -> None:
    """Enters the end of the run: a snapshot from in the midst of it is an old one, too."""
    time = max(counters.clock(), run.redis_time + 1)
    if store.remember(time, known=run.redis_time):
        run.redis_time = time


def _covered(clock: int) -> int | None:
    """Until when everything is stored (µs); None where the buckets since may be gone by now."""
    covered = _ended_well().order_by("-pk").values_list("covers", flat=True).first()
    # A time to come was told by a clock that has been set back since: it covers nothing.
    if covered is None or covered > clock or _time(clock) - _time(covered) > KNOWN:
        return None
    return covered


def _minutes(clock: int, covered: int | None) -> list[datetime]:
    """The minutes since then, with some overlap; all that there may be a bucket of where that is not known."""
    now = _time(clock)
    since = now - KNOWN if covered is None else _time(covered)
    return buckets.minutes((now + AHEAD - since + OVERLAP) // buckets.MINUTE + 2, until=now + AHEAD)


def _is_archive_due(clock: int) -> bool:
    if not conf.ARCHIVE_EVERY:
        return False
    past = _ended_well().order_by("-pk").values_list("covers", flat=True)
    # A new site has all of its first period before it is archived.
    last = past.filter(kind=Kind.ARCHIVE).first() or past.last() or clock
    return not 0 <= clock - last < conf.ARCHIVE_EVERY * 1_000_000


def prune(run: FlushRun) -> None:
    """Forgets the records of old flushes, all but the last of each kind that ended well."""
    kept = [_ended_well().filter(kind=kind).order_by("-pk").values_list("pk", flat=True).first() or 0 for kind in Kind]
    _runs().filter(pk__lte=run.pk - conf.FLUSH_RUNS).exclude(pk__in=kept).delete()


def last_good() -> FlushRun | None:
    """The newest flush that ended well."""
    return _ended_well().first()


def time(run: FlushRun) -> datetime:
    """When the run began, by Redis's clock."""
    return _time(run.covers)


def hour(run: FlushRun) -> int:
    """The hour since 1970 that the run's history is kept under."""
    return buckets.hour_number(time(run))


def _time(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1_000_000, timezone.utc)


def _ended_well() -> "QuerySet[FlushRun]":
    return _runs().filter(ended__isnull=False, error="")


def _runs() -> "QuerySet[FlushRun]":
    return FlushRun.objects.using(databases.of(FlushRun).alias)
