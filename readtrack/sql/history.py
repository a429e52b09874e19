"""Absolute counts by the hour: the views of a range are the difference of two, so they agree with
the total.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

from readtrack.models import History, ReaderHistory
from readtrack.sql import databases, vendors
from readtrack.sql.row_counts import RowCounts
from readtrack.subjects import subject_column

BASELINE = 0  # hour of a row with what a subject had before its history began, which is in no chart
FOREVER = 2**31 - 1  # an hour (since 1970) that no row reaches


class Sums(NamedTuple):
    """An absolute number before a time, and at the end of each later hour that has a row."""

    before: int
    rows: dict[int, int]  # by hour

    def by_hour(self) -> dict[int, int]:
        """Returns how much the number rose in each of these hours."""
        rises = {}
        for (_, old), (hour, new) in pairwise([(0, self.before), *self.rows.items()]):
            # A number that fell was reset in between.
            rises[hour] = new - old if new >= old else new
        return rises


def of_reads(subject: str) -> str:
    """Returns the subject under which history has the reads of an object.

    With the label of a model it is the subject of the reads of all its objects.
    """
    return f"reads:{subject}"


def of_visitors(label: str) -> str:
    """Returns the subject under which history has the new visitors of all objects of a model."""
    return f"visitors:{label}"


def store(live: Mapping[str, RowCounts], *, hour: int) -> None:
    """Stores the present counts of subjects under that hour."""
    rows = ((subject_column(subject), hour, *counts) for subject, counts in live.items())
    databases.upsert(History, ("subject", "hour"), ("views", "visitors"), rows=rows)


def begin(stored: Mapping[str, RowCounts]) -> None:
    """Stores the counts of subjects without any row as their baseline."""
    rows = []
    for subject, counts in sorted(stored.items()):
        column = subject_column(subject)
        rows.append((column, *counts, column))
    with databases.of(History).cursor() as cursor:
        cursor.executemany(databases.statement(History, "begin_history"), rows)


def sums(
    subjects: Collection[str], *, since: int, until: int, model: Any = History
) -> dict[str, Sums]:
    """Returns the views of subjects before and in a range of hours, from one query.

    With ReaderHistory as the model it returns their numbers of readers.
    """
    since = max(since, BASELINE + 1)
    columns = ("subject", "hour", "views" if model is History else "readers")
    rows = databases.rows(model).filter(subject__in=subjects)
    newest = Window(RowNumber(), partition_by="subject", order_by=F("hour").desc())
    last = rows.filter(hour__lt=since).alias(rank=newest).filter(rank=1).values_list(*columns)
    later = rows.filter(hour__gte=since, hour__lt=until).values_list(*columns)
    by_subject = {subject: Sums(0, {}) for subject in subjects}
    # MySQL also returns subjects that differ in case.
    asked = (row for row in later.union(last, all=True) if row[0] in by_subject)
    for subject, hour, number in sorted(asked):
        if hour < since:
            by_subject[subject] = Sums(number, {})
        else:
            by_subject[subject].rows[hour] = number
    return by_subject


def sums_between(subjects: Collection[str], hours: Sequence[int]) -> dict[str, Sums]:
    """Returns the views of subjects before the first of these hours and before each later one.

    The hours are in ascending order. The statement finds each number by the index. A later number
    becomes a row, under the last hour that it includes, if it is higher than the one before it.
    """
    connection = databases.of(History)
    row = vendors.vendor_of(connection).row
    statement = databases.statement(
        History,
        "absolute",
        subjects=", ".join([row] * len(subjects)),
        hours=", ".join(row % int(hour) for hour in hours),
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [*subjects])
        # Sorted, so that the rows of each subject begin with the first hour.
        rows = sorted((subject, hour, views or 0) for subject, hour, views in cursor.fetchall())
    by_subject = {subject: Sums(0, {}) for subject in subjects}
    last_views = 0
    for subject, hour, views in rows:
        if hour == hours[0]:
            by_subject[subject] = Sums(views, {})
        elif views > last_views:
            by_subject[subject].rows[hour - 1] = views
        last_views = views
    return by_subject


def first_hour(subjects: Collection[str]) -> "QuerySet[Any]":
    """Returns the first hour that has a row of one of the subjects, as a query of one row or of
    none.
    """
    rows = databases.rows(History).filter(subject__in=subjects, hour__gt=BASELINE)
    return rows.order_by("hour").values_list("hour", flat=True)[:1]


def newest_readers(columns: Sequence[str]) -> dict[str, int]:
    """Returns the newest number of readers of each subject, 0 if it has none."""
    newest = sums(columns, since=FOREVER, until=FOREVER, model=ReaderHistory)
    return {column: numbers.before for column, numbers in newest.items()}
