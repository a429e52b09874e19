"""Views and readers over time, out of SQL's history and Redis."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Literal, NamedTuple

from django.db.models import Model

from readtrack import buckets
from readtrack.models import History, ReaderHistory
from readtrack.reports.breakdowns import reads
from readtrack.reports.live import is_sound, views
from readtrack.sql import history
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
    by: buckets.Period = "hour",
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
    if isinstance(of, Model):
        found = _hours_of(of, within, count=count)
    elif count == "reads":
        raise TypeError("Reads over time are known of an object only.")
    else:
        labels = [*map(label_of, [of] if of else counted_models())]
        names = [f"{label}{tag}" for label in labels for tag in keys.past_tags()]
        # SQL comes first, because a count that is settled and written in between would count twice.
        stored = history.sums(names, since=within.start, until=within.stop)
        live = range(max(within.start, within.stop - counters.MODEL_HOURS), within.stop)
        found = merged(stored, fail_open(scripts.run_all, [], *counters.model_hours(labels, live)))
    sums = [0] * len(starts)
    for hour, number in found.items():
        sums[_place(starts, hour)] += number
    return [Point(*pair) for pair in zip(starts, sums, strict=True)]


def _periods(since: datetime | None, end: datetime, *, by: buckets.Period, hours: int) -> tuple[list[datetime], range]:
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
    by: buckets.Period = "hour",
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
    known, rows = history.absolute(ReaderHistory, subject_column(subject), since=within.start, until=within.stop)
    found = {_place(starts, hour): count for hour, count in rows.items()}
    if starts[0] <= now <= end and (live := fail_open(read_state.count_readers, {}, [subject])):
        found[bisect_right(starts, now) - 1] = live[subject]
    return [ReaderPoint(start, known := found.get(place, known)) for place, start in enumerate(starts)]


def merged(stored: Mapping[str, history.Sums], live: Sequence[Any]) -> Counter[int]:
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


def _hours_of(obj: Model, within: range, *, count: str) -> Counter[int]:
    """Returns the views or reads of an object by hour index; those in no row of history yet by Redis's hours."""
    subject = subject_of(obj)
    column = subject_column(history.of_reads(subject) if count == "reads" else subject)
    found = Counter(history.absolute(History, column, since=within.start, until=within.stop).by_hour())
    last, present = history.last(column), buckets.hour_index(buckets.now())
    fresh: Counter[int] = Counter()
    if count == "reads":
        fresh[present] = reads(obj) - (last.views if last else 0)
    else:
        hours = range(max(last.hour if last else 0, present - OBJECT_HOURS), present + 1)
        times = [buckets.hour_start(hour) for hour in hours]
        counts = fail_open(counters.subject_hours, [0] * len(hours), times, subject=subject)
        # Without any history, views that are older than Redis's hours were counted before HISTORY was turned on.
        rest = views([obj])[obj] - last.views if last else sum(counts)
        for hour, number in sorted(zip(hours, counts, strict=True), reverse=True):
            fresh[hour] = min(number, max(0, rest))
            rest -= fresh[hour]
        if last and rest > 0:
            fresh[last.hour + 1 if last.hour < present else present] += rest
    return found + Counter({hour: number for hour, number in fresh.items() if hour in within})
