"""SQL's side of flushes: the record of each, the newest epoch of Redis, and resets.

Each settling starts a new epoch in Redis, which keeps the numbers of the last two. SQL keeps the newest number that it
was told, and is told before it stores a total that was settled. So a Redis was restored from a snapshot if neither
of its two epochs is the one that SQL knows, and its marks may be of views that SQL stores already.
"""

from datetime import timedelta

from django.db.models import F, Max, QuerySet

from readtrack.conf import conf
from readtrack.models import FlushRun, KnownEpoch, Reset
from readtrack.sql import databases
from readtrack.store.counters import Epoch

ONLY = 1  # primary key of the one row of KnownEpoch


class SqlEpoch:
    """The newest epoch that SQL knows, as far as one flush has seen.

    SQL is asked again only if Redis is in another epoch, because SQL's number only moves forward.
    """

    def __init__(self) -> None:
        self.number = known_epoch()

    def advance(self, epoch: Epoch) -> bool:
        """Tells SQL of an epoch that follows the newest it knows. Returns False if Redis has to be settled first."""
        if epoch.current != self.number and known_epoch() != epoch.current and not _move(epoch):
            return False
        self.number = epoch.current
        return True


def known_epoch() -> int:
    """Returns the newest epoch that SQL knows; 0 for none."""
    epoch: int = databases.rows(KnownEpoch).get_or_create(pk=ONLY)[0].epoch
    return epoch


def lock_epoch() -> None:
    """Locks the epoch row until the transaction ends; other writers of history wait."""
    databases.rows(KnownEpoch).filter(pk=ONLY).update(epoch=F("epoch"))


def _move(epoch: Epoch) -> bool:
    known = databases.rows(KnownEpoch).filter(pk=ONLY, epoch=epoch.previous)
    return bool(known.update(epoch=epoch.current))


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
