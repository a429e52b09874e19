"""Objects with the most views, visitors or reads in a period, and the views of objects in it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nlargest
from typing import Any, NamedTuple

from django.db.models import BigIntegerField, Case, QuerySet, Value, When

from readtrack import buckets, subjects
from readtrack.models import Tracked
from readtrack.reports.page_state import page_state
from readtrack.sql import history, period_gains, popular, row_counts
from readtrack.sql.popular import COLUMNS, DAYS, LISTED, By
from readtrack.sql.row_counts import RowCounts
from readtrack.store import scripts
from readtrack.store.circuit import fail_open
from readtrack.store.trending import top_subjects
from readtrack.subjects import AnyModel

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
    """Returns the rows of a model or of a queryset with the most views, most viewed first; none
    without views.

    Of all time it is a list, by the counts in SQL. With `days`, or with `since` and perhaps
    `until`, it is a queryset of the most viewed of the last days or of these hours, with the number
    as `in_period`; `by` may be "visitors", those who came for the first time, or "reads", as of the
    last flush. 1, 7, 30 and 90 days are quick; other periods read all history of these hours,
    unless the queryset has at most 1,000 rows. Raises ValueError for any other period or `by`, and
    TypeError for a model whose views are not counted.
    """
    rows = of._default_manager.all() if isinstance(of, type) else of
    if problem := subjects.why_not_counted(rows.model):
        raise TypeError(problem)
    if by not in COLUMNS:
        raise ValueError(f"Rows are ordered by 'views', 'visitors' or 'reads', not by {by!r}.")
    has_period = not (days is None and since is None and until is None)
    if by == "views" and not has_period:
        return [row for row, _ in row_counts.most_viewed(rows, limit)]
    ranking = Ranking(rows, limit, _hours(days, since, until), by)
    return _in_order(rows, _ranked(ranking, days=days))


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
    subject_by_obj = {obj: subjects.counted_subject_of(obj) for obj in subjects.listed(objs)}
    views = _numbers([*subject_by_obj.values()], _hours(days, since, until), by="views")
    return {obj: views[subject] for obj, subject in subject_by_obj.items()}


def _hours(days: int | None, since: datetime | None, until: datetime | None) -> range:
    """Returns the hours of a period since 1970. Raises ValueError unless the period is given by
    `days`, or by `since` and perhaps `until`.
    """
    last = buckets.hour_index(buckets.now(until) - timedelta(microseconds=1))
    if since is not None and days is None:
        return range(buckets.hour_index(buckets.now(since)), last + 1)
    if days is not None and since is None and until is None and days >= 1:
        return range(last + 1 - 24 * days, last + 1)
    raise ValueError("A period is days=7 (1 or more), or since=… with or without until=….")


def _in_order(rows: "QuerySet[AnyModel]", ranked: Ranked) -> "QuerySet[AnyModel]":
    """Returns the ranked ones of the rows with their numbers as `in_period`, highest first."""
    numbers = Case(
        *(When(pk=pk, then=Value(number)) for pk, number in ranked),
        default=0,
        output_field=BigIntegerField(),
    )
    best: Any = rows.filter(pk__in=[pk for pk, _ in ranked]).annotate(in_period=numbers)
    return best.order_by("-in_period", "-pk")  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Ranking:
    """A question: which of the rows have the highest numbers in these hours."""

    rows: "QuerySet[Any]"
    limit: int
    hours: range  # since 1970
    by: By

    @property
    def label(self) -> str:
        """The label of the model, `blog.post`."""
        return subjects.label_of(self.rows.model)

    @property
    def name(self) -> str:
        """The label under which history and lists have the numbers."""
        return history.of_reads(self.label) if self.by == "reads" else self.label

    @property
    def has_all_rows(self) -> bool:
        """True if each subject that counts is one of the rows. The model of a child has fewer."""
        model = self.rows.model
        is_owner = issubclass(model, Tracked) and subjects.owner(model) is model
        return is_owner and not self.rows.query.where


class Entry(NamedTuple):
    """A subject in a list of the most viewed."""

    subject: str  # in a list of reads with `reads:` before it
    bound: int  # the highest number that it may have by now, without fresh views
    # The hours of the number in the list; each is None for a subject that only shorter lists have.
    since: Any
    until: Any
    number: Any


class ListedNumber(NamedTuple):
    """A subject's number in the hours of a list (since 1970, `until` is exclusive)."""

    since: int
    until: int
    number: int


def _ranked(ranking: Ranking, *, days: int | None) -> Ranked:
    """Returns the best rows: by a list where there is one, by all their history if they are few, or
    else by the history of all rows of the model.
    """
    best: Ranked = []
    if days in DAYS:
        entries = [
            Entry(*row)
            for row in popular.entries(ranking.name, days=days, by=COLUMNS[ranking.by])[:LISTED]
        ]
        # The highest number that a row outside the list can have, without fresh views.
        rest = entries[-1].bound if len(entries) == LISTED else 0
        fresh = dict(fail_open(top_subjects, [], LISTED, at=buckets.now(), label=ranking.label))
        best = _best(ranking, entries, rest=rest, fresh=fresh)
        if not rest or len(best) == ranking.limit:
            return best
    pks = list(ranking.rows.order_by().values_list("pk", flat=True)[: scripts.SLICE + 1])
    if len(pks) <= scripts.SLICE:
        return _best_of_few(ranking, pks)
    if days in DAYS:
        return best
    return _best_of_history(ranking)


