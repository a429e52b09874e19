"""Objects with the most views, visitors, seen views or reads in a period, and the views of objects
in it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from heapq import nlargest
from typing import Any, NamedTuple, get_args

from django.db.models import BigIntegerField, Case, Model, QuerySet, Value, When

from readtrack import buckets, subjects
from readtrack.hits.stages import SEEN
from readtrack.models import Tracked
from readtrack.numbers import local_time
from readtrack.numbers.options import numbers_options
from readtrack.numbers.reports import people
from readtrack.numbers.sql import hashes as stored_hashes
from readtrack.numbers.sql import history, period_gains, popular
from readtrack.numbers.sql.popular import DAYS, LISTED, By
from readtrack.reports.page_state import page_state
from readtrack.sql import row_counts
from readtrack.sql.row_counts import RowCounts
from readtrack.store import scripts
from readtrack.store.circuit import fail_open
from readtrack.store.trending import top_subjects
from readtrack.subjects import AnyModel

AT_ONCE = 40  # candidates whose numbers are computed together
PORTION = 10_000  # subjects that are looked up together where few of them are among the rows


class RankedRow(NamedTuple):
    """The primary key of a row, and its number of views, visitors or reads."""

    pk: Any
    number: int


Ranked = list[RankedRow]  # highest number first


def most_viewed(
    of: "type[AnyModel] | QuerySet[AnyModel]",
    limit: int = 10,
    *,
    days: int | None = None,
    since: date | None = None,
    until: date | None = None,
    by: By | None = None,
) -> "list[AnyModel] | QuerySet[AnyModel]":
    """Returns the rows of a model or of a queryset with the most views, most viewed first. Leaves
    out rows without views.

    `by` is "views" or "seen", by default what 'rank_by' of NUMBERS says: "seen" are the views whose
    page came to life in a browser, as of the last flush.

    Without a period it returns a list, by the counts of all time in SQL. With `days` (the last
    days), or with `since` and perhaps `until`, it returns a queryset, by the views in that period,
    which each row has as `in_period`. With a period, `by` may also be "visitors" (the different
    visitors of each row, by whole days of TIME_ZONE, as `visitors` has them), or "reads" as of the
    last flush.

    Periods of 1, 7, 30 and 90 days are quick. For any other period it reads all history of these
    hours, unless the queryset has at most 1,000 rows. Raises ValueError for an impossible period or
    `by`, UniquesError for visitors that are not counted, and TypeError for a model whose views are
    not counted.
    """
    rows = of._default_manager.all() if isinstance(of, type) else of
    if problem := subjects.why_not_counted(rows.model):
        raise TypeError(problem)
    by = by or numbers_options().rank_by
    if by not in get_args(By):
        raise ValueError(
            f"Rows are ordered by 'views', 'visitors', 'seen' or 'reads', not by {by!r}."
        )
    has_period = not (days is None and since is None and until is None)
    if not has_period and by in ("views", "seen"):
        return _best_of_all_time(rows, limit, by=by)
    if by == "visitors":
        hours = people.days_of(days=days, since=since, until=until).hours
    else:
        hours = _hours(days, since, until)
    ranking = Ranking(rows, limit, hours, by)
    return _in_order(rows, _ranked(ranking, days=days))


def _best_of_all_time(rows: "QuerySet[AnyModel]", limit: int, *, by: By) -> list[AnyModel]:
    """Returns the rows with the most views, or seen views, of all time, highest first."""
    if by == "seen":
        return _most_seen(rows, limit)
    return [row for row, _ in row_counts.most_viewed(rows, limit)]


def _most_seen(rows: "QuerySet[AnyModel]", limit: int) -> list[AnyModel]:
    """Returns the rows with the most seen views of all time, highest first."""
    pks = list(rows.order_by().values_list("pk", flat=True)[: scripts.SLICE + 1])
    if len(pks) <= scripts.SLICE:
        return _most_seen_of_few(rows, pks)[:limit]
    best: list[AnyModel] = []
    for portion in _subjects_by_seen(rows.model, first_size=max(limit, AT_ONCE)):
        pk_by_subject: dict[str, Any] = {}
        for subject_by_pk in subjects.subjects_by_model(portion).values():
            pk_by_subject.update((subject, pk) for pk, subject in subject_by_pk.items())
        row_by_pk = rows.in_bulk([*pk_by_subject.values()])
        for subject in portion:
            row = row_by_pk.get(pk_by_subject.get(subject))
            if row is not None:
                best.append(row)
        if len(best) >= limit:
            break
    return best[:limit]


def _most_seen_of_few(rows: "QuerySet[AnyModel]", pks: Sequence[Any]) -> list[AnyModel]:
    """Returns those of the rows with these primary keys that were seen, highest first."""
    pk_by_subject = {subjects.subject_of_row(rows.model, pk): pk for pk in pks}
    hashes = stored_hashes.breakdowns(
        [(stored_hashes.READING, subject) for subject in pk_by_subject]
    )
    ranked = [
        RankedRow(pk_by_subject[subject], counts.get(SEEN, 0))
        for (_kind, subject), counts in hashes.items()
    ]
    in_order = _highest(ranked, len(ranked))
    row_by_pk = rows.in_bulk([row.pk for row in in_order])
    return [row_by_pk[row.pk] for row in in_order if row.pk in row_by_pk]


def _subjects_by_seen(model: type[Model], *, first_size: int) -> Iterator[list[str]]:
    """Yields the subjects of a model that were seen, those with the most seen views first.

    The first portion mostly suffices. Further ones are larger, because each is a query that sorts
    all objects.
    """
    in_order = stored_hashes.highest(subjects.label_of(model), field=SEEN)
    start = 0
    size = first_size
    while portion := list(in_order[start : start + size]):
        yield portion
        start += size
        size = PORTION


def views_in(
    objs: Iterable[AnyModel],
    *,
    days: int | None = None,
    since: date | None = None,
    until: date | None = None,
) -> dict[AnyModel, int]:
    """Returns the views of each object in the last `days`, which end with this hour, or in the
    hours from `since` to `until`.

    Takes one round trip and two queries for up to 1,000 objects. The queries read the objects' rows
    of history in these hours. Raises ValueError without a period, and TypeError for an object that
    has no counts.
    """
    subject_by_obj = {obj: subjects.counted_subject_of(obj) for obj in subjects.listed(objs)}
    views = _numbers([*subject_by_obj.values()], _hours(days, since, until), by="views")
    return {obj: views[subject] for obj, subject in subject_by_obj.items()}


def _hours(days: int | None, since: date | None, until: date | None) -> range:
    """Returns the hours of a period (since 1970).

    Raises ValueError unless the period is given by `days`, or by `since` and perhaps `until`.
    """
    # `until` is exclusive: if it is 10:00, the hour from 9:00 is the last one.
    end = buckets.now() if until is None else local_time.moment(until)
    stop = local_time.first_hour_from(end)
    if since is not None and days is None:
        return range(local_time.first_hour_since(since), stop)
    if days is not None and since is None and until is None and days >= 1:
        return range(stop - 24 * days, stop)
    raise ValueError("A period is days=7 (1 or more), or since=… with or without until=….")


def _in_order(rows: "QuerySet[AnyModel]", ranked: Ranked) -> "QuerySet[AnyModel]":
    """Returns a queryset of the ranked rows with their numbers as `in_period`, highest first."""
    numbers = Case(
        *(When(pk=row.pk, then=Value(row.number)) for row in ranked),
        default=0,
        output_field=BigIntegerField(),
    )
    best: Any = rows.filter(pk__in=[row.pk for row in ranked]).annotate(in_period=numbers)
    return best.order_by("-in_period", "-pk")  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Ranking:
    """What `most_viewed` is asked: which of the rows have the highest numbers in these hours."""

    rows: "QuerySet[Any]"
    limit: int
    hours: range  # since 1970
    by: By

    @property
    def label(self) -> str:
        """The label of the model, `blog.post`, with which its subjects begin."""
        return subjects.label_of(self.rows.model)

    @property
    def name(self) -> str:
        """The name by which history and lists have the numbers: the label, or `reads:blog.post`."""
        return _name_of(self.label, by=self.by)

    @property
    def has_all_rows(self) -> bool:
        """True if every object that counts under the label is one of the rows.

        Then nobody has to look which subjects are among them.
        """
        model = self.rows.model
        # The query for the counts shows which rows exist only where the rows hold the counts.
        if not issubclass(model, Tracked):
            return False
        # A child or a proxy counts under the label of its parent, and may have fewer rows.
        if subjects.owner(model) is not model:
            return False
        has_filter = bool(self.rows.query.where)
        return not has_filter


class Entry(NamedTuple):
    """A subject in a list of the most viewed, as `popular.entries` has it."""

    subject: str  # in a list of a stage `seen:` or `reads:` comes before it
    bound: int  # the highest number that it may have by now, without views since the last flush
    # The hours of the list and the number in it; None for a subject that only shorter lists have.
    since: Any
    until: Any
    number: Any


class ListedNumber(NamedTuple):
    """A subject's number in the hours of a list (since 1970, `until` is exclusive)."""

    since: int
    until: int
    number: int


