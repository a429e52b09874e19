"""Views and readers over time, out of SQL's history and what Redis holds."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from asgiref.sync import sync_to_async
from django.db.models import Model

from readtrack import buckets
from readtrack.buckets import Period
from readtrack.models import Tracked
from readtrack.reports.hours import model_views
from readtrack.reports.live import views
from readtrack.sql import history
from readtrack.store import counters, read_state
from readtrack.store.circuit import fail_open
from readtrack.subjects import label_of, subject_column, subject_of, tracked_labels

OBJECT_HOURS = 24  # how long record.lua keeps a subject's hours


class Point(NamedTuple):
    """Views in the hour that starts then, aware UTC."""

    start: datetime
    views: int


class Overview(NamedTuple):
    """The whole site at a glance: its views in the last 24 hours, and over a time of one's choice."""

    day: int
    points: list[Point]


class ReaderPoint(NamedTuple):
    """How many had read a category at the end of the period that starts then, aware."""

    start: datetime
    readers: int


def series(
    of: Tracked | type[Tracked] | None = None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    by: Period = "hour",
    hours: int = 24,
) -> list[Point]:
    """Views of an object, a model or (None) the whole site by the hour, day, week or month, without gaps, oldest first.

    Periods are those of the current time zone; the first and the last are whole, or go up to now. `until` is exclusive
    and defaults to now, `since` to `hours` before it; naive times are of TIME_ZONE. Hours past
    READTRACK["HISTORY_DAYS"] are in the last hour of their day. With Redis gone, what was not yet flushed is missing.
    """
    end = buckets.now(until)
    begin = buckets.now(since) if since else end - timedelta(hours=hours - 1)
    starts = buckets.period_starts(begin, end, by=by)
    if not starts:
        return []
    first, last = _hours(starts, end)
    return _points(starts, _hourly_views(of, since=first, until=last + 1))


def overview(*, back: timedelta, by: Period, at: datetime | None = None) -> Overview:
    """The whole site's views in the last 24 hours, and from that long ago on; Redis is asked once for both."""
    now = buckets.now(at)
    starts = buckets.period_starts(now - back, now, by=by)
    first, last = _hours(starts, now)
    found = _hourly_views(None, since=min(first, last - 23), until=last + 1)
    shown = Counter({hour: count for hour, count in found.items() if hour >= first})
    return Overview(sum(count for hour, count in found.items() if hour > last - 24), _points(starts, shown))


def _points(starts: Sequence[datetime], found: Counter[int]) -> list[Point]:
    """The views by hour, added up by period."""
    sums = [0] * len(starts)
    for hour, count in found.items():
        sums[_place(starts, hour)] += count
    return [Point(*pair) for pair in zip(starts, sums, strict=True)]


def _hours(starts: Sequence[datetime], end: datetime) -> tuple[int, int]:
    """The first hour, and the last that began before the end."""
    return buckets.hour_index(starts[0]), buckets.hour_index(end - timedelta(microseconds=1))


def _place(starts: Sequence[datetime], hour: int) -> int:
    """The period of the hour; one that straddles two, where clocks differ by half an hour, is in the earlier one."""
    return max(0, bisect_right(starts, buckets.hour_start(hour)) - 1)


def reader_series(
    category: Model,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    by: Period = "hour",
    hours: int = 24,
) -> list[ReaderPoint]:
    """How many had read the category at the end of each hour, day, week or month, as far as a full flush saw it.

    Periods are those of `series`, without gaps: each goes on from the one before, and from 0 ahead of the first
    flush. The present one shows the live number, or with Redis gone the stored one.
    """
    now = buckets.now()
    end = buckets.now(until) if until else now
    starts = buckets.period_starts(buckets.now(since) if since else end - timedelta(hours=hours - 1), end, by=by)
    if not starts:
        return []
    subject = subject_of(category)
    column, (first, last) = subject_column(subject), _hours(starts, end)
    found = {_place(starts, hour): count for hour, count in history.readers(column, since=first, until=last + 1)}
    if starts[0] <= now <= end and (live := fail_open(read_state.count_readers, {}, [subject])):
        found[bisect_right(starts, now) - 1] = live[subject]
    known = history.readers_before(column, hour=first)
    return [ReaderPoint(start, known := found.get(place, known)) for place, start in enumerate(starts)]


def _hourly_views(of: Tracked | type[Tracked] | None, *, since: int, until: int) -> Counter[int]:
    if of is None:
        return model_views(tracked_labels(), since=since, until=until)
    if isinstance(of, type):
        return model_views([label_of(of)], since=since, until=until)
    subject = subject_of(of)
    found = Counter(dict(history.views(subject_column(subject), since=since, until=until)))
    return found + _not_flushed(of, subject, since=since, until=until)


def _not_flushed(obj: Tracked, subject: str, *, since: int, until: int) -> Counter[int]:
    """The views that are in no row of history yet, in the hours that Redis counted them in."""
    last = history.last(subject_column(subject))
    present = buckets.hour_index(buckets.now())
    hours = range(max(last.hour if last else 0, present - OBJECT_HOURS), present + 1)
    counts = fail_open(
        counters.subject_hours, [0] * len(hours), [buckets.hour_start(hour) for hour in hours], subject=subject
    )
    # Without any history, what is older than Redis's hours was counted before there was a history.
    rest = views([obj])[obj] - last.views if last else sum(counts)
    fresh: Counter[int] = Counter()
    for hour, count in sorted(zip(hours, counts, strict=True), reverse=True):
        fresh[hour] = min(count, max(0, rest))
        rest -= fresh[hour]
    if last and rest > 0:
        fresh[last.hour + 1 if last.hour < present else present] += rest
    return Counter({hour: count for hour, count in fresh.items() if since <= hour < until})


areader_series = sync_to_async(reader_series)
