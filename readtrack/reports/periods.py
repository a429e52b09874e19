"""Numbers of a period, out of SQL's history and live: views and readers by hour, the most viewed,
and what trends.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from heapq import nlargest
from typing import Any, Literal, NamedTuple

from django.db.models import BigIntegerField, Case, Model, QuerySet, Value, When

from readtrack import buckets, subjects
from readtrack.models import History, ReaderHistory, Tracked
from readtrack.reports.live import is_sound, page_state, reads, views
from readtrack.sql import databases, history, period_gains, popular, row_counts
from readtrack.sql.popular import COLUMNS, DAYS, LISTED, By
from readtrack.sql.row_counts import RowCounts
from readtrack.store import counters, keys, read_state, scripts
from readtrack.store.circuit import fail_open
from readtrack.store.trending import top_subjects
from readtrack.subjects import AnyModel

AT_ONCE = 40  # candidates whose numbers are computed together

Ranked = list[tuple[Any, int]]  # primary keys and numbers, highest first


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
    naive times are of TIME_ZONE. Hours older than HISTORY_DAYS are in the last hour of their day.
    While Redis is down, views that are not flushed are missing. Raises ValueError for an unknown
    period, and TypeError for reads of more than an object.
    """
    starts, within = _periods(since, buckets.now(until), by=by, hours=hours)
    if not starts:
        return []
    if isinstance(of, Model):
        found = _hours_of(of, within, count=count)
    elif count == "reads":
        raise TypeError("Reads over time are known of an object only.")
    else:
        labels = [*map(subjects.label_of, [of] if of else subjects.counted_models())]
        names = [f"{label}{tag}" for label in labels for tag in keys.past_tags()]
        # SQL comes first, because a count that is settled and written in between would count twice.
        stored = history.sums(names, since=within.start, until=within.stop)
        live = range(max(within.start, within.stop - counters.MODEL_HOURS), within.stop)
        found = merged(stored, fail_open(scripts.run_all, [], *counters.model_hours(labels, live)))
    sums = [0] * len(starts)
    for hour, number in found.items():
        sums[_place(starts, hour)] += number
    return [Point(*pair) for pair in zip(starts, sums, strict=True)]


def _periods(
    since: datetime | None, end: datetime, *, by: buckets.Period, hours: int
) -> tuple[list[datetime], range]:
    """Returns the starts of the periods, and the hours (since 1970) from the first start up to the
    end.
    """
    starts = buckets.period_starts(
        buckets.now(since) if since else end - timedelta(hours=hours - 1), end, by=by
    )
    last = buckets.hour_index(end - timedelta(microseconds=1))
    return starts, range(buckets.hour_index(starts[0]) if starts else last, last + 1)


def _place(starts: Sequence[datetime], hour: int) -> int:
    """Returns the position of the hour's period. An hour in two periods (half-hour zones) is in the
    earlier one.
    """
    return max(0, bisect_right(starts, buckets.hour_start(hour)) - 1)


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
    known, rows = history.sums(
        [column], since=within.start, until=within.stop, model=ReaderHistory
    )[column]
    found = {_place(starts, hour): count for hour, count in rows.items()}
    if starts[0] <= now <= end and (live := fail_open(read_state.count_readers, {}, [subject])):
        found[bisect_right(starts, now) - 1] = live[subject]
    return [
        ReaderPoint(start, known := found.get(place, known)) for place, start in enumerate(starts)
    ]