def _ranked(ranking: Ranking, *, days: int | None) -> Ranked:
    """Returns the best rows.

    There are three ways: by the list of so many days, if there is one; by the history of the rows,
    if these are few; or else by the history of all rows of the model.
    """
    best: Ranked = []
    if days in DAYS:
        in_lists = popular.entries(ranking.name, days=days)
        entries = [Entry(*row) for row in in_lists[:LISTED]]
        # The highest number that a row outside the list can have, without its fresh views.
        bound_outside = 0
        if len(entries) == LISTED:
            bound_outside = entries[-1].bound
        # Views of the last hour, which the last flush may not have stored.
        fresh = dict(fail_open(top_subjects, [], LISTED, at=buckets.now(), label=ranking.label))
        best = _best(ranking, entries, bound_outside=bound_outside, fresh=fresh)
        if not bound_outside or len(best) == ranking.limit:
            return best
    # There is no list, or too few of its rows are in the queryset.
    pks = list(ranking.rows.order_by().values_list("pk", flat=True)[: scripts.SLICE + 1])
    if len(pks) <= scripts.SLICE:
        return _best_of_few(ranking, pks)
    if days in DAYS:
        return best
    return _best_of_history(ranking)


def _best_of_few(ranking: Ranking, pks: Iterable[Any]) -> Ranked:
    """Returns the best of the rows with these primary keys, by the history of each of them."""
    pk_by_subject = {subjects.subject_of_row(ranking.rows.model, pk): pk for pk in pks}
    by: By = "views" if ranking.by == "visitors" else ranking.by
    numbers = _numbers([*pk_by_subject], ranking.hours, by=by)
    if ranking.by == "visitors":
        # No object has more visitors than views, so most objects need not be looked at.
        entries = [Entry(subject, views, None, None, None) for subject, views in numbers.items()]
        return _best(ranking, entries, bound_outside=0, fresh={})
    rows = [RankedRow(pk_by_subject[subject], number) for subject, number in numbers.items()]
    return _highest(rows, ranking.limit)


