"""Absolute counts by the hour. The views of a range are the difference of two, so they agree with the total.

The flush writes a subject's row where it raises the total, and the rows of models by the hours in Redis.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models import F, Max, Min, Model, QuerySet, Window
from django.db.models.functions import RowNumber

from readtrack import buckets
from readtrack.conf import conf
from readtrack.models import History, ReaderHistory
from readtrack.sql import databases
from readtrack.sql.row_counts import RowCounts
from readtrack.subjects import subject_column

DELETED_AT_ONCE = 500
WHOLE_DAYS = 3  # that keep their hours, because the hours in Redis are compared with them


class Sums(NamedTuple):
    """Absolute views before a time, and at the end of each later hour that has a row."""

    before: int
    rows: dict[int, int]

    def by_hour(self) -> dict[int, int]:
        """Returns the views of each of these hours."""
        return {hour: views - last for (_, last), (hour, views) in pairwise([(0, self.before), *self.rows.items()])}


def store(live: Mapping[str, RowCounts], *, hour: int) -> None:
    """Stores the present counts of subjects under that hour."""
    rows = ((subject_column(subject), hour, *counts) for subject, counts in live.items())
    databases.upsert(History, ("subject", "hour"), ("views", "visitors"), rows=rows)


def before(subject: str, *, hour: int) -> int | None:
    """Returns the subject's views before that hour; None if no row is that old."""
    earlier = _rows().filter(subject=subject, hour__lt=hour).order_by("-hour")
    return earlier.values_list("views", flat=True).first()


def sums(subjects: Collection[str], *, since: int, until: int) -> dict[str, Sums]:
    """Returns the rows of subjects whose count does not fall, from two queries."""
    rows = _rows().filter(subject__in=subjects)
    earlier = rows.filter(hour__lt=since).values("subject").annotate(most=Max("views"))
    befores = dict(earlier.values_list("subject", "most"))
    found = {subject: Sums(befores.get(subject, 0), {}) for subject in subjects}
    later = rows.filter(hour__gte=since, hour__lt=until).order_by("hour")
    for subject, hour, views in later.values_list("subject", "hour", "views"):
        found[subject].rows[hour] = views
    return found


def views(subject: str, *, since: int, until: int) -> Iterator[tuple[int, int]]:
    """Yields the hours of a range with stored views, and the number of views, oldest first."""
    last = before(subject, hour=since) or 0
    rows = _rows().filter(subject=subject, hour__gte=since, hour__lt=until).order_by("hour")
    for hour, absolute in rows.values_list("hour", "views"):
        # A count that fell was reset in between.
        yield hour, absolute - last if absolute >= last else absolute
        last = absolute


def last(subject: str) -> History | None:
    """Returns the subject's newest row."""
    return _rows().filter(subject=subject).order_by("-hour").first()


def thin(*, at: datetime) -> int:
    """Leaves one row a day after HISTORY_DAYS, and none after HISTORY_YEARS. Returns the number of rows deleted."""
    return sum(_thin(_rows(model), at=at) for model in (History, ReaderHistory))


def _thin(rows: "QuerySet[Any]", *, at: datetime) -> int:
    gone = 0
    if conf.HISTORY_YEARS:
        oldest = at - timedelta(days=365.25 * conf.HISTORY_YEARS)
        gone += rows.filter(hour__lt=buckets.hour_index(oldest)).delete()[0]
    start = rows.aggregate(oldest=Min("hour"))["oldest"]
    if start is None:
        return gone
    # A month more than needed, in case some runs were missed; older days have been thinned.
    end = at - timedelta(days=max(conf.HISTORY_DAYS, WHOLE_DAYS))
    start_at = max(buckets.hour_start(start), end - timedelta(days=31))
    days = [buckets.hour_index(day) for day in buckets.period_starts(start_at, end, by="day")]
    return gone + sum(_thin_day(rows, *pair) for pair in pairwise(days))


def _thin_day(rows: "QuerySet[Any]", start: int, end: int) -> int:
    rows = rows.filter(hour__gte=start, hour__lt=end)
    lasts = rows.values("subject").annotate(last=Max("hour"), first=Min("hour")).values_list("last", "subject", "first")
    found = sorted((last, subject) for last, subject, first in lasts if first < last)
    gone = 0
    for last, group in groupby(found, key=itemgetter(0)):
        names = [subject for _, subject in group]
        for begin in range(0, len(names), DELETED_AT_ONCE):
            some = names[begin : begin + DELETED_AT_ONCE]
            gone += rows.filter(hour__lt=last, subject__in=some).delete()[0]
    return gone


def _rows(model: type[Model] = History) -> "QuerySet[Any]":
    return model._default_manager.using(databases.of(model).alias)


def newest_readers(columns: Sequence[str]) -> dict[str, int]:
    """Returns the newest number of readers of each subject that has one."""
    newest = Window(RowNumber(), partition_by="subject", order_by=F("hour").desc())
    rows = _rows(ReaderHistory).filter(subject__in=columns).alias(place=newest).filter(place=1)
    return dict(rows.values_list("subject", "readers"))


def readers_before(column: str, *, hour: int) -> int:
    """Returns the subject's newest number of readers before that hour; 0 for none."""
    earlier = _rows(ReaderHistory).filter(subject=column, hour__lt=hour).order_by("-hour")
    return earlier.values_list("readers", flat=True).first() or 0


def readers(column: str, *, since: int, until: int) -> list[tuple[int, int]]:
    """Returns the hours of a range in which the number of readers changed, and that number, oldest first."""
    rows = _rows(ReaderHistory).filter(subject=column, hour__gte=since, hour__lt=until).order_by("hour")
    return list(rows.values_list("hour", "readers"))
