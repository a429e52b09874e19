"""What SQL has saved beside counts: the last flush, notes, days of visitors, and what is usual."""

from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

from readtrack.models import FlushRun
from readtrack.numbers.models import DayVisitors, Note
from readtrack.numbers.sql import day_visitors, usual
from readtrack.numbers.sql.day_visitors import AskedDays, StoredDay
from readtrack.numbers.sql.usual import NOTHING_ASKED, AskedUsual, StoredUsual
from readtrack.sql import databases

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
        DayVisitors,
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