def merged(stored: Mapping[str, history.Sums], live: Sequence[Any]) -> Counter[int]:
    """Returns the views by hour index, of what SQL stores of models and of Redis's answers about
    their last hours.
    """
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
    """Returns the views or reads of an object by hour index; those in no row of history yet by
    Redis's hours.
    """
    subject = subjects.subject_of(obj)
    column = subjects.subject_column(history.of_reads(subject) if count == "reads" else subject)
    found = Counter(history.sums([column], since=within.start, until=within.stop)[column].by_hour())
    last = databases.rows(History).filter(subject=column).order_by("hour").last()
    present = buckets.hour_index(buckets.now())
    fresh: Counter[int] = Counter()
    if count == "reads":
        fresh[present] = reads(obj) - (last.views if last else 0)
    else:
        hours = range(
            max(last.hour if last else 0, present - keys.hour.ttl // keys.HOUR), present + 1
        )
        counts = fail_open(counters.subject_hours, [0] * len(hours), hours, subject=subject)
        # Without any history, views that are older than Redis's hours were counted before HISTORY
        # was turned on.
        rest = views([obj])[obj] - last.views if last else sum(counts)
        for hour, number in sorted(zip(hours, counts, strict=True), reverse=True):
            fresh[hour] = min(number, max(0, rest))
            rest -= fresh[hour]
        if last and rest > 0:
            fresh[last.hour + 1 if last.hour < present else present] += rest
    return found + Counter({hour: number for hour, number in fresh.items() if hour in within})


def most_viewed(
    of: "type[AnyModel] | QuerySet[AnyModel]",
    limit: int = 10,
    *,
    days: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    by: By = "views",
) -> "list[AnyModel] | QuerySet[AnyModel]":
    """Returns the rows of a model or of a queryset with the most views, most viewed first; none
    without views.

    Of all time it is a list, by the counts in SQL. With `days`, or with `since` and perhaps
    `until`, it is a queryset of the most viewed of the last days or of these hours, with the number
    as `in_period`; `by` may be "visitors", those who came for the first time, or "reads", as of the
    last flush. 1, 7, 30 and 90 days are quick; others read all history of these hours, unless the
    queryset has at most 1,000 rows. Raises ValueError for any other period or `by`, and TypeError
    for a model whose views are not counted.
    """
    rows = of._default_manager.all() if isinstance(of, type) else of
    if problem := subjects.why_not_counted(rows.model):
        raise TypeError(problem)
    if by not in COLUMNS:
        raise ValueError(f"Rows are ordered by 'views', 'visitors' or 'reads', not by {by!r}.")
    if days is None and since is None and until is None and by == "views":
        return [row for row, _ in row_counts.most_viewed(rows, limit)]
    found = _most(rows, limit, _hours(days, since, until), days=days, by=by)
    numbers = Case(
        *(When(pk=pk, then=Value(count)) for pk, count in found),
        default=0,
        output_field=BigIntegerField(),
    )
    some: Any = rows.filter(pk__in=[pk for pk, _ in found]).annotate(in_period=numbers)
    return some.order_by("-in_period", "-pk")  # type: ignore[no-any-return]


def views_in(
    objs: Iterable[AnyModel],
    *,
    days: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> dict[AnyModel, int]:
    """Returns the views of each object in the last days (this hour is the last one), or in the
    hours of a range.

    Takes one round trip and two queries for up to 1,000 objects, which read their rows of history
    in these hours. Raises ValueError without a period, and TypeError for an object that has no
    counts.
    """
    names = {obj: subjects.counted_subject_of(obj) for obj in subjects.listed(objs)}
    found = _counts([*names.values()], _hours(days, since, until), "views", {})
    return {obj: found[subject] for obj, subject in names.items()}


def _hours(days: int | None, since: datetime | None, until: datetime | None) -> range:
    """Returns the hours of a period since 1970."""
    if (days is None) == (since is None) or (days is not None and (until or days < 1)):
        raise ValueError("A period is days=7 (1 or more), or since=… with or without until=….")
    last = buckets.hour_index(buckets.now(until) - timedelta(microseconds=1))
    return range(
        buckets.hour_index(buckets.now(since)) if since else last + 1 - 24 * (days or 0), last + 1
    )


def _most(rows: "QuerySet[Any]", limit: int, hours: range, *, days: int | None, by: By) -> Ranked:
    label = subjects.label_of(rows.model)
    named = history.of_reads(label) if by == "reads" else label
    if days in DAYS:
        entries = [*popular.entries(named, days=days, by=COLUMNS[by])[:LISTED]]
        rest = (
            entries[-1][1] if len(entries) == LISTED else 0
        )  # that the others have at most, but for fresh views
        fresh = dict(fail_open(top_subjects, [], LISTED, at=buckets.now(), label=label))
        found = _best(rows, limit, entries, hours, by, rest, fresh)
        if not rest or len(found) == limit:
            return found
    pks = list(rows.order_by().values_list("pk", flat=True)[: scripts.SLICE + 1])
    if len(pks) <= scripts.SLICE:
        own = {subjects.subject_of_row(rows.model, pk): pk for pk in pks}
        return _highest(
            ((own[subject], count) for subject, count in _counts([*own], hours, by, {}).items()),
            limit,
        )
    if days in DAYS:
        return found
    scanned = popular.most([named], since=hours.start, until=hours.stop)
    numbers = [(subject, getattr(counts, COLUMNS[by])) for subject, counts in scanned]
    entries = [(subject, number, hours.start, hours.stop, number) for subject, number in numbers]
    return _best(rows, limit, entries, hours, by, rest=0, fresh={})


def _best(
    rows: "QuerySet[Any]",
    limit: int,
    listed: Iterable[Any],
    hours: range,
    by: By,
    rest: int,
    fresh: Mapping[str, int],
) -> Ranked:
    """Returns the best rows among the entries of a list and those with fresh views, which have
    `rest` beside them.
    """
    bounds = {subject: rest + views for subject, views in fresh.items()}
    known: dict[str, Any] = {}
    for name, bound, since, until, number in listed:
        subject = name.removeprefix(history.of_reads(""))
        bounds[subject] = bound + fresh.get(subject, 0)
        if since:
            known[subject] = since, until, number
    pks = {
        subject: pk
        for by_pk in subjects.rows_by_model(bounds).values()
        for pk, subject in by_pk.items()
    }
    ordered = sorted(pks, key=bounds.__getitem__, reverse=True)
    is_whole = (
        not rows.query.where
        and issubclass(rows.model, Tracked)
        and subjects.owner(rows.model) is rows.model
    )
    if not is_whole:  # a child has fewer rows
        existing = {*rows.order_by().filter(pk__in=pks.values()).values_list("pk", flat=True)}
        ordered = [subject for subject in ordered if pks[subject] in existing]
    best: Ranked = []
    for some in scripts.sliced(ordered, max(limit, AT_ONCE)):
        if len(best) == limit and best[-1][1] > bounds[some[0]]:
            break  # the following have less
        # Of a whole model the query of the counts tells which rows exist. To ask for all takes most
        # of a list's time.
        stored = row_counts.by_subject(some) if is_whole else None
        counts = _counts([*some] if stored is None else [*stored], hours, by, known, stored)
        best = _highest(
            [*best, *((pks[subject], count) for subject, count in counts.items())], limit
        )
    return best


def _highest(numbers: Iterable[tuple[Any, int]], limit: int) -> Ranked:
    return nlargest(
        limit, ((pk, count) for pk, count in numbers if count), key=lambda pair: pair[::-1]
    )


def _counts(
    names: Sequence[str],
    hours: range,
    by: By,
    known: Mapping[str, Any],
    stored: Mapping[str, RowCounts] | None = None,
) -> dict[str, int]:
    """Returns the number of each subject in these hours: that of its list, without the hours that
    are over, or a sum.

    Views that are not flushed are in it, if the hours go up to now. `known` has since, until and
    number of a list; `stored` counts that were read already.
    """
    entries = {subject: known.get(subject, (hours.start, hours.start, 0)) for subject in names}
    found = {subject: number for subject, (_, _, number) in entries.items()}
    for since, until in {(since, until) for since, until, _ in entries.values()}:
        own = [subject for subject, entry in entries.items() if entry[:2] == (since, until)]
        columns = [
            subjects.subject_column(history.of_reads(subject) if by == "reads" else subject)
            for subject in own
        ]
        for sign, first, end in ((-1, since, hours.start), (1, until, hours.stop)):
            gained = period_gains.gains(columns, since=first, until=end)
            for subject, column in zip(own, columns, strict=True):
                found[subject] += sign * getattr(gained.get(column), COLUMNS[by], 0)
    if by == "views" and hours.stop > buckets.hour_index(buckets.now()):
        read = row_counts.by_subject(names) if stored is None else stored
        counts = {subject: read[subject].views if subject in read else 0 for subject in names}
        live = page_state(counts=counts).views
        found = {subject: found[subject] + live[subject] - counts[subject] for subject in names}
    return {subject: max(0, count) for subject, count in found.items()}


class Trend(NamedTuple):
    """A trending object, and its views in these hours."""

    obj: Model
    views: int


def trending(
    limit: int = 10,
    *,
    hours: int | None = None,
    model: type[Model] | None = None,
    at: datetime | None = None,
) -> list[Trend]:
    """Returns the most viewed objects of the last hour, most viewed first; none that are deleted.

    The list is some 30 seconds old, because a task computes it. With `hours` (24, 168, 720 or 2160)
    they are those of `most_viewed` in the last days, of one model or of all. Raises ValueError for
    others.
    """
    if hours is not None:
        if hours not in [days * 24 for days in DAYS]:
            raise ValueError(
                f"Trending is kept for {', '.join(str(days * 24) for days in DAYS)} hours, not {hours}."
            )
        models = [model] if model else subjects.counted_models()
        lists: list[Any] = [most_viewed(one, limit, days=hours // 24) for one in models]
        trends = (Trend(obj, obj.in_period) for objs in lists for obj in objs)
        return sorted(trends, key=lambda trend: trend.views, reverse=True)[:limit]
    label = subjects.label_of(model) if model else ""
    found = fail_open(top_subjects, [], limit, at=buckets.now(at), label=label)
    pks_by_model = subjects.rows_by_model(subject for subject, _ in found)
    rows = [
        row
        for model, pks in pks_by_model.items()
        for row in model._default_manager.filter(pk__in=pks)
    ]
    objs = {subjects.subject_of(row): row for row in rows}
    return [Trend(objs[subject], views) for subject, views in found if subject in objs]
