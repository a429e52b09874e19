"""Absolute counts by the hour: views of any range are the difference of two, so nothing can disagree with the total.

Rows of one subject are written when the flush raises it. Those of a model and of the whole site are sums that
go on from their last row by what Redis counted since, so that a chart of the site needs no scan.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

from django.db.models import Max, Min, Model, QuerySet

from readtrack import buckets, databases, periods, subjects
from readtrack.conf import conf
from readtrack.models import History, Readership
from readtrack.snapshots import Snapshot
from readtrack.store import counters, minutes

SITE = ""  # the whole site's subject
SITE_HOURS = 48  # how long record.lua keeps the whole site's hours
TALLY_HOURS = 3
DELETED_AT_ONCE = 500


def keep(live: Mapping[str, Snapshot], *, hour: int) -> None:
    """Stores the counts of subjects as they are in that hour."""
    rows = ((subjects.column(token), hour, *counts) for token, counts in live.items())
    databases.upsert(History, ("subject", "hour"), ("views", "visitors"), rows=rows)


def keep_sums(*, at: datetime) -> None:
    """Brings the rows of the whole site and of each model up to the hour of `at`. Raises redis.RedisError."""
    tallied = {start: minutes.hour(start) for start in buckets.hours(TALLY_HOURS, until=at)}
    labels = {label for sums in tallied.values() for label in sums}
    rows = list(_continued(SITE, counters.hours, SITE_HOURS, at))
    for model in subjects.tracked_models():
        if (label := model._meta.label_lower) in labels:
            rows += _continued(label, partial(_tallied, tallied, label), TALLY_HOURS, at)
    databases.upsert(History, ("subject", "hour"), ("views", "visitors"), rows=rows)


def summed_from(subjects: Collection[str], *, at: datetime) -> dict[str, int]:
    """The hour from which on `keep_sums` sums up each of those sums again, an hour late at most."""
    known = _rows().filter(subject__in=subjects).values("subject").annotate(last=Max("hour"))
    lasts = dict(known.values_list("subject", "last"))
    present = buckets.hour_number(at)
    return {
        subject: max(present + 2 - (TALLY_HOURS if subject else SITE_HOURS), lasts.get(subject, 0))
        for subject in subjects
    }


def _tallied(tallied: Mapping[datetime, Mapping[str, int]], label: str, hours: Sequence[datetime]) -> list[int]:
    return [tallied[hour].get(label, 0) for hour in hours]


def _continued(
    subject: str, count: Callable[[Sequence[datetime]], list[int]], life: int, at: datetime
) -> Iterator[tuple[str, int, int, int]]:
    """The rows that go on from the subject's last sum by the views since, as far back as they are known."""
    lasts = list(_rows().filter(subject=subject).order_by("-hour").values_list("hour", "views")[:2])
    present = buckets.hour_number(at)
    first = max([present - life + 1, *(hour for hour, _ in lasts[:1])])
    # The last row's own hour may have gone on, so it is summed again.
    views = next((views for hour, views in lasts if hour < first), 0)
    for hour, more in zip(range(first, present + 1), count(_starts(first, present)), strict=True):
        views += more
        if more:
            yield subject, hour, views, 0


def _starts(first: int, last: int) -> list[datetime]:
    return [buckets.hour_start(hour) for hour in range(first, last + 1)]


def before(subject: str, *, hour: int) -> int | None:
    """The subject's views ahead of that hour; None where nothing was kept."""
    earlier = _rows().filter(subject=subject, hour__lt=hour).order_by("-hour")
    return earlier.values_list("views", flat=True).first()


def views(subject: str, *, since: int, until: int) -> Iterator[tuple[int, int]]:
    """The hours of a range in which views were stored, and how many, oldest first."""
    last = before(subject, hour=since) or 0
    rows = _rows().filter(subject=subject, hour__gte=since, hour__lt=until).order_by("hour")
    for hour, absolute in rows.values_list("hour", "views"):
        # A count that fell was set to zero in between.
        yield hour, absolute - last if absolute >= last else absolute
        last = absolute


def last(subject: str) -> History | None:
    """The subject's newest row."""
    return _rows().filter(subject=subject).order_by("-hour").first()


def thin(*, at: datetime) -> int:
    """Leaves one row a day of days past HISTORY_DAYS, none of years past HISTORY_YEARS; gives how many went."""
    return sum(_thin(_rows(model), at=at) for model in (History, Readership))


def _thin(rows: "QuerySet[Any]", *, at: datetime) -> int:
    gone = 0
    if conf.HISTORY_YEARS:
        oldest = at - timedelta(days=365.25 * conf.HISTORY_YEARS)
        gone += rows.filter(hour__lt=buckets.hour_number(oldest)).delete()[0]
    start = rows.aggregate(oldest=Min("hour"))["oldest"]
    if start is None:
        return gone
    # A month ahead of the limit, in case some runs were missed; all the rest has been thinned.
    end = at - timedelta(days=conf.HISTORY_DAYS)
    start_at = max(buckets.hour_start(start), end - timedelta(days=31))
    days = [buckets.hour_number(day) for day in periods.starts(start_at, end, by="day")]
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
