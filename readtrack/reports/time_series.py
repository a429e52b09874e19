"""Numbers by period, out of SQL's history and live: views, reads and readers."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Literal, NamedTuple

from django.db.models import Model

from readtrack import buckets, subjects
from readtrack.models import History, ReaderHistory
from readtrack.reports.counts import views
from readtrack.reports.page_state import is_sound
from readtrack.reports.reads import reads
from readtrack.sql import databases, history
from readtrack.store import counters, keys, read_state, scripts
from readtrack.store.circuit import fail_open


class Point(NamedTuple):
    """The views of a period, and its start (aware)."""

    start: datetime
    views: int


class ReaderPoint(NamedTuple):
    """The number of readers of a category at the end of a period, and the start of the period
    (aware).
    """

    start: datetime
    readers: int


def series(
    of: Model | type[Model] | None = None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    by: buckets.Period = "hour",
    hours: int = 24,
    count: Literal["views", "reads"] = "views",
) -> list[Point]:
    """Returns the views of an object, a model or (None) the whole site by period, without gaps,
    oldest first.

    With `count="reads"` it returns the reads of an object, in the place of views.

    Periods are hours, days, weeks or months of the current time zone. The first and the last are
    whole, or go up to now. `until` is exclusive and defaults to now, `since` to `hours` before it;
    naive times are of TIME_ZONE. Hours older than the days of HISTORY are in the last hour of their day.
    While Redis is down, views that are not flushed are missing. Raises ValueError for an unknown
    period, and TypeError for reads of more than an object.
    """
    periods = _periods(since, buckets.now(until), by=by, hours=hours)
    if not periods.starts:
        return []
    if isinstance(of, Model):
        numbers = _numbers_of_object(of, periods.hours, count=count)
    elif count == "reads":
        raise TypeError("Reads over time are known of an object only.")
    else:
        numbers = _views_of_models([of] if of else subjects.counted_models(), periods.hours)
    sums = [0] * len(periods.starts)
    for hour, number in numbers.items():
        sums[_period_of(hour, periods.starts)] += number
    return [Point(start, number) for start, number in zip(periods.starts, sums, strict=True)]


def reader_series(
    category: Model,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    by: buckets.Period = "hour",
    hours: int = 24,
) -> list[ReaderPoint]:
    """Returns the number of readers of the category at the end of each period, as full flushes
    stored it.

    Periods are those of `series`. A period without a flush has the number of the one before, 0
    before the first flush. The present period has the live number, or while Redis is down the
    stored one.
    """
    now = buckets.now()
    end = buckets.now(until) if until else now
    starts, within = _periods(since, end, by=by, hours=hours)
    if not starts:
        return []
    subject = subjects.subject_of(category)
    column = subjects.subject_column(subject)
    stored = history.sums([column], since=within.start, until=within.stop, model=ReaderHistory)
    readers, readers_by_hour = stored[column]
    changes = {_period_of(hour, starts): number for hour, number in readers_by_hour.items()}
    if starts[0] <= now <= end:
        live = fail_open(read_state.count_readers, {}, [subject])
        if live:
            changes[bisect_right(starts, now) - 1] = live[subject]
    points = []
    for index, start in enumerate(starts):
        readers = changes.get(index, readers)
        points.append(ReaderPoint(start, readers))
    return points


def merged(stored: Mapping[str, history.Sums], live: Sequence[Any]) -> Counter[int]:
    """Merges SQL's history of models with Redis's counters of their last hours. Returns views by
    hour index.
    """
    live_by_model = counters.by_model(live)
    views_by_hour = Counter[int]()
    is_partition_sound = cache(is_sound)
    for model, rows in stored.items():
        stored_by_hour = rows.by_hour()
        views_by_hour.update(stored_by_hour)
        for hour, count in live_by_model[model].items():
            in_sql = stored_by_hour.get(hour, 0)
            # An unsettled count lacks SQL's, which are added, unless Redis went back.
            if count.is_settled or not in_sql or not is_partition_sound(keys.tag_in(model)):
                views_by_hour[hour] += max(0, count.views - in_sql)
            else:
                views_by_hour[hour] += count.views
    return views_by_hour


class _Periods(NamedTuple):
    starts: list[datetime]
    hours: range  # since 1970, from the first start up to the end


def _periods(since: datetime | None, end: datetime, *, by: buckets.Period, hours: int) -> _Periods:
    """Returns the periods from that time, or the last hours before the end, up to the end. Raises
    ValueError for an unknown period.
    """
    begin = buckets.now(since) if since else end - timedelta(hours=hours - 1)
    starts = buckets.period_starts(begin, end, by=by)
    last = buckets.hour_index(end - timedelta(microseconds=1))
    first = buckets.hour_index(starts[0]) if starts else last
    return _Periods(starts, range(first, last + 1))


def _period_of(hour: int, starts: Sequence[datetime]) -> int:
    """Returns the index of the hour's period. An hour in two periods (half-hour zones) is in the
    earlier one.
    """
    return max(0, bisect_right(starts, buckets.hour_start(hour)) - 1)


def _views_of_models(models: Sequence[type[Model]], within: range) -> Counter[int]:
    """Returns the views of all objects of the models by hour index."""
    labels = [subjects.label_of(model) for model in models]
    stored_labels = [f"{label}{tag}" for label in labels for tag in keys.past_tags()]
    # SQL comes first, because a count that is settled and written in between would count twice.
    stored = history.sums(stored_labels, since=within.start, until=within.stop)
    kept = range(max(within.start, within.stop - counters.MODEL_HOURS), within.stop)
    live = fail_open(scripts.run_all, [], *counters.model_hours(labels, kept))
    return merged(stored, live)


def _numbers_of_object(obj: Model, within: range, *, count: str) -> Counter[int]:
    """Returns the views or reads of an object by hour index: those of history, and those that are
    in no row of it yet.
    """
    subject = subjects.subject_of(obj)
    column = subjects.subject_column(history.of_reads(subject) if count == "reads" else subject)
    sums = history.sums([column], since=within.start, until=within.stop)
    stored = Counter(sums[column].by_hour())
    last: Any = databases.rows(History).filter(subject=column).order_by("hour").last()
    present = buckets.hour_index(buckets.now())
    if count == "reads":
        stored_reads = last.views if last else 0
        fresh = Counter({present: reads(obj) - stored_reads})
    else:
        fresh = _fresh_views(obj, last, present=present)
    return stored + Counter({hour: number for hour, number in fresh.items() if hour in within})


def _fresh_views(obj: Model, last: Any, *, present: int) -> Counter[int]:
    """Returns the views since the last row of the object's history, or None, by hour index. Redis
    has the hours.
    """
    first = present - keys.hour.ttl // keys.HOUR
    if last:
        first = max(first, last.hour)
    hours = range(first, present + 1)
    counts = fail_open(
        counters.subject_hours, [0] * len(hours), hours, subject=subjects.subject_of(obj)
    )
    # Without any history, views that are older than Redis's hours were counted before HISTORY was
    # turned on.
    remaining = views([obj])[obj] - last.views if last else sum(counts)
    fresh: Counter[int] = Counter()
    for hour, number in sorted(zip(hours, counts, strict=True), reverse=True):
        fresh[hour] = min(number, max(0, remaining))
        remaining -= fresh[hour]
    if last and remaining > 0:
        fresh[min(last.hour + 1, present)] += remaining
    return fresh
