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

    run: FlushRun | None  # the last flush that ended, even with an error
    notes: list[tuple[date, str]]  # day and text, in the order of the days
    full_until: int  # Redis's time until which the last good full flush has read (µs), 0 for none


def flush_and_notes(since: date, until: date) -> FlushAndNotes:
    """Returns the last flush, and the notes of the days from `since` to `until`, with one query."""
    sql = databases.statement(
        FlushRun,
        "flush_and_notes",
        runs=FlushRun._meta.db_table,
        notes=Note._meta.db_table,
    )
    # One row for each note, at least one. Each row has the columns of the same last flush; these
    # are NULL without a flush.
    rows: Any = [*FlushRun.objects.raw(sql, [since, until])]
    run = rows[0]
    # SQLite has no type for dates, and gives text.
    notes = [(date.fromisoformat(str(row.note_day)), row.note_text) for row in rows if row.note_day]
    full_until = run.full_until or 0
    if run.pk is None:  # there was no flush yet
        return FlushAndNotes(None, notes, full_until)
    return FlushAndNotes(run, notes, full_until)


def last_good() -> FlushRun | None:
    """Returns the last flush that ended without an error.

    If the partitions are flushed in parts, it is the last good flush of the part whose last good
    flush is the oldest. Returns None if a partition was never flushed.
    """
    last_of_part = ended_well().order_by().values("part").annotate(last=Max("pk")).values("last")
    last_runs: dict[str, FlushRun] = {}  # by the tag of a partition
    for run in ended_well(pk__in=last_of_part):  # newest first
        for tag in SqlEpoch(run.part).tags:
            last_runs.setdefault(tag, run)
    if len(last_runs) < len(keys.tags()):
        return None
    return min(last_runs.values(), key=lambda run: run.started)


def ended_well(**filters: Any) -> "QuerySet[FlushRun]":
    """Returns the flushes that ended without an error, newest first."""
    return databases.rows(FlushRun).filter(ended__isnull=False, error="", **filters)


def newest_faults() -> list[str]:
    """Returns the lines about what the newest flushes could not store: of each part the last full
    flush, and the last one after it.
    """
    newest: dict[tuple[str, bool], int] = {}
    numbers = ended_well().order_by().values_list("part", "kind").annotate(newest=Max("pk"))
    for part, kind, pk in numbers:
        key = (part, kind == FlushRun.Kind.CHANGED)
        newest[key] = max(pk, newest.get(key, 0))
    texts = databases.rows(FlushRun).filter(pk__in=newest.values()).exclude(faults="")
    lines: list[str] = []
    for run in texts:
        is_changed = run.kind == FlushRun.Kind.CHANGED
        if not is_changed or run.pk > newest.get((run.part, False), 0):
            lines += run.faults.splitlines()
    return list(dict.fromkeys(lines))


def late_after() -> timedelta:
    """Returns the age of the last flush from which on the next one is late.

    That is three intervals, because a single tick of the scheduler may be dropped.
    """
    return timedelta(seconds=3 * conf.FLUSH_INTERVAL)
