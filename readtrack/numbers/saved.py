"""What SQL has saved beside counts: the last flush, notes, days of visitors, what is usual, and
where history begins.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, NamedTuple

from readtrack.models import FlushRun
from readtrack.numbers.models import DayVisitors, Note
from readtrack.numbers.sql import day_visitors, first_hours, usual
from readtrack.numbers.sql.day_visitors import AskedDays, StoredDay
from readtrack.numbers.sql.first_hours import NO_HOURS_ASKED, AskedHours, FirstHours
from readtrack.numbers.sql.usual import NOTHING_ASKED, AskedUsual, StoredUsual
from readtrack.sql import databases

ITEM_OF_RUN = 1  # the kinds of rows of flush_notes_days.sql
ITEM_OF_NOTE = 2
ITEM_OF_DAY = 3
ITEMS_OF_USUAL = usual.Kinds(4, 5, 7)
ITEM_OF_FIRST_HOUR = 6


class FlushNotesDays(NamedTuple):
    """The last flush, the notes of a range of days, days of visitors, what is usual, and the first
    hours of history.
    """

    run: FlushRun | None  # the last flush that ended, even with an error
    notes: list[tuple[date, str]]  # day and text, in the order of the days
    full_until: int  # Redis's time until which the last good full flush has read (µs), 0 for none
    days: list[StoredDay]
    usual: StoredUsual
    first_hours: FirstHours


NOTHING_SAVED = FlushNotesDays(None, [], 0, [], StoredUsual(), FirstHours())


def flush_notes_days(
    since: date,
    until: date,
    *,
    days: Sequence[AskedDays] = (),
    asked_usual: AskedUsual = NOTHING_ASKED,
    asked_hours: AskedHours = NO_HOURS_ASKED,
) -> FlushNotesDays:
    """Returns the last flush, the notes of the days from `since` to `until`, and the days of
    visitors, what is usual and the first hours, as far as they are asked for, with one query.
    """
    days_statement, parameters = day_visitors.statement_of(days, kind=ITEM_OF_DAY)
    usual_statement, parameters_of_usual = usual.statement_of(asked_usual, kinds=ITEMS_OF_USUAL)
    if usual_statement:
        usual_statement = f"UNION ALL {usual_statement}"
    hours_statement, parameters_of_hours = first_hours.statement_of(
        asked_hours, columns=f"{ITEM_OF_FIRST_HOUR}, NULL, NULL, {{hour}}, NULL, {{place}}"
    )
    parameters += [*parameters_of_usual, *parameters_of_hours]
    sql = databases.statement(
        DayVisitors,
        "flush_notes_days",
        runs=FlushRun._meta.db_table,
        notes=Note._meta.db_table,
        days=days_statement,
        usual=usual_statement,
        first_hours=hours_statement,
    )
    items: defaultdict[int, list[Any]] = defaultdict(list)
    # Each row has the columns of a flush; all but one row have NULL in them.
    for row in FlushRun.objects.raw(sql, [*parameters, since, until]):
        item: Any = row
        items[item.item_kind].append(item)
    [run] = items[ITEM_OF_RUN]
    rows_of_usual = [
        (kind, row.item_name, row.item_number) for kind in ITEMS_OF_USUAL for row in items[kind]
    ]
    return FlushNotesDays(
        run=None if run.pk is None else run,  # there was no flush yet
        notes=_notes(items[ITEM_OF_NOTE]),
        full_until=run.full_until or 0,
        days=[_stored_day(row) for row in items[ITEM_OF_DAY]],
        usual=usual.from_rows(rows_of_usual, kinds=ITEMS_OF_USUAL),
        first_hours=first_hours.from_rows(
            asked_hours,
            [(row.item_length, row.item_number) for row in items[ITEM_OF_FIRST_HOUR]],
        ),
    )


def _notes(rows: Iterable[Any]) -> list[tuple[date, str]]:
    """Returns the day and the text of each note, in the order of the days."""
    notes = sorted((_date(row.item_day), row.item_number, row.item_name) for row in rows)
    return [(day, text) for day, _, text in notes]


def _stored_day(row: Any) -> StoredDay:
    """Returns a day of visitors."""
    return StoredDay(
        subject=row.item_name,
        day=_date(row.item_day),
        visitors=int(row.item_number),  # a Decimal of MariaDB
        sketch=bytes(row.item_sketch or b""),
        length=int(row.item_length),
    )


def _date(value: Any) -> date:
    """Returns a date of a row. SQLite has no type for dates, and gives text."""
    return date.fromisoformat(str(value))
