"""The records of flushes."""

from datetime import date, timedelta
from typing import Any, NamedTuple

from django.db.models import Max, QuerySet

from readtrack.conf import conf
from readtrack.models import FlushRun, Note
from readtrack.sql import databases
from readtrack.sql.epochs import SqlEpoch
from readtrack.store import keys


class FlushAndNotes(NamedTuple):
    """The last flush, and the notes of a range of days."""

    run: FlushRun | None  # the last one that ended
    notes: list[tuple[date, str]]  # by day
    full_until: int  # until when the last good full flush has read (µs), 0 for none


def flush_and_notes(since: date, until: date) -> FlushAndNotes:
    """Returns the last flush and the notes of these days, from one query."""
    sql = databases.statement(
        FlushRun,
        "flush_and_notes",
        runs=FlushRun._meta.db_table,
        notes=Note._meta.db_table,
    )
    rows: Any = [*FlushRun.objects.raw(sql, [since, until])]
    first = rows[0]
    # Databases without dates give text.
    notes = [(date.fromisoformat(str(row.note_day)), row.note_text) for row in rows if row.note_day]
    return FlushAndNotes(first if first.pk else None, notes, first.full_until or 0)


def last_good() -> FlushRun | None:
    """Returns the last good flush; where parts are flushed, the oldest of their last good ones.

    Returns None if a partition was never flushed.
    """
    last = ended_well().order_by().values("part").annotate(last=Max("pk")).values("last")
    newest: dict[str, FlushRun] = {}  # by tag
    for run in ended_well(pk__in=last):
        for tag in SqlEpoch(run.part).tags:
            newest.setdefault(tag, run)
    if len(newest) < len(keys.tags()):
        return None
    return min(newest.values(), key=lambda run: run.started)


def ended_well(**filters: Any) -> "QuerySet[FlushRun]":
    """Returns the flushes that ended without an error, newest first."""
    return databases.rows(FlushRun).filter(ended__isnull=False, error="", **filters)


def late_after() -> timedelta:
    """Returns the age after which a flush is late: three intervals, because one tick may be
    dropped.
    """
    return timedelta(seconds=3 * conf.FLUSH_INTERVAL)