def _best_of_few(ranking: Ranking, pks: Iterable[Any]) -> Ranked:
    pk_of = {subjects.subject_of_row(ranking.rows.model, pk): pk for pk in pks}
    numbers = _numbers([*pk_of], ranking.hours, by=ranking.by)
    return _highest(
        ((pk_of[subject], number) for subject, number in numbers.items()), ranking.limit
    )


def _best_of_history(ranking: Ranking) -> Ranked:
    hours = ranking.hours
    entries = []
    for subject, counts in popular.most([ranking.name], since=hours.start, until=hours.stop):
        number = getattr(counts, COLUMNS[ranking.by])
        entries.append(Entry(subject, number, hours.start, hours.stop, number))
    return _best(ranking, entries, rest=0, fresh={})


def _best(
    ranking: Ranking, entries: Iterable[Entry], *, rest: int, fresh: Mapping[str, int]
) -> Ranked:
    """Returns the best rows among the entries of a list and the subjects with fresh views. A
    subject outside the list has at most `rest` beside its fresh views.
    """
    bounds = {subject: rest + views for subject, views in fresh.items()}
    listed: dict[str, ListedNumber] = {}
    for entry in entries:
        subject = entry.subject.removeprefix(history.of_reads(""))
        bounds[subject] = entry.bound + fresh.get(subject, 0)
        if entry.since:
            listed[subject] = ListedNumber(entry.since, entry.until, entry.number)
    pk_of = _rows_by_subject(ranking, bounds)
    candidates = sorted(pk_of, key=bounds.__getitem__, reverse=True)
    best: Ranked = []
    for chunk in scripts.sliced(candidates, max(ranking.limit, AT_ONCE)):
        is_full = len(best) == ranking.limit
        if is_full and best[-1][1] > bounds[chunk[0]]:
            break  # the following candidates have less
        stored = None
        if ranking.has_all_rows:
            # The query of the counts tells which rows exist. To ask for all takes most of a list's
            # time.
            stored = row_counts.by_subject(chunk)
            chunk = [*stored]
        numbers = _numbers(chunk, ranking.hours, by=ranking.by, listed=listed, stored=stored)
        ranked = [(pk_of[subject], number) for subject, number in numbers.items()]
        best = _highest([*best, *ranked], ranking.limit)
    return best


def _rows_by_subject(ranking: Ranking, subject_names: Iterable[str]) -> dict[str, Any]:
    """Returns the primary keys of the subjects, without those that are known to be none of the
    rows.
    """
    pk_of: dict[str, Any] = {}
    for subject_of in subjects.rows_by_model(subject_names).values():
        pk_of.update((subject, pk) for pk, subject in subject_of.items())
    if ranking.has_all_rows:
        return pk_of
    rows = ranking.rows.order_by().filter(pk__in=pk_of.values())
    existing = set(rows.values_list("pk", flat=True))
    return {subject: pk for subject, pk in pk_of.items() if pk in existing}


def _highest(numbers: Iterable[tuple[Any, int]], limit: int) -> Ranked:
    above_zero = ((pk, number) for pk, number in numbers if number)
    return nlargest(limit, above_zero, key=lambda pair: pair[::-1])


def _numbers(
    subject_names: Sequence[str],
    hours: range,
    *,
    by: By,
    listed: Mapping[str, ListedNumber] = {},
    stored: Mapping[str, RowCounts] | None = None,
) -> dict[str, int]:
    """Returns the number of each subject in these hours, with views that are not flushed if the
    hours go up to now.

    `listed` are numbers of lists, `stored` SQL's counts where a caller has read them already.
    """
    numbers = _numbers_of_history(subject_names, hours, by=by, listed=listed)
    if by == "views" and hours.stop > buckets.hour_index(buckets.now()):
        if stored is None:
            stored = row_counts.by_subject(subject_names)
        counts = {
            subject: stored[subject].views if subject in stored else 0 for subject in subject_names
        }
        live = page_state(counts=counts).views
        for subject in numbers:
            numbers[subject] += live[subject] - counts[subject]
    return {subject: max(0, number) for subject, number in numbers.items()}


def _numbers_of_history(
    subject_names: Sequence[str], hours: range, *, by: By, listed: Mapping[str, ListedNumber]
) -> dict[str, int]:
    """Returns the number of each subject in these hours by history: that of its list, without the
    hours that are over and with the hours since; without a list the sum of all hours.
    """
    nothing = ListedNumber(hours.start, hours.start, 0)
    numbers: dict[str, int] = {}
    names_by_span: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for subject in subject_names:
        since, until, numbers[subject] = listed.get(subject, nothing)
        names_by_span[since, until].append(subject)
    for (since, until), names_of_span in names_by_span.items():
        columns = [_column_of(subject, by=by) for subject in names_of_span]
        over = period_gains.gains(columns, since=since, until=hours.start)
        later = period_gains.gains(columns, since=until, until=hours.stop)
        for subject, column in zip(names_of_span, columns, strict=True):
            numbers[subject] += getattr(later.get(column), COLUMNS[by], 0)
            numbers[subject] -= getattr(over.get(column), COLUMNS[by], 0)
    return numbers


def _column_of(subject: str, *, by: By) -> str:
    return subjects.subject_column(history.of_reads(subject) if by == "reads" else subject)
