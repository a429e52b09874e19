"""The most viewed objects of a period or of now, and the views of objects in it: out of SQL's history, and live."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import nlargest
from operator import attrgetter
from typing import Any, NamedTuple

from django.db.models import BigIntegerField, Case, Model, QuerySet, Value, When

from readtrack import buckets
from readtrack.models import Tracked
from readtrack.reports.live import page_state
from readtrack.sql import popular, row_counts
from readtrack.sql.history import of_reads
from readtrack.sql.popular import COLUMNS, DAYS, LISTED, By
from readtrack.sql.row_counts import RowCounts
from readtrack.store import scripts
from readtrack.store.circuit import fail_open
from readtrack.store.trending import top_subjects
from readtrack.subjects import (
    AnyModel,
    counted_models,
    counted_subject_of,
    label_of,
    listed,
    owner,
    rows_by_model,
    subject_column,
    subject_of,
    subject_of_row,
    why_not_counted,
)

AT_ONCE = 40  # candidates whose numbers are computed together

Ranked = list[tuple[Any, int]]  # primary keys and numbers, highest first


def most_viewed(
    of: "type[AnyModel] | QuerySet[AnyModel]",
    limit: int = 10,
    *,
    days: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    by: By = "views",
) -> "list[AnyModel] | QuerySet[AnyModel]":
    """Returns the rows of a model or of a queryset with the most views, most viewed first; none without views.

    Of all time it is a list, by the counts in SQL. With `days`, or with `since` and perhaps `until`, it is a queryset
    of the most viewed of the last days or of these hours, with the number as `in_period`; `by` may be "visitors", those
    who came for the first time, or "reads", as of the last flush. 1, 7, 30 and 90 days are quick; others read all
    history of these hours, unless the queryset has at most 1,000 rows. Raises ValueError for any other period or `by`,
    and TypeError for a model whose views are not counted.
    """
    rows = of._default_manager.all() if isinstance(of, type) else of
    if problem := why_not_counted(rows.model):
        raise TypeError(problem)
    if by not in COLUMNS:
        raise ValueError(f"Rows are ordered by 'views', 'visitors' or 'reads', not by {by!r}.")
    if days is None and since is None and until is None and by == "views":
        return [row for row, _ in row_counts.most_viewed(rows, limit)]
    found = _most(rows, limit, _hours(days, since, until), days=days, by=by)
    numbers = Case(*(When(pk=pk, then=Value(count)) for pk, count in found), default=0, output_field=BigIntegerField())
    some: Any = rows.filter(pk__in=[pk for pk, _ in found]).annotate(in_period=numbers)
    return some.order_by("-in_period", "-pk")  # type: ignore[no-any-return]


def views_in(
    objs: Iterable[AnyModel], *, days: int | None = None, since: datetime | None = None, until: datetime | None = None
) -> dict[AnyModel, int]:
    """Returns the views of each object in the last days (this hour is the last one), or in the hours of a range.

    Takes one round trip and two queries for up to 1,000 objects, which read their rows of history in these hours.
    Raises ValueError without a period, and TypeError for an object that has no counts.
    """
    subjects = {obj: counted_subject_of(obj) for obj in listed(objs)}
    found = _counts([*subjects.values()], {}, _hours(days, since, until), by="views")
    return {obj: found[subject] for obj, subject in subjects.items()}


def _hours(days: int | None, since: datetime | None, until: datetime | None) -> range:
    """Returns the hours of a period since 1970."""
    if (days is None) == (since is None) or (days is not None and (until or days < 1)):
        raise ValueError("A period is days=7 (1 or more), or since=… with or without until=….")
    last = buckets.hour_index(buckets.now(until) - timedelta(microseconds=1))
    return range(buckets.hour_index(buckets.now(since)) if since else last + 1 - 24 * (days or 0), last + 1)


def _most(rows: "QuerySet[Any]", limit: int, hours: range, *, days: int | None, by: By) -> Ranked:
    label = of_reads(label_of(rows.model)) if by == "reads" else label_of(rows.model)
    if days in DAYS:
        entries = popular.entries(label, days=days, by=COLUMNS[by])
        fresh = dict(fail_open(top_subjects, [], LISTED, at=buckets.now(), label=label_of(rows.model)))
        for most in (min(4 * AT_ONCE, LISTED), LISTED):  # few are often enough
            found, is_sure = _best(rows, limit, entries[:most], hours, by=by, fresh=fresh, most=most)
            if is_sure or (most == LISTED and len(found) == limit):
                return found
    pks = list(rows.order_by().values_list("pk", flat=True)[: scripts.SLICE + 1])
    if len(pks) <= scripts.SLICE:
        subjects = {subject_of_row(rows.model, pk): pk for pk in pks}
        counts = _counts([*subjects], {}, hours, by=by)
        return _highest({pk: counts[subject] for subject, pk in subjects.items()}, limit)
    if days in DAYS:
        return found
    scanned = popular.most([label], since=hours.start, until=hours.stop)
    ends = (hours.start, hours.stop)
    numbers = [(subject, getattr(counts, COLUMNS[by])) for subject, counts in scanned]
    listing = [(subject, number, *ends, number) for subject, number in sorted(numbers, key=lambda entry: -entry[1])]
    return _best(rows, limit, listing, hours, by=by)[0]


def _best(
    rows: "QuerySet[Any]",
    limit: int,
    listed: Iterable[Any],
    hours: range,
    *,
    by: By,
    fresh: Mapping[str, int] = {},
    most: int = 0,
) -> tuple[Ranked, bool]:
    """Returns the best rows among the entries and the fresh ones, and True if no other row can be better."""
    entries = [(name.removeprefix(of_reads("")), *others) for name, *others in listed]
    rest = entries[-1][1] if entries and len(entries) == most else 0  # that the others have at most, but for fresh
    bounds = {subject: rest + views for subject, views in fresh.items()}
    bounds.update((subject, bound + fresh.get(subject, 0)) for subject, bound, *_ in entries)
    known = {subject: own for subject, _, *own in entries if own[0]}
    ordered = sorted(bounds, key=lambda subject: bounds[subject], reverse=True)
    pks = {subject: pk for by_pk in rows_by_model(ordered).values() for pk, subject in by_pk.items()}
    found: dict[Any, int] = {}
    best: Ranked = []
    for stored in _existing(rows, pks, max(limit, AT_ONCE)):
        some = [*stored]
        if len(best) == limit and best[-1][1] > bounds[some[0]]:
            break  # the following have less
        if rest and most < LISTED and not best and len(some) < limit:
            break  # the whole list is needed
        counts = _counts(some, known, hours, by=by, stored=stored)
        found.update((pks[subject], count) for subject, count in counts.items())
        best = _highest(found, limit)
    return best, not rest or (len(best) == limit and best[-1][1] > rest)


def _existing(rows: "QuerySet[Any]", pks: Mapping[str, Any], size: int) -> Iterator[Mapping[str, RowCounts | None]]:
    """Yields the subjects that are among the rows, so many at a time, with their counts if the same query reads these.

    Of a whole model the first are looked up alone. They are often enough, and to ask for a thousand rows takes most of
    the time of a list.
    """
    subjects, is_whole = [*pks], not rows.query.where
    first = 2 * size if is_whole else 0
    for part in filter(None, (subjects[:first], subjects[first:])):
        stored: Mapping[str, RowCounts | None]
        if is_whole and issubclass(rows.model, Tracked) and owner(rows.model) is rows.model:  # a child has fewer rows
            stored = row_counts.by_subject(part)
        else:
            own = {*rows.order_by().filter(pk__in=[pks[subject] for subject in part]).values_list("pk", flat=True)}
            stored = {subject: None for subject in part if pks[subject] in own}
        for some in scripts.sliced([subject for subject in part if subject in stored], size):
            yield {subject: stored[subject] for subject in some}


def _highest(counts: Mapping[Any, int], limit: int) -> Ranked:
    return nlargest(limit, ((pk, count) for pk, count in counts.items() if count), key=lambda pair: pair[::-1])


def _counts(
    subjects: Sequence[str],
    known: Mapping[str, Any],
    hours: range,
    *,
    by: By,
    stored: Mapping[str, RowCounts | None] = {},
) -> dict[str, int]:
    """Returns the number of each subject in these hours: that of its list, without the hours that are over, or a sum.

    Views that are not flushed are in it, if the hours go up to now. `known` has since, until and number of a list;
    `stored` counts that were read already.
    """
    columns = {subject: subject_column(of_reads(subject) if by == "reads" else subject) for subject in subjects}
    own = [columns[subject] for subject in subjects if subject in known]
    since, until, _ = next((known[subject] for subject in subjects if subject in known), (0, 0, 0))
    found = {subject: known[subject][2] if subject in known else 0 for subject in subjects}
    others = [column for column in columns.values() if column not in own]
    for sign, some, *ends in (
        (1, others, hours.start, hours.stop),
        (-1, own, since, hours.start),
        (1, own, until, hours.stop),
    ):
        gained = popular.gains(some, since=ends[0], until=ends[1])
        for subject, column in columns.items():
            found[subject] += sign * getattr(gained.get(column), COLUMNS[by], 0)
    if by == "views" and hours.stop > buckets.hour_index(buckets.now()):
        read = {subject: own for subject, own in stored.items() if own}
        read |= row_counts.by_subject([subject for subject in subjects if subject not in read])
        counts = {subject: read[subject].views if subject in read else 0 for subject in subjects}
        live = page_state(counts=counts).views
        found = {subject: found[subject] + live[subject] - counts[subject] for subject in subjects}
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

    The list is some 30 seconds old, because a task computes it. With `hours` (24, 168, 720 or 2160) they are those of
    `most_viewed` in the last days, of one model or of all. Raises ValueError for others.
    """
    if hours is not None:
        if hours not in [days * 24 for days in DAYS]:
            raise ValueError(f"Trending is kept for {', '.join(str(days * 24) for days in DAYS)} hours, not {hours}.")
        models = [model] if model else counted_models()
        lists: list[Any] = [most_viewed(one, limit, days=hours // 24) for one in models]
        trends = (Trend(obj, obj.in_period) for objs in lists for obj in objs)
        return sorted(trends, key=attrgetter("views"), reverse=True)[:limit]
    label = label_of(model) if model else ""
    found = fail_open(top_subjects, [], limit, at=buckets.now(at), label=label)
    pks_by_model = rows_by_model(subject for subject, _ in found)
    rows = [row for model, pks in pks_by_model.items() for row in model._default_manager.filter(pk__in=pks)]
    objs = {subject_of(row): row for row in rows}
    return [Trend(objs[subject], views) for subject, views in found if subject in objs]