def _best_of_history(ranking: Ranking) -> Ranked:
    """Returns the best rows by the history of all rows of the model in these hours."""
    hours = ranking.hours
    entries = []
    for subject, views in popular.most([ranking.name], since=hours.start, until=hours.stop):
        entries.append(Entry(subject, views, hours.start, hours.stop, views))
    return _best(ranking, entries, bound_outside=0, fresh={})


def _best(
    ranking: Ranking, entries: Iterable[Entry], *, bound_outside: int, fresh: Mapping[str, int]
) -> Ranked:
    """Returns the best rows among the entries of a list and the subjects with fresh views.

    `fresh` has views by subject that the last flush may not have stored. A subject that is not in
    the list has at most `bound_outside`, and its fresh views.

    Exact numbers take queries. So they are computed for the candidates with the highest bounds
    first, until no further candidate can be among the best.
    """
    bounds = {subject: bound_outside + views for subject, views in fresh.items()}
    listed: dict[str, ListedNumber] = {}
    for entry in entries:
        subject = history.subject_of(entry.subject)
        bounds[subject] = entry.bound + fresh.get(subject, 0)
        if entry.since:
            listed[subject] = ListedNumber(entry.since, entry.until, entry.number)
    pk_by_subject = _pks_by_subject(ranking, bounds)
    candidates = sorted(pk_by_subject, key=bounds.__getitem__, reverse=True)
    best: Ranked = []
    for chunk in scripts.sliced(candidates, max(ranking.limit, AT_ONCE)):
        highest_bound = bounds[chunk[0]]
        is_full = len(best) == ranking.limit
        if is_full and best[-1].number > highest_bound:
            break  # this candidate and all after it have less
        stored = None
        if ranking.has_all_rows:
            # This query also shows which rows exist. To ask that for all candidates, as
            # _pks_by_subject does otherwise, would take most of the time.
            stored = row_counts.by_subject(chunk)
            chunk = [*stored]
        numbers = _numbers(chunk, ranking.hours, by=ranking.by, listed=listed, stored=stored)
        rows = [RankedRow(pk_by_subject[subject], number) for subject, number in numbers.items()]
        best = _highest([*best, *rows], ranking.limit)
    return best


