"""Views and readers over time, out of SQL's history and Redis."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Literal, NamedTuple

from asgiref.sync import sync_to_async
from django.db.models import Model

from readtrack import buckets
from readtrack.buckets import Period
from readtrack.models import ReaderHistory
from readtrack.reports.breakdowns import reads
from readtrack.reports.live import is_sound, views
from readtrack.sql import history
from readtrack.sql.history import Sums
from readtrack.store import counters, keys, read_state, scripts
from readtrack.store.circuit import fail_open
from readtrack.subjects import counted_models, label_of, subject_column, subject_of

OBJECT_HOURS = keys.hour.ttl // keys.HOUR  # hours of a subject that Redis keeps


class Point(NamedTuple):
    """The views of a period, and its start (aware)."""

    start: datetime
    views: int


class ReaderPoint(NamedTuple):
    """The number of readers of a category at the end of a period, and the start of the period (aware)."""

    start: datetime
    readers: int


def series(
    of: Model | type[Model] | None = None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    by: Period = "hour",
    hours: int = 24,
    count: Literal["views", "reads"] = "views",
) -> list[Point]:
    """Returns the views of an object, a model or (None) the whole site by period, without gaps, oldest first.

    With `count="reads"` it returns the reads of an object, in the place of views.

    Periods are hours, days, weeks or months of the current time zone. The first and the last are whole, or go up to
    now. `until` is exclusive and defaults to now, `since` to `hours` before it; naive times are of TIME_ZONE. Hours
    older than HISTORY_DAYS are in the last hour of their day. While Redis is down, views that are not flushed are
    missing. Raises ValueError for an unknown period, and TypeError for reads of more than an object.
    """
    starts, within = _periods(since, buckets.now(until), by=by, hours=hours)
    if not starts:
        return []
    hourly = _hourly_reads if count == "reads" else _hourly_views
    sums = [0] * len(starts)
    for hour, number in hourly(of, since=within.start, until=within.stop).items():
        sums[_place(starts, hour)] += number
    return [Point(*pair) for pair in zip(starts, sums, strict=True)]


def _periods(since: datetime | None, end: datetime, *, by: Period, hours: int) -> tuple[list[datetime], range]:
    """Returns the starts of the periods, and the hours (since 1970) from the first start up to the end."""
    starts = buckets.period_starts(buckets.now(since) if since else end - timedelta(hours=hours - 1), end, by=by)
    last = buckets.hour_index(end - timedelta(microseconds=1))
    return starts, range(buckets.hour_index(starts[0]) if starts else last, last + 1)


def _place(starts: Sequence[datetime], hour: int) -> int:
    """Returns the position of the hour's period. An hour in two periods (half-hour zones) is in the earlier one."""
    return max(0, bisect_right(starts, buckets.hour_start(hour)) - 1)


def reader_series(
    category: Model,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    by: Period = "hour",
    hours: int = 24,
) -> list[ReaderPoint]:
    """Returns the number of readers of the category at the end of each period, as full flushes stored it.

    Periods are those of `series`. A period without a flush has the number of the one before, 0 before the first
    flush. The present period has the live number, or while Redis is down the stored one.
    """
    now = buckets.now()
    end = buckets.now(until) if until else now
    starts, within = _periods(since, end, by=by, hours=hours)
    if not starts:
        return []
    subject = subject_of(category)
    column, ends = subject_column(subject), {"since": within.start, "until": within.stop}
    known, rows = history.sums([column], **ends, model=ReaderHistory)[column]
    found = {_place(starts, hour): count for hour, count in rows.items()}
    if starts[0] <= now <= end and (live := fail_open(read_state.count_readers, {}, [subject])):
        found[bisect_right(starts, now) - 1] = live[subject]
    return [ReaderPoint(start, known := found.get(place, known)) for place, start in enumerate(starts)]


def _hourly_views(of: Model | type[Model] | None, *, since: int, until: int) -> Counter[int]:
    """Returns the views of an object, a model or (None) all models together by hour index."""
    if isinstance(of, Model):
        subject = subject_of(of)
        [found] = history.sums([subject_column(subject)], since=since, until=until).values()
        return Counter(found.by_hour()) + _not_flushed(of, subject, since=since, until=until)
    labels = [*map(label_of, [of] if of else counted_models())]
    # SQL comes first, because a count that is settled and written in between would count twice.
    stored = history.sums([f"{label}{tag}" for label in labels for tag in keys.past_tags()], since=since, until=until)
    calls = counters.model_hours(labels, range(max(since, until - counters.MODEL_HOURS), until))
    return merged(stored, fail_open(scripts.run_all, [], *calls))


def merged(stored: Mapping[str, Sums], live: Sequence[Any]) -> Counter[int]:
    """Returns the views by hour index, of what SQL stores of models and of Redis's answers about their last hours."""
    by_model, found, asked = counters.by_model(live), Counter[int](), cache(is_sound)
    for model, rows in stored.items():
        known = rows.by_hour()
        found.update(known)
        for hour, count in by_model[model].items():
            before = known.get(hour, 0)
            is_whole = count.is_settled or not before or not asked(keys.tag_in(model))
            found[hour] += max(0, count.views - before) if is_whole else count.views
    return found


def _hourly_reads(of: Any, *, since: int, until: int) -> Counter[int]:
    if not isinstance(of, Model):
        raise TypeError("Reads over time are known of an object only.")
    column = subject_column(history.of_reads(subject_of(of)))
    found = Counter(history.sums([column], since=since, until=until)[column].by_hour())
    stored = history.last(column)
    present = buckets.hour_index(buckets.now())
    fresh = reads(of) - (stored.views if stored else 0)
    return found + Counter({present: fresh} if since <= present < until else {})


def _not_flushed(obj: Model, subject: str, *, since: int, until: int) -> Counter[int]:
    """Returns the views that are in no row of history yet, by the hour in which Redis counted them."""
    last = history.last(subject_column(subject))
    present = buckets.hour_index(buckets.now())
    hours = range(max(last.hour if last else 0, present - OBJECT_HOURS), present + 1)
    counts = fail_open(
        counters.subject_hours, [0] * len(hours), [buckets.hour_start(hour) for hour in hours], subject=subject
    )
    # Without any history, views that are older than Redis's hours were counted before HISTORY was turned on.
    rest = views([obj])[obj] - last.views if last else sum(counts)
    fresh: Counter[int] = Counter()
    for hour, count in sorted(zip(hours, counts, strict=True), reverse=True):
        fresh[hour] = min(count, max(0, rest))
        rest -= fresh[hour]
    if last and rest > 0:
        fresh[last.hour + 1 if last.hour < present else present] += rest
    return Counter({hour: count for hour, count in fresh.items() if since <= hour < until})


areader_series = sync_to_async(reader_series)
