"""SQL's side of flushes: the record of each, the newest epoch of Redis, and resets.

A Redis was restored from a snapshot if neither of its two epochs is the one that SQL knows. A Redis that lost
everything begins a list of its own, which SQL knows nothing of: none of its marks can be in SQL.
"""

from datetime import timedelta

from django.db.models import F, Max, QuerySet

from readtrack.conf import conf
from readtrack.models import FlushRun, KnownEpoch, Reset
from readtrack.sql import databases
from readtrack.store.counters import Epoch

LOCK = 0  # primary key of the row of KnownEpoch that is no list's


class SqlEpoch:
    """The newest epoch that SQL knows, as far as one flush has seen.

    SQL is asked again only if Redis is in another epoch, because SQL's number only moves forward.
    """

    def __init__(self) -> None:
        self.name = -1

    def known(self, origin: int) -> Epoch | None:
        """Returns what SQL knows of the list with that origin; None for nothing."""
        if (found := known_epoch(origin)) is not None:
            self.name = found.current
        return found

    def advance(self, epoch: Epoch) -> bool:
        """Tells SQL of an epoch that follows the newest it knows. Returns False if Redis has to be settled first."""
        if epoch.current != self.name and not _tell(epoch):
            return False
        self.name = epoch.current
        return True


def known_epoch(origin: int) -> Epoch | None:
    """Returns what SQL knows of the list with that origin; None for nothing."""
    rows = databases.rows(KnownEpoch)
    if origin:
        found = rows.filter(origin=origin).values_list("epoch", "until").first()
        return Epoch(origin, found[0], until=found[1]) if found else None
    # The list lost its epoch. What it holds may be as old as anything that was settled.
    until = rows.aggregate(until=Max("until"))["until"]
    return Epoch(current=-1, until=until) if until else None


def is_sound(epoch: Epoch) -> bool:
    """Returns False for the epoch of a Redis that went back: SQL may hold what it has on its list."""
    known = known_epoch(epoch.origin)
    return known is None or known.current in (epoch.current, epoch.previous)


def lock_epoch() -> None:
    """Locks a row until the transaction ends; other writers of history wait."""
    lock = databases.rows(KnownEpoch).filter(origin=LOCK)
    if not lock.update(epoch=F("epoch")):
        databases.rows(KnownEpoch).get_or_create(origin=LOCK)
        lock.update(epoch=F("epoch"))


def _tell(epoch: Epoch) -> bool:
    known = databases.rows(KnownEpoch)
    if not epoch.current:  # nothing was settled in it yet
        return bool(epoch.origin) and not known.filter(origin=epoch.origin).exists()
    values = {"epoch": epoch.current, "until": epoch.until}
    row, is_new = known.get_or_create(origin=epoch.origin, defaults=values)
    if is_new or row.epoch == epoch.current:
        return True
    return bool(known.filter(origin=epoch.origin, epoch=epoch.previous).update(**values))


def last_good() -> FlushRun | None:
    """Returns the newest flush that ended well."""
    return ended_well().first()


def ended_well() -> "QuerySet[FlushRun]":
    """Returns the flushes that ended without an error, newest first."""
    return databases.rows(FlushRun).filter(ended__isnull=False, error="")


def late_after() -> timedelta:
    """Returns the age after which a flush is late: three intervals, because one tick may be dropped."""
    return timedelta(seconds=3 * conf.FLUSH_INTERVAL)


def prune(run: FlushRun) -> None:
    """Deletes the records of old flushes (FLUSH_RUNS), but for the last of each kind that ended well."""
    kept = ended_well().order_by().values("kind").annotate(last=Max("pk")).values_list("last", flat=True)
    old = databases.rows(FlushRun).filter(pk__lte=run.pk - conf.FLUSH_RUNS)
    old.exclude(pk__in=list(kept)).delete()


def resets(*, since: int) -> dict[str, int]:
    """Returns the subjects that were reset after that time (µs), and when."""
    rows = databases.rows(Reset).filter(redis_time__gt=since)
    return dict(rows.values_list("full_subject", "redis_time"))