def _pks_by_subject(ranking: Ranking, subject_names: Iterable[str]) -> dict[str, Any]:
    """Returns the primary key of each subject that is one of the rows.

    If all objects are among the rows, it does not look whether they exist.
    """
    pk_by_subject: dict[str, Any] = {}
    for subject_by_pk in subjects.subjects_by_model(subject_names).values():
        pk_by_subject.update((subject, pk) for pk, subject in subject_by_pk.items())
    if ranking.has_all_rows:
        return pk_by_subject
    rows = ranking.rows.order_by().filter(pk__in=pk_by_subject.values())
    existing = set(rows.values_list("pk", flat=True))
    return {subject: pk for subject, pk in pk_by_subject.items() if pk in existing}


def _highest(rows: Iterable[RankedRow], limit: int) -> Ranked:
    """Returns the rows with the highest numbers, highest first, without those that have 0."""
    above_zero = [row for row in rows if row.number]
    return nlargest(limit, above_zero, key=lambda row: (row.number, row.pk))


def _numbers(
    subject_names: Sequence[str],
    hours: range,
    *,
    by: By,
    listed: Mapping[str, ListedNumber] = {},
    stored: Mapping[str, RowCounts] | None = None,
) -> dict[str, int]:
    """Returns the number of each subject in these hours (since 1970), by subject.

    If the hours go up to now, views that are not flushed yet are included. `listed` has the numbers
    of lists by subject. `stored` has SQL's counts, if the caller has read them already.
    """
    if by == "visitors":
        return people.visitors_in(subject_names, people.Days.of_hours(hours))
    numbers = _numbers_of_history(subject_names, hours, by=by, listed=listed)
    ends_now = hours.stop > buckets.hour_index(buckets.now())
    if by == "views" and ends_now:
        if stored is None:
            stored = row_counts.by_subject(subject_names)
        no_counts = RowCounts(0, 0)
        counts = {subject: stored.get(subject, no_counts).views for subject in subject_names}
        live = page_state(counts=counts).views
        for subject in numbers:
            numbers[subject] += live[subject] - counts[subject]
    return {subject: max(0, number) for subject, number in numbers.items()}


def _numbers_of_history(
    subject_names: Sequence[str], hours: range, *, by: By, listed: Mapping[str, ListedNumber]
) -> dict[str, int]:
    """Returns the number of each subject in these hours by SQL's history, by subject.

    A list is some hours old. So the number of a listed subject is that of the list, minus its gain
    in the hours of the list before `hours` begins, plus its gain in the hours since the end of the
    list. The number of any other subject is its gain in all of `hours`.
    """
    not_listed = ListedNumber(hours.start, hours.start, 0)
    numbers: dict[str, int] = {}
    # Subjects by the hours of their list, because one query can take all subjects of a list.
    subjects_by_span: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for subject in subject_names:
        entry = listed.get(subject, not_listed)
        numbers[subject] = entry.number
        subjects_by_span[entry.since, entry.until].append(subject)
    for (since, until), subjects_of_span in subjects_by_span.items():
        columns = [_column_of(subject, by=by) for subject in subjects_of_span]
        gains_before = period_gains.gains(columns, since=since, until=hours.start)
        gains_after = period_gains.gains(columns, since=until, until=hours.stop)
        for subject, column in zip(subjects_of_span, columns, strict=True):
            numbers[subject] += gains_after.get(column, 0)
            numbers[subject] -= gains_before.get(column, 0)
    return numbers


def _column_of(subject: str, *, by: By) -> str:
    """Returns the subject as the column of history has it, with `reads:` before it for reads."""
    return subjects.subject_column(_name_of(subject, by=by))


def _name_of(subject: str, *, by: By) -> str:
    """Returns the name by which history has these numbers of a subject, or of a model's label."""
    return subject if by in {"views", "visitors"} else history.of_stage(by, subject)
