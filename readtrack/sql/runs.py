"""The records of flushes."""

from datetime import timedelta
from typing import Any

from django.db.models import Max, QuerySet

from readtrack.conf import conf
from readtrack.models import FlushRun
from readtrack.sql import databases
from readtrack.sql.epochs import SqlEpoch
from readtrack.store import keys


def last_good(*, is_full: bool = False) -> FlushRun | None:
    """Returns the last flush that ended without an error; with `is_full` the last one of those that
    store everything.

    If shares of the partitions are flushed, it is the last good flush of the share whose last good
    flush is the oldest. Returns None if a partition was never flushed.
    """
    good_runs = ended_well()
    if is_full:
        good_runs = good_runs.exclude(kind=FlushRun.Kind.CHANGED)
    last_of_share = good_runs.order_by().values("share").annotate(last=Max("pk")).values("last")
    last_runs: dict[str, FlushRun] = {}  # by the tag of a partition
    for run in ended_well(pk__in=last_of_share):  # newest first
        for tag in SqlEpoch(run.share).tags:
            last_runs.setdefault(tag, run)
    if len(last_runs) < len(keys.tags()):
        return None
    return min(last_runs.values(), key=lambda run: run.started)


def ended_well(**filters: Any) -> "QuerySet[FlushRun]":
    """Returns the flushes that ended without an error, newest first."""
    return databases.rows(FlushRun).filter(ended__isnull=False, error="", **filters)


def newest_ended() -> FlushRun | None:
    """Returns the newest flush that has ended, well or with an error; None if there is none."""
    return databases.rows(FlushRun).filter(ended__isnull=False).first()


def newest_faults() -> list[str]:
    """Returns the lines about what the newest flushes could not store: of each share the last full
    flush, and the last one after it.
    """
    newest: dict[tuple[str, bool], int] = {}
    numbers = ended_well().order_by().values_list("share", "kind").annotate(newest=Max("pk"))
    for share, kind, pk in numbers:
        key = (share, kind == FlushRun.Kind.CHANGED)
        newest[key] = max(pk, newest.get(key, 0))
    texts = databases.rows(FlushRun).filter(pk__in=newest.values()).exclude(faults="")
    lines: list[str] = []
    for run in texts:
        is_changed = run.kind == FlushRun.Kind.CHANGED
        if not is_changed or run.pk > newest.get((run.share, False), 0):
            lines += run.faults.splitlines()
    return list(dict.fromkeys(lines))


def late_after() -> timedelta:
    """Returns the age of the last flush from which on the next one is late.

    That is three intervals, because a single tick of the scheduler may be dropped.
    """
    return timedelta(seconds=3 * conf.FLUSH_INTERVAL)
