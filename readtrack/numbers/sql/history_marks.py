"""Marks by which a full flush knows that an hour is as it was when the hour was added up.

A mark is a hash of how many rows the objects of a model have in the hour, and of their sums. Each
further view that is stored, a flush that compares everything, a reset and a deletion change it. An
object that moves to another category does not, so the views of these hours stay where they were.
"""

from collections import defaultdict
from collections.abc import Mapping
from datetime import date
from hashlib import blake2b

from django.db.models import Count, Sum

from readtrack import buckets
from readtrack.numbers.models import BreakdownHistory, DayVisitors, History
from readtrack.numbers.sql import period_gains
from readtrack.numbers.sql.history import BASELINE, of_reads
from readtrack.sql import databases

KIND = "mark"  # of the rows of BreakdownHistory that have the marks; their count is 0

Marks = Mapping[int, str]  # by hour (since 1970)

NO_MARKS: Marks = {}


def present(label: str, *, since: int) -> Marks:
    """Returns the marks of the hours from `since` on in which the model's objects have views or
    reads, and of their visitors on these days.
    """
    names = (label, of_reads(label))
    statements = [
        databases.statement(
            History,
            "marks",
            number=number,
            since=max(since, BASELINE + 1),
            condition=f"{period_gains.OF_LABEL} AND {period_gains.OF_OBJECTS}",
        )
        for number in range(len(names))
    ]
    patterns = [*map(period_gains.pattern, names)]
    rows = period_gains.rows_of(" UNION ALL ".join(statements), patterns)
    numbers: defaultdict[int, list[int]] = defaultdict(list)
    for row in sorted(map(tuple, rows)):
        hour = row[1]
        numbers[hour] += map(int, row)
    marks = {}
    days = {hour: buckets.local_day(hour) for hour in numbers}
    visitors = _visitors(label, since=min(days.values())) if days else {}
    for hour, day in days.items():
        text = ":".join(map(str, [*numbers[hour], *visitors.get(day, ())]))
        marks[hour] = blake2b(text.encode(), digest_size=16).hexdigest()
    return marks


def _visitors(label: str, *, since: date) -> dict[date, tuple[int, int]]:
    """Returns how many objects of the model have visitors on each day, and the sum of these."""
    rows = databases.rows(DayVisitors).filter(day__gte=since, length=1)
    # Without the rows of its categories and authors, which are made of those of the objects.
    rows = rows.filter(subject__startswith=f"{label}:").exclude(subject__startswith=f"{label}:{{")
    by_day = rows.order_by().values_list("day").annotate(Count("subject"), Sum("visitors"))
    return {day: (objects, int(visitors)) for day, objects, visitors in by_day}


def stored(label: str, *, since: int) -> Marks:
    """Returns the marks that the hours from `since` on had when they were added up."""
    rows = databases.rows(BreakdownHistory).filter(subject=label, kind=KIND, hour__gte=since)
    return dict(rows.values_list("hour", "field"))
