"""The objects of a scope: those that filters name, or the best objects of whole models."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice, zip_longest
from typing import Any, Literal, NamedTuple

from django.db import router
from django.db.models import ForeignKey, Max, Model, QuerySet, Subquery
from django.utils.functional import SimpleLazyObject

from readtrack import buckets
from readtrack.models import Tracked
from readtrack.numbers import below, kept
from readtrack.numbers.details import linked_fields
from readtrack.numbers.order import place_among_equals
from readtrack.numbers.published import published_field, value_of_time
from readtrack.numbers.scope import Scope
from readtrack.numbers.sql import (
    history,
    model_sums,
    period_gains,
    period_steps,
    popular,
    stored_views,
)
from readtrack.reports.page_state import count_in_memory
from readtrack.sql import row_counts
from readtrack.store import keys
from readtrack.subjects import (
    author_field,
    label_in,
    label_of,
    news_links,
    subject_column,
    subject_of,
    subjects_by_model,
)

Order = Literal["views", "reads", "growth"]

CANDIDATES = 40  # objects of whole models whose numbers are computed, to find the best of them
STILL_READ_DAYS = 90  # before a period; what was published earlier is old
LEAST_OPENED = 200  # views of an object that is told to be hardly read
#: The tables of a few objects that are not those with the most views.
OF_FEW = ("grew-most", "still-read", "hardly-read", "below-usual")
MOST = 1_000  # objects of a category or of an author whose numbers are added up


class Ranked(NamedTuple):
    """A subject of a list of the most viewed, which `readtrack.numbers.sql.popular` keeps."""

    subject: str
    views: int  # in one of the lists, so it has had as many at least
    first_hour: int | None  # of the history of the models, in the list of all time; else None


class PeriodViews(NamedTuple):
    """Views by subject or label: of the period, of the one before, and of the part of the period
    that is compared with it (both empty if they are not compared).
    """

    now: dict[str, int]
    before: dict[str, int]
    compared: Mapping[str, int] = {}


class Objects:
    """The objects of a scope, once `choose` was called. Their rows are loaded when needed.

    `obj` is the only object of the scope, where the caller has loaded it.
    """

    def __init__(self, scope: Scope, order: Order, obj: Model | None = None) -> None:
        self.scope = scope
        self.order = order
        self.labels = [label_of(model) for model in scope.models]
        #: The names under which history has the views of whole models: one for each partition.
        self.model_columns = [f"{label}{tag}" for label in self.labels for tag in keys.past_tags()]
        #: The days of the shortest list that goes back to the first hour of the period.
        self.days = _days_of_list(scope)
        #: The stored views of the objects by subject; None if they have to be read.
        self.stored: Mapping[str, int | None] = {}
        self._large_models = scope.models  # the models with too many objects to take all of them
        self._rows: dict[str, Any] = {}  # the loaded rows by subject
        #: The subjects that were published STILL_READ_DAYS before the period. None if there is no
        #: need to tell them from others.
        self.old: set[str] | None = None
        #: The subjects that are furthest below what is usual at their age, the lowest first.
        self.low: list[str] = []
        #: True unless nothing was published in the period, as far as the lowest were looked for.
        self.has_publications = True
        self._are_candidates_cut = False
        #: True if reads of the models are known to be counted.
        self.is_read = False
        if obj:
            self._rows[subject_of(obj)] = obj

    def choose(
        self,
        trending: Iterable[str] = (),
        *,
        has_best: bool = True,
        limit: int = CANDIDATES,
        also: Collection[str] = (),
    ) -> None:
        """Chooses the objects that filters name, or the best and the trending ones of models.

        Without `has_best`, of too many objects that filters name they are the most viewed ones of
        all time, which saves a query. Of whole models they are the `limit` best, and those that the
        tables in `also` need beside them (see OF_FEW).
        """
        if not self.scope.is_listed:
            more = self._of_tables(also)
            self._choose_best(trending, more=more, limit=limit)
        elif "object" in self.scope.chosen:
            self._choose_one()
        else:
            self.stored = self._linked(has_best=has_best)

    def _choose_best(self, trending: Iterable[str], *, more: Iterable[str], limit: int) -> None:
        """Chooses the `limit` best objects of a list, or else of all time, CANDIDATES trending ones
        and `more`.
        """
        best = self._best(self.order)[:limit]
        if not best:  # a site has no list in its first hour, and long periods have none
            for model in self.scope.models:
                rows = with_links(self.scope.rows(model))
                viewed = row_counts.most_viewed(rows, limit)
                self._rows.update((subject_of(row), row) for row, _ in viewed)
        self.load([*best, *islice(trending, CANDIDATES), *more])
        self.stored = self._loaded_views()

    def _of_tables(self, names: Collection[str]) -> list[str]:
        """Returns CANDIDATES objects for each of these tables, which is one of OF_FEW."""
        subjects: list[str] = []
        if "grew-most" in names:
            subjects += self._best("growth")[:CANDIDATES]
        if "still-read" in names:
            subjects += self._find_old()
        if "hardly-read" in names:
            hardly_read = kept.found_for("hardly-read", self.scope, self._find_hardly_read)
            self.is_read = hardly_read.is_read
            subjects += hardly_read.subjects
        if "below-usual" in names:
            found = kept.found_for("below-usual", self.scope, self._find_low)
            self.low = found.subjects
            self.has_publications = found.has_publications
            subjects += self.low
        return subjects

    def _find_old(self) -> list[str]:
        """Returns the best old objects, CANDIDATES at most, which become `old`."""
        best = self._best(self.order)
        if best:
            self.old = self._old_among(best)
        else:  # a site has no list in its first hour, and long periods have none
            self._load_most_viewed_old()
            best = [*self._rows]
            self.old = {*best}
        return [subject for subject in best if subject in self.old][:CANDIDATES]

    def _find_hardly_read(self) -> kept.Found:
        """Finds the objects that were opened often and of which the smallest share was read.

        They are CANDIDATES of those in a list. Makes two queries: for the views of the period, and
        for the reads, which are not looked for in a list, because few reads are in no list of
        reads.
        """
        hours = self.scope.span.hours
        since = 0 if self.scope.is_all_time else hours.start
        views = popular.rises(self.labels, days=self.days, since=since, until=hours.stop)
        opened = [subject for subject, count in views.items() if count >= LEAST_OPENED]
        names = {subject: subject_column(history.of_reads(subject)) for subject in opened}
        names_of_models = [history.of_reads(label) for label in self.labels]
        steps = period_steps.steps(
            [*names.values(), *names_of_models],
            [since],
            until=hours.stop,
            only_periods=[0],
        )
        reads = {name: sum(steps_of_name.values()) for name, steps_of_name in steps.items()}
        if not any(reads.values()):
            return kept.Found([], is_read=False)
        opened.sort(key=lambda subject: (reads[names[subject]] / views[subject], -views[subject]))
        return kept.Found(opened[:CANDIDATES])

    def _find_low(self) -> kept.Found:
        """Finds the CANDIDATES that are furthest below what is usual, lowest first.

        They are found among the MOST newest publications of the period.
        """
        known = self.stored if self.scope.is_listed else None
        low = below.lowest(self.scope, limit=CANDIDATES, most=MOST, known=known)
        return kept.Found(low or [], has_publications=low is not None)

    def choose_for(self, table_name: str) -> None:
        """Chooses the objects of one of OF_FEW, which is the only table."""
        self.load(self._of_tables([table_name]))
        self.stored = self._loaded_views()

    def _load_most_viewed_old(self) -> None:
        """Loads the old rows with the most views of all time."""
        for model in self.scope.models:
            viewed = row_counts.most_viewed(with_links(self._old_rows(model)), CANDIDATES)
            self._rows.update((subject_of(row), row) for row, _ in viewed)

    def find_few(self, names: Collection[str], *, is_alone: bool) -> None:
        """Finds the objects of these tables of OF_FEW among those that filters name.

        With `is_alone` there is one table, and no other objects are needed.
        """
        found: Collection[str] = self.stored
        if "still-read" in names:
            found = self.old = self._old_among(self.stored)
        if "below-usual" in names:
            found_low = kept.found_for("below-usual", self.scope, self._find_low)
            low = found_low.subjects
            self.has_publications = found_low.has_publications
            self._put_in(low)
            found = self.low = [subject for subject in low if subject in self.stored]
        if is_alone:
            self.stored = {subject: self.stored[subject] for subject in found}

    def _put_in(self, low: Sequence[str]) -> None:
        """Puts in those of these subjects that are not among the stored ones, if they still exist.

        Each takes the place of the last one of its model, so that there are not more of a model.
        """
        missing = [subject for subject in low if subject not in self.stored]
        self.load(missing)
        put_in = {
            subject: count_in_memory(self._rows[subject])
            for subject in missing
            if subject in self._rows
        }
        places = Counter(map(label_in, put_in))
        stored = {**self.stored}
        for subject in reversed([*stored]):
            if places[label_in(subject)] and subject not in low:
                places[label_in(subject)] -= 1
                del stored[subject]
        self.stored = {**stored, **put_in}

    def _old_among(self, subjects: Iterable[str]) -> set[str]:
        """Returns those of the subjects that are old. Makes one query for each model."""
        old: set[str] = set()
        for model, subjects_by_pk in subjects_by_model(subjects).items():
            pks = self._old_rows(model).filter(pk__in=subjects_by_pk).values_list("pk", flat=True)
            old.update(subjects_by_pk[pk] for pk in pks)
        return old

    def _old_rows(self, model: type[Model]) -> "QuerySet[Any]":
        """Returns the rows of the scope that were published STILL_READ_DAYS before the period."""
        rows = self.scope.rows(model)
        field = published_field(model)
        if field is None:
            return rows.none()
        before = self.scope.span.since - STILL_READ_DAYS * buckets.DAY
        return rows.filter(**{f"{field.name}__lt": value_of_time(field, before)})

    def candidates(self, *, limit: int) -> list[str]:
        """Returns the subjects of the best objects of whole models, `limit` at most."""
        best = self._best(self.order)[:limit]
        if not best:  # a site has no list in its first hour, and long periods have none
            for model in self.scope.models:
                viewed = row_counts.most_viewed(self.scope.rows(model), limit)
                best += [subject_of(row) for row, _ in viewed]
        self._are_candidates_cut = len(best) >= limit
        return best

    def _choose_one(self) -> None:
        """Chooses the one object that the filter names; none if its row is deleted."""
        if not self._rows:
            for model in self.scope.models:
                self._rows.update((subject_of(row), row) for row in self.scope.rows(model))
        self.stored = self._loaded_views()

    def _loaded_views(self) -> dict[str, int | None]:
        return {subject: count_in_memory(row) for subject, row in self._rows.items()}

    def _linked(self, *, has_best: bool) -> dict[str, int | None]:
        """Returns the stored views of a category's or an author's objects by subject.

        Of a model with too many objects they are the most viewed of the period, then of all time.
        """
        views_by_model = self._most_viewed_linked()
        self._large_models = [
            model for model, views in views_by_model.items() if has_best and len(views) >= MOST
        ]
        best_by_model = subjects_by_model(self._best(self.order)) if self._large_models else {}
        for model in self._large_models:
            best = best_by_model.get(model, {})
            views_by_model[model] = self._with_best_first(model, views_by_model[model], best)
        merged: dict[str, int | None] = {}
        for views in views_by_model.values():
            merged.update(views)
        return merged

    def _most_viewed_linked(self) -> dict[type[Model], dict[str, int | None]]:
        """Returns views of all time by model and subject, of the most viewed if there are many."""
        querysets = {model: self.scope.rows(model) for model in self.scope.models}
        tracked = [querysets[model] for model in querysets if issubclass(model, Tracked)]
        stored = stored_views.by_model(tracked)
        views_by_model: dict[type[Model], dict[str, int | None]] = {}
        for model, queryset in querysets.items():
            views_by_model[model] = {**stored.get(model, {})}
            if model in stored:
                continue
            for row, counts in row_counts.most_viewed(queryset, MOST):
                self._rows[subject_of(row)] = row
                views_by_model[model][subject_of(row)] = counts.views
        return views_by_model

    def _with_best_first(
        self, model: type[Model], views: dict[str, int | None], best: Mapping[Any, str]
    ) -> dict[str, int | None]:
        """Returns the views of a model's subjects, MOST at most; those of `best` come first.

        `best` has the best subjects of the period by primary key. A subject whose views have to be
        read has None.
        """
        not_in_views: dict[str, int | None] = {}
        if len(views) in (MOST, row_counts.FEW):  # the views were cut, so subjects may be missing
            missing = [pk for pk, subject in best.items() if subject not in views]
            pks = self.scope.rows(model).filter(pk__in=missing).values_list("pk", flat=True)
            not_in_views = {best[pk]: None for pk in pks}
        all_views = {**views, **not_in_views}
        first = {subject: all_views[subject] for subject in best.values() if subject in all_views}
        return dict(islice({**first, **all_views}.items(), MOST))

    def _best(self, order: Order) -> list[str]:
        """Returns the subjects with the most views (or reads, or growth) in the period, best first.

        Of long periods they are those of all time. By growth the most viewed subjects are compared
        with the period before.
        """
        # Rows that filters name are sorted by all time already.
        is_sorted = self.days == popular.EVER and self.scope.is_listed
        if not self._large_models or is_sorted:
            return []
        views = self._views_in_periods(order)

        def rank(column: str) -> tuple[int, Any]:
            growth = views.now[column] - views.before.get(column, 0)
            return growth, place_among_equals(column)

        columns = sorted(views.now, key=rank, reverse=True)
        if views.before:
            columns = _half_viewed_before(columns, views.before)
        return [column.removeprefix(history.of_reads("")) for column in columns[:MOST]]

    def _views_in_periods(self, order: Order) -> PeriodViews:
        """Returns the views of the best subjects, out of a list if there is one, else of
        history.
        """
        hours = self.scope.span.hours
        # The lists lack the running hour. The trending list has it, but knows no filters.
        if self.scope.is_listed and self.scope.is_of_a_day:
            return self._summed(order)
        views = self._rises(order)
        if views.now or self.scope.is_present or len(hours) > model_sums.QUARTER:
            return views
        return self._summed(order)

    def _hours_before(self, order: Order) -> range:
        """Returns the hours of the period before; none unless few are chosen by their growth.

        Of the objects that filters name, the MOST with the most views of the period are compared in
        any case, so that only their own growth counts, which is known later.
        """
        if order == "growth" and self.scope.before and not self.scope.is_listed:
            return self.scope.before.hours
        return range(0)

    def _rises(self, order: Order) -> PeriodViews:
        """Returns the views of the subjects of the list of `days`, quickly.

        Up to now they are lower bounds, out of the list itself.
        """
        views = self._rises_of_period
        hours_before = self._hours_before(order)
        if not views or not hours_before:
            return PeriodViews(views, {})
        views_before = popular.rises(
            self._list_labels, days=self.days, since=hours_before.start, until=hours_before.stop
        )
        return PeriodViews(views, views_before)

    @cached_property
    def _rises_of_period(self) -> dict[str, int]:
        """The views in the period of the subjects of the list of `days`."""
        if self.scope.is_present:
            return {ranked.subject: ranked.views for ranked in self.ranking}
        hours = self.scope.span.hours
        return popular.rises(self._list_labels, days=self.days, since=hours.start, until=hours.stop)

    def _summed(self, order: Order) -> PeriodViews:
        """Returns the views of the most viewed subjects, out of all history of the two periods."""
        hours = self.scope.span.hours
        rows = []
        if self.scope.is_listed:
            rows = [self.scope.rows(model) for model in self._large_models]
        most = popular.most(self._list_labels, since=hours.start, until=hours.stop, rows=rows)
        now = dict(most)
        hours_before = self._hours_before(order)
        before = period_gains.gains(now, since=hours_before.start, until=hours_before.stop)
        return PeriodViews(now, before)

    @cached_property
    def ranking(self) -> list[Ranked]:
        """The subjects of the list of `days` and of shorter lists, most viewed first.

        Their views are the highest number that one of the lists has: there were as many at least.
        """
        entries = popular.entries(*self._list_labels, days=self.days)
        # Not by `bound`, the order of `popular.entries`, which adds up the numbers of a subject in
        # several lists, and so would put subjects first that were viewed of late.
        entries = entries.annotate(at_least=Max("views")).order_by("-at_least", "subject")
        has_first_hour = self.days == popular.EVER
        if has_first_hour:
            entries = entries.annotate(start=Subquery(history.first_hour(self.model_columns)))
        ranking = []
        # Annotations come behind the columns of `popular.entries`.
        for subject, _bound, _first, _end, _number, at_least, *start in entries[:MOST]:
            first_hour = start[0] if has_first_hour else None
            ranking.append(Ranked(subject, at_least, first_hour))
        return ranking

    @property
    def _list_labels(self) -> list[str]:
        """The labels of the models, or the names under which history has their reads."""
        labels = [label_of(model) for model in self._large_models]
        if self.order == "reads" and self.days != popular.EVER:
            return [history.of_reads(label) for label in labels]
        return labels

    @property
    def is_cut(self) -> bool:
        """True if objects are left out that may have views in the period."""
        if self.scope.is_listed:
            objects_by_label = Counter(subject.partition(":")[0] for subject in self.stored)
            return MOST in objects_by_label.values()
        if self.scope.values:  # all with the value are found, unless candidates were looked through
            return self._are_candidates_cut
        # A list of so many days has the order that the table has, so its first objects are the
        # best.
        if self.days != popular.EVER or len(self.stored) < CANDIDATES:
            return False
        # The list of all time is sorted by views of all time. A table with another order, or of a
        # period that ended earlier, may have objects that are far down in this list.
        has_order_of_list = self.order == "views" and self.scope.is_all_time
        return not has_order_of_list

    @property
    def first(self) -> list[str]:
        """The subjects of the objects whose breakdowns and funnels are added up."""
        return [*self.stored][:MOST]

    def load(self, subjects: Iterable[str]) -> None:
        """Loads the rows of the subjects, as far as they are not loaded yet."""
        missing = [subject for subject in dict.fromkeys(subjects) if subject not in self._rows]
        for model, pks in subjects_by_model(missing).items():
            rows = with_links(self.scope.rows(model).filter(pk__in=pks))
            self._rows.update((subject_of(row), row) for row in rows)

    def loaded(self, subjects: Iterable[str]) -> list[Any]:
        """Loads the rows of the subjects, and returns those that exist."""
        listed = [*subjects]
        self.load(listed)
        return [self._rows[subject] for subject in listed if subject in self._rows]

    def has_row(self, subject: str) -> bool:
        """Returns True if the row of the subject is loaded, so that it costs no query."""
        return subject in self._rows

    def __getitem__(self, subject: str) -> Any:
        """Returns the object of a subject.

        If its row is not loaded, the object is a lazy one. The first use of it loads the rows of
        all objects of the scope.
        """

        def load_row() -> Model:
            if subject not in self._rows:
                self.load(self.stored)
            row = self._rows.get(subject)
            if row is None:  # it was deleted meanwhile
                row = _deleted_row(subject)
            return row

        return self._rows.get(subject) or SimpleLazyObject(load_row)

    def _links(self, filter_name: str, model: type[Model]) -> list[Any]:
        """Returns the model's foreign keys to what the filter `category` or `author` chooses.

        There are none if the filter is not in force.
        """
        if filter_name not in self.scope.chosen:
            return []
        fields: Sequence[Any] = news_links(model)
        if filter_name == "author":
            fields = [author_field(model)]
        return [field for field in fields if isinstance(field, ForeignKey)]

    def chosen(self, filter_name: str) -> Model | None:
        """Returns the chosen category or author; None if no loaded row links to it.

        A filter names a category by its subject, and an author by the primary key.
        """
        asked = self.scope.chosen[filter_name]
        for row in self._rows.values():
            for link in self._links(filter_name, row.__class__):
                linked = getattr(row, link.name)
                if linked and asked in (str(linked.pk), subject_of(linked)):
                    return linked  # type: ignore[no-any-return]
        return None


def with_links(rows: "QuerySet[Any]") -> "QuerySet[Any]":
    """Returns the rows with their categories and authors, without another query."""
    # Tables of another database cannot be joined.
    links = [
        field.name
        for field in linked_fields(rows.model)
        if router.db_for_write(field.related_model) == rows.db
    ]
    # Without deferred fields, because a deferred foreign key cannot be joined.
    return rows.defer(None).select_related(*links) if links else rows


def _deleted_row(subject: str) -> Model:
    """Returns an object with the primary key of a row that is gone."""
    [(model, subjects_by_pk)] = subjects_by_model([subject]).items()
    [pk] = subjects_by_pk
    return model(pk=pk)


def _half_viewed_before(columns: Sequence[str], before: Mapping[str, int]) -> list[str]:
    """Returns the columns, so that half of the first ones had views before, if there are so many.

    A site may publish so much that what is new, whose growth nobody knows, is all that has gained
    the most views.
    """
    viewed = [column for column in columns if before.get(column)]
    others = [column for column in columns if not before.get(column)]
    in_turn = chain.from_iterable(zip_longest(viewed, others))
    return [column for column in in_turn if column is not None]


def _days_of_list(scope: Scope) -> int:
    """Returns the days of the shortest list that goes back to the first hour of the period.

    It is that of all time (EVER) if no other list is long enough.
    """
    if scope.is_all_time:
        return popular.EVER
    hours_back = buckets.hour_index(buckets.now()) - scope.span.hours.start
    for days in popular.DAYS:
        if days * 24 >= hours_back:
            return days
    return popular.EVER
