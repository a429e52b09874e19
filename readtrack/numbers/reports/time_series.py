"""Numbers by period, from SQL's history and from Redis: views, reads and readers."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Literal, NamedTuple

from django.db.models import Model
from django.utils import timezone

from readtrack import buckets, subjects
from readtrack.hits.stages import StageName
from readtrack.numbers import hours_of_models, live_counters, local_time
from readtrack.numbers.models import History, ReaderHistory
from readtrack.numbers.reports.reads import reached
from readtrack.numbers.sql import history
from readtrack.reports.counts import views
from readtrack.reports.page_state import is_sound
from readtrack.sql import databases
from readtrack.store import keys, read_state, scripts
from readtrack.store.circuit import fail_open

# What a series may count: views, or those of them that reached a stage.
Count = Literal["views", StageName]


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
    by: local_time.Period = "hour",
    hours: int = 24,
    count: Count = "views",
) -> list[Point]:
    """Returns the views of an object, of a model or (None) of the whole site by period, oldest
    period first, also periods without views.

    With `count="seen"`, `"engaged"` or `"reads"` it returns those of an object's views that reached
    this stage (see `Reading`), in place of its views.

    Periods are hours, days, weeks or months of the current time zone. An hour of history belongs to
    the period in which it begins. The first and the last one
    are whole, or go up to now. `until` is exclusive and defaults to now, `since` defaults to
    `hours` hours before it; naive times are of TIME_ZONE. Views that are older than the days of
    NUMBERS are all in the last hour of their day. While Redis is down, views that are not flushed
    are missing. Raises ValueError for an unknown period, and TypeError for stages of anything but
    an object.
    """
    periods = _periods(since, _end(until), by=by, hours=hours)
    if not periods.starts:
        return []
    if isinstance(of, Model):
        numbers = _numbers_of_object(of, periods.hours, count=count)
    elif count != "views":
        raise TypeError(f"{count.capitalize()} over time are known of an object only.")
    else:
        models = [of] if of else subjects.counted_models()
        numbers = _views_of_models(models, periods.hours)
    sums = [0] * len(periods.starts)
    for hour, number in numbers.items():
        sums[_period_of(hour, periods.starts)] += number
    starts = map(timezone.localtime, periods.starts)
    return [Point(start, number) for start, number in zip(starts, sums, strict=True)]


def reader_series(
    category: Model,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    by: local_time.Period = "hour",
    hours: int = 24,
) -> list[ReaderPoint]:
    """Returns the number of readers of the category at the end of each period, as full flushes
    have stored it.

    Periods are those of `series`. A period without a flush has the number of the period before it,
    and 0 before the first flush. The present period has the live number, or the stored number while
    Redis is down.
    """
    now = buckets.now()
    end = _end(until)
    periods = _periods(since, end, by=by, hours=hours)
    starts = periods.starts
    if not starts:
        return []
    subject = subjects.subject_of(category)
    column = subjects.subject_column(subject)
    stored = history.sums(
        [column], since=periods.hours.start, until=periods.hours.stop, model=ReaderHistory
    )
    # The number before the first period, and each number by the hour of its flush.
    readers, readers_by_hour = stored[column]
    # The last number of each period in which the number changed, by the index of the period.
    changes = {_period_of(hour, starts): number for hour, number in readers_by_hour.items()}
    if starts[0] <= now <= end:
        live = fail_open(read_state.count_readers, {}, [subject])
        if subject in live:
            present_period = bisect_right(starts, now) - 1
            changes[present_period] = live[subject]
    points = []
    for index, start in enumerate(starts):
        readers = changes.get(index, readers)
        points.append(ReaderPoint(timezone.localtime(start), readers))
    return points


def merged(stored: Mapping[str, history.Sums], live: Sequence[Any]) -> Counter[int]:
    """Merges SQL's history of models with Redis's counters of their last hours.

    `stored` is by the label of the model with the tag of a partition, `live` has the results of
    `hours_of_models.calls`. Returns views by hour (since 1970), of all models together.
    """
    live_by_model = hours_of_models.by_model(live)
    views_by_hour = Counter[int]()
    is_partition_sound = cache(is_sound)
    for model, rows in stored.items():
        stored_by_hour = rows.by_hour()
        views_by_hour.update(stored_by_hour)
        for hour, count in live_by_model[model].items():
            in_sql = stored_by_hour.get(hour, 0)
            # An unsettled count does not include SQL's views, so both are added up. But if Redis
            # was restored from an older snapshot, it may include them: then the higher one is
            # taken.
            if count.is_settled or not in_sql or not is_partition_sound(keys.tag_in(model)):
                views_by_hour[hour] += max(0, count.views - in_sql)
            else:
                views_by_hour[hour] += count.views
    return views_by_hour


class _Periods(NamedTuple):
    """Periods without a gap between them."""

    starts: list[datetime]  # in UTC
    hours: range  # since 1970, those that begin in the periods


def _end(until: datetime | None) -> datetime:
    """Returns the exclusive end of a series; by default a moment after now, so that the present
    period is there from its first moment on.
    """
    if until is not None:
        return buckets.now(until)
    return buckets.now() + local_time.MOMENT


def _periods(
    since: datetime | None, end: datetime, *, by: local_time.Period, hours: int
) -> _Periods:
    """Returns the periods from `since` up to the end, by default those of the last `hours` hours.

    Raises ValueError for an unknown period.
    """
    begin = buckets.now(since) if since else end - timedelta(hours=hours - 1)
    starts = local_time.period_starts(begin, end, by=by)
    return _Periods(starts, local_time.hours_between(starts[0] if starts else end, end))


def _period_of(hour: int, starts: Sequence[datetime]) -> int:
    """Returns the index of the period in which the hour (since 1970) begins."""
    return max(0, bisect_right(starts, buckets.hour_start(hour)) - 1)


def _views_of_models(models: Sequence[type[Model]], hours: range) -> Counter[int]:
    """Returns the views of all objects of the models by hour (since 1970)."""
    labels = [subjects.label_of(model) for model in models]
    stored_labels = [f"{label}{tag}" for label in labels for tag in keys.past_tags()]
    # SQL is read before Redis. In the other order, a count that is settled and written in between
    # would be in both, and count twice.
    stored = history.sums(stored_labels, since=hours.start, until=hours.stop)
    hours_in_redis = range(max(hours.start, hours.stop - hours_of_models.MODEL_HOURS), hours.stop)
    live = fail_open(scripts.run_all, [], *hours_of_models.calls(labels, hours_in_redis))
    return merged(stored, live)


def _numbers_of_object(obj: Model, hours: range, *, count: Count) -> Counter[int]:
    """Returns the views of an object, or those that reached a stage, by hour (since 1970).

    They are those of SQL's history, and those that are not in history yet.
    """
    subject = subjects.subject_of(obj)
    name = subject if count == "views" else history.of_stage(count, subject)
    column = subjects.subject_column(name)
    sums = history.sums([column], since=hours.start, until=hours.stop)
    stored = Counter(sums[column].by_hour())
    last_row: Any = databases.rows(History).filter(subject=column).order_by("hour").last()
    present_hour = buckets.hour_index(buckets.now())
    if count == "views":
        fresh = _fresh_views(obj, last_row, present_hour=present_hour)
    else:
        stored_count = last_row.views if last_row else 0
        # Redis has no stages by hour, so the new ones are in the present hour.
        live_count = reached(obj, count)
        fresh = Counter({present_hour: live_count - stored_count})
    return stored + Counter({hour: number for hour, number in fresh.items() if hour in hours})


def _fresh_views(obj: Model, last_row: Any, *, present_hour: int) -> Counter[int]:
    """Returns the views of the object that are not in history yet, by hour (since 1970).

    `last_row` is the last row of the object's history, or None. Redis has the object's views of
    each of the last hours, which may include views that are in history already: so the latest ones
    are taken, until they are as many as the total has risen since the last row.
    """
    first = present_hour - live_counters.HOURS_KEPT + 1
    if last_row:
        first = max(first, last_row.hour)
    hours = range(first, present_hour + 1)
    counts = fail_open(
        live_counters.subject_hours, [0] * len(hours), hours, subject=subjects.subject_of(obj)
    )
    # Without history, views from before these hours are in no hour: they were counted before
    # history was turned on.
    remaining = sum(counts)
    if last_row:
        remaining = views([obj])[obj] - last_row.views
    fresh: Counter[int] = Counter()
    for hour, number in sorted(zip(hours, counts, strict=True), reverse=True):
        fresh[hour] = min(number, max(0, remaining))
        remaining -= fresh[hour]
    if last_row and remaining > 0:  # Redis has lost these hours
        fresh[min(last_row.hour + 1, present_hour)] += remaining
    return fresh
