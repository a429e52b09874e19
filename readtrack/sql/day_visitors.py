"""The visitors of each day: a sketch for each object and each model, of which any period is the
union.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any, NamedTuple

from readtrack.models import DayVisitors
from readtrack.sql import databases, epochs
from readtrack.store.uniques import Union

Day = tuple[str, date]  # the subject as columns have it, or the label of a model; and the day


class StoredDay(NamedTuple):
    """The visitors of a subject on one day, as SQL has them."""

    subject: str
    day: date
    visitors: int
    sketch: bytes


class AskedDays(NamedTuple):
    """Subjects (as columns have them) whose rows of some days are asked for."""

    subjects: Sequence[str]
    first: date
    last: date
    limit: int  # rows that are returned at most


def statement_of(asked: Sequence[AskedDays], *, kind: int) -> tuple[str, list[Any]]:
    """Returns the SQL statement for the rows of these days, and its parameters.

    Its columns are the kind as given, day, subject, visitors and sketch. It has no rows if nothing
    is asked for.
    """
    table = databases.of(DayVisitors).ops.quote_name(DayVisitors._meta.db_table)
    select = (
        f"SELECT * FROM (SELECT {int(kind)} AS kind, day, subject AS name, visitors AS number, sketch"  # noqa: S608 - a quoted name
        f" FROM {table} WHERE %s) AS days"
    )
    if not asked:
        return select % "1 = 0", []
    selects = []
    parameters: list[Any] = []
    for subjects, first, last, limit in asked:
        places = ", ".join(["%s"] * len(subjects))
        condition = f"subject IN ({places}) AND day BETWEEN %s AND %s LIMIT {int(limit)}"
        selects.append(select % condition)
        parameters += (*subjects, first, last)
    return " UNION ALL ".join(selects), parameters


def stored(
    subjects: Collection[str], *, first: date, last: date, limit: int | None = None
) -> list[StoredDay]:
    """Returns the stored days of the subjects, in no order; at most `limit` of them.

    `subjects` are as columns have them. Makes one query.
    """
    rows = databases.rows(DayVisitors).filter(subject__in=subjects, day__gte=first, day__lte=last)
    columns = rows.values_list("subject", "day", "visitors", "sketch")[:limit]
    return [
        StoredDay(subject, day, visitors, bytes(sketch))
        for subject, day, visitors, sketch in columns
    ]


def raise_days(new: Mapping[Day, Union], *, read: Mapping[Day, int]) -> list[Day]:
    """Stores the unions of days whose rows are still those that they were made of.

    `read` has the visitors that these rows had, 0 for a missing row. Returns the days whose rows
    another flush has raised meanwhile; the caller has to unite these again.
    """
    write = partial(_raise_days, new, read)
    return databases.retried(databases.of(DayVisitors), write)


def _raise_days(new: Mapping[Day, Union], read: Mapping[Day, int]) -> list[Day]:
    with databases.own_transaction(databases.of(DayVisitors)):
        epochs.lock_epoch()  # one writer at a time, because rows are made of the rows before them
        present = _visitors(new)
        changed = [day for day in new if present.get(day, 0) != read.get(day, 0)]
        rows = []
        for (subject, day), union in new.items():
            if (subject, day) not in changed:
                rows.append((subject, day, union.visitors, union.sketch))
        databases.upsert(DayVisitors, ("subject", "day"), ("visitors", "sketch"), rows=rows)
    return changed


def _visitors(days: Iterable[Day]) -> dict[Day, int]:
    """Returns the stored number of visitors of each of these days that has a row."""
    subjects = {subject for subject, _ in days}
    rows = databases.rows(DayVisitors).filter(
        subject__in=subjects, day__in={day for _, day in days}
    )
    return {
        (subject, day): visitors
        for subject, day, visitors in rows.values_list("subject", "day", "visitors")
    }


def delete_before(day: date) -> int:
    """Deletes the rows of earlier days. Returns how many they were."""
    deleted, _ = databases.rows(DayVisitors).filter(day__lt=day).delete()
    return deleted
