"""The records of flushes."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from django.db.models import Max, QuerySet

from readtrack.conf import conf
from readtrack.models import FlushRun, Note
from readtrack.sql import databases, day_visitors, usual
from readtrack.sql.day_visitors import AskedDays, StoredDay
from readtrack.sql.epochs import SqlEpoch
from readtrack.sql.usual import NOTHING_ASKED, AskedUsual, StoredUsual
from readtrack.store import keys

ITEM_OF_NOTE = 2  # the kinds of rows of flush_notes_days.sql
ITEM_OF_DAY = 3
ITEMS_OF_USUAL = usual.Kinds(4, 5)


class FlushNotesDays(NamedTuple):
    """The last flush, the notes of a range of days, days of visitors, and what is usual."""

    run: FlushRun | None  # the last flush that ended, even with an error
    notes: list[tuple[date, str]]  # day and text, in the order of the days
    full_until: int  # Redis's time until which the last good full flush has read (µs), 0 for none
    days: list[StoredDay]
    usual: StoredUsual


NOTHING_SAVED = FlushNotesDays(None, [], 0, [], StoredUsual())


def flush_notes_days(
    since: date,
    until: date,
    *,
    days: Sequence[AskedDays] = (),
    asked_usual: AskedUsual = NOTHING_ASKED,
) -> FlushNotesDays:
    """Returns the last flush, the notes of the days from `since` to `until`, and the days of
    visitors and what is usual, as far as they are asked for, with one query.
    """
    days_statement, parameters = day_visitors.statement_of(days, kind=ITEM_OF_DAY)
    usual_statement, parameters_of_usual = usual.statement_of(asked_usual, kinds=ITEMS_OF_USUAL)
    if usual_statement:
        usual_statement = f"UNION ALL {usual_statement}"
    parameters += parameters_of_usual
    sql = databases.statement(
        FlushRun,
        "flush_notes_days",
        runs=FlushRun._meta.db_table,
        notes=Note._meta.db_table,
        days=days_statement,
        usual=usual_statement,
    )
    run: Any = None
    notes: list[tuple[date, int, str]] = []
    rows: list[StoredDay] = []
    rows_of_usual: list[tuple[int, str, int]] = []
    # Each row has the columns of a flush; all but one row have NULL in them.
    for row in FlushRun.objects.raw(sql, [*parameters, since, until]):
        item: Any = row
        if item.item_kind == ITEM_OF_DAY:
            row_of_day = StoredDay(
                subject=item.item_name,
                day=_date(item.item_day),
                visitors=int(item.item_number),  # a Decimal of MariaDB
                sketch=bytes(item.item_sketch or b""),
                length=int(item.item_length),
            )
            rows.append(row_of_day)
        elif item.item_kind == ITEM_OF_NOTE:
            notes.append((_date(item.item_day), item.item_number, item.item_name))
        elif item.item_kind in ITEMS_OF_USUAL:
            rows_of_usual.append((item.item_kind, item.item_name, item.item_number))
        else:
            run = item
    return FlushNotesDays(
        run=None if run.pk is None else run,  # there was no flush yet
        notes=[(day, text) for day, _, text in sorted(notes)],
        full_until=run.full_until or 0,
        days=rows,
        usual=usual.from_rows(rows_of_usual, kinds=ITEMS_OF_USUAL),
    )


def _date(value: Any) -> date:
    """Returns a date of a row. SQLite has no type for dates, and gives text."""
    return date.fromisoformat(str(value))


def last_good(*, is_full: bool = False) -> FlushRun | None:
    """Returns the last flush that ended without an error; with `is_full` the last one of those that
    store everything.

    If the partitions are flushed in parts, it is the last good flush of the part whose last good
    flush is the oldest. Returns None if a partition was never flushed.
    """
    good_runs = ended_well()
    if is_full:
        good_runs = good_runs.exclude(kind=FlushRun.Kind.CHANGED)
    last_of_part = good_runs.order_by().values("part").annotate(last=Max("pk")).values("last")
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


def has_last_failed() -> bool:
    """Returns True if the newest flush that has ended, ended with an error."""
    newest = databases.rows(FlushRun).filter(ended__isnull=False).first()
    return newest is not None and bool(newest.error)


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
