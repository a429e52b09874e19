"""The visitors of each day: a sketch for each object and each model, of which any period is the
union.

A block is the union of 4, 16 or 64 days, so that a long period takes few rows. Blocks of one length
follow one another without a gap, whatever the subject.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any, NamedTuple

from django.db.models import Case, F, Q, QuerySet, Value, When

from readtrack.numbers.models import DayVisitors
from readtrack.numbers.sql.history_lock import lock_history
from readtrack.sql import databases
from readtrack.store.uniques import Union

PARTS = 4  # rows of the next shorter length in a block
LENGTHS = (4, 16, 64)  # days of a block
DAY = timedelta(days=1)
# NULL with the type of a sketch, without which PostgreSQL refuses a UNION. No row has the length 0.
NO_SKETCH = Case(When(length=0, then=F("sketch")))

Day = tuple[str, date]  # the subject as columns have it, or the label of a model; and the day


class StoredDay(NamedTuple):
    """The visitors of a subject on one day, or in a block of days, as SQL has them."""

    subject: str
    day: date
    visitors: int
    sketch: bytes  # b"" if it was not asked for
    length: int = 1  # number of days


class AskedDays(NamedTuple):
    """The rows that are asked for: subjects (as columns have them), and their days."""

    subjects: Collection[str]
    first: date
    last: date
    has_blocks: bool = True  # a block takes the place of its days; False for each day by itself
    has_sketches: bool = True  # False for numbers only
    limit: int | None = None  # rows that are returned at most

    @property
    def rows(self) -> "QuerySet[Any]":
        """The rows, in no order."""
        condition = _in_period(self.first, self.last) if self.has_blocks else Q(length=1)
        rows = databases.rows(DayVisitors).filter(
            condition, day__gte=self.first, day__lte=self.last
        )
        return databases.having(rows, "subject", self.subjects)[: self.limit]


def _in_period(first: date, last: date) -> Q:
    """Returns the condition for rows within the period, without those of which a block within the
    period has the visitors.
    """
    condition = Q()
    for length in (1, *LENGTHS):
        last_start = last - (length - 1) * DAY
        rows = Q(length=length, day__lte=last_start)
        block = length * PARTS
        first_of_blocks = block_start(first + (block - 1) * DAY, length=block)
        end_of_blocks = block_start(last + DAY, length=block)
        if first_of_blocks < end_of_blocks:
            rows &= ~Q(part_of=block, day__gte=first_of_blocks, day__lt=end_of_blocks)
        condition |= rows
    return condition


def block_start(day: date, *, length: int) -> date:
    """Returns the first day of the block of that length with the day in it."""
    return day - (day.toordinal() % length) * DAY


def statement_of(asked: Sequence[AskedDays], *, kind: int) -> tuple[str, list[Any]]:
    """Returns the SQL statement for the rows, and its parameters, for a UNION with other rows.

    Its columns are the kind as given, the day, the subject, the visitors, the sketch and the
    length. It has no rows if nothing is asked for.
    """
    connection = databases.of(DayVisitors)
    selects = []
    parameters: list[Any] = []
    for days in asked:
        columns = {
            "item_kind": Value(int(kind)),
            "item_day": F("day"),
            "item_name": F("subject"),
            "item_number": F("visitors"),
            "item_sketch": F("sketch") if days.has_sketches else NO_SKETCH,
            "item_length": F("length"),
        }
        rows = days.rows.annotate(**columns).values_list(*columns)
        select, parameters_of_select = rows.query.get_compiler(connection=connection).as_sql()
        selects.append(f"SELECT * FROM ({select}) AS days")  # noqa: S608 - Django's statement
        parameters += parameters_of_select
    if selects:
        return " UNION ALL ".join(selects), parameters
    table = connection.ops.quote_name(DayVisitors._meta.db_table)
    no_rows = (
        "SELECT 0 AS item_kind, day AS item_day, subject AS item_name, visitors AS item_number,"  # noqa: S608 - a quoted name
        f" sketch AS item_sketch, length AS item_length FROM {table} WHERE 1 = 0"
    )
    return no_rows, []


def stored(asked: AskedDays) -> list[StoredDay]:
    """Returns the rows that are asked for, in no order. Makes one query."""
    columns = asked.rows.values_list("subject", "day", "visitors", "sketch", "length")
    return [
        StoredDay(subject, day, visitors, bytes(sketch), length)
        for subject, day, visitors, sketch, length in columns
    ]


def of_days(columns: Collection[str], days: Collection[date]) -> dict[Day, Union]:
    """Returns the visitors of the subjects (as columns have them) on each of these days.

    A day without a row is left out.
    """
    rows = databases.rows(DayVisitors).filter(day__in=days, length=1)
    rows = databases.having(rows, "subject", columns)
    return {
        (subject, day): Union(visitors, bytes(sketch))
        for subject, day, visitors, sketch in rows.values_list(
            "subject", "day", "visitors", "sketch"
        )
    }


def raise_days(new: Mapping[Day, Union], *, read: Mapping[Day, int]) -> list[Day]:
    """Stores the unions of days whose rows are still those that they were made of.

    `read` has the visitors that these rows had, 0 for a missing row. Returns the days whose rows
    another flush has raised meanwhile; the caller has to unite these again.
    """
    write = partial(_raise_days, new, read)
    return databases.retried(databases.of(DayVisitors), write)


def _raise_days(new: Mapping[Day, Union], read: Mapping[Day, int]) -> list[Day]:
    with databases.own_transaction(databases.of(DayVisitors)):
        lock_history()  # one writer at a time, because rows are made of the rows before them
        present = _visitors(new)
        changed = [day for day in new if present.get(day, 0) != read.get(day, 0)]
        rows = []
        for (subject, day), union in new.items():
            if (subject, day) not in changed:
                # A block may lack the new visitors, so the day counts beside it.
                rows.append((subject, day, 1, union.visitors, union.sketch, 0))
        _upsert(rows)
    return changed


def _upsert(rows: Iterable[tuple[str, date, int, int, bytes, int]]) -> None:
    """Inserts rows, or raises those that have fewer visitors."""
    keys = ("subject", "day", "length")
    databases.upsert(DayVisitors, keys, ("visitors", "sketch", "part_of"), rows=rows)


def _visitors(days: Iterable[Day]) -> dict[Day, int]:
    """Returns the stored number of visitors of each of these days that has a row."""
    subjects = {subject for subject, _ in days}
    rows = databases.rows(DayVisitors).filter(day__in={day for _, day in days}, length=1)
    rows = databases.having(rows, "subject", subjects)
    return {
        (subject, day): visitors
        for subject, day, visitors in rows.values_list("subject", "day", "visitors")
    }


def parts_of(start: date, *, length: int) -> "QuerySet[Any]":
    """Returns the rows that make up the blocks of all subjects that begin on that day."""
    rows = databases.rows(DayVisitors).filter(length=length // PARTS)
    return rows.filter(day__gte=start, day__lt=start + length * DAY)


def has_blocks(start: date, *, length: int) -> bool:
    """Returns True if there are blocks of that length that begin on that day."""
    return databases.rows(DayVisitors).filter(day=start, length=length).exists()


def add_blocks(start: date, new: Mapping[str, Union], *, length: int, read: int) -> None:
    """Stores blocks of subjects, unless their parts have changed since they were read.

    `read` is the sum of the visitors of all parts.
    """
    write = partial(_add_blocks, start, new, length=length, read=read)
    databases.retried(databases.of(DayVisitors), write)


def _add_blocks(start: date, new: Mapping[str, Union], *, length: int, read: int) -> None:
    with databases.own_transaction(databases.of(DayVisitors)):
        lock_history()
        parts = parts_of(start, length=length).filter(subject__in=new)
        if sum(parts.values_list("visitors", flat=True)) != read:
            return  # the next archive tries it again
        _upsert(
            (subject, start, length, union.visitors, union.sketch, 0)
            for subject, union in new.items()
        )
        parts.update(part_of=length)


def delete_before(day: date) -> int:
    """Deletes the rows of earlier days. Returns how many they were."""
    rows = databases.rows(DayVisitors)
    deleted, _ = rows.filter(day__lt=day).delete()
    if deleted:
        # The blocks of these rows may have begun earlier, and be gone.
        rows.filter(day__lt=day + LENGTHS[-1] * DAY, part_of__gt=0).update(part_of=0)
    return deleted
