"""The objects of a scope whose numbers are computed.

They are those that filters name, or the best of whole models.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Literal

from django.db.models import ForeignKey, Max, Model, Subquery
from django.utils.functional import SimpleLazyObject

from readtrack import buckets
from readtrack.dashboard.scope import Scope
from readtrack.models import Tracked
from readtrack.reports.page_state import loaded
from readtrack.sql import history, model_sums, period_gains, popular, row_counts
from readtrack.store import keys
from readtrack.subjects import author_field, label_of, news_links, rows_by_model, subject_of

Order = Literal["views", "reads", "growth"]

CANDIDATES = 40  # objects of whole models whose numbers are computed, to find the best of them
MOST = 1_000  # objects of a category or of an author whose numbers are added up
LONGEST_DAY = 25  # hours


class Objects:
    """The objects of a scope, once `choose` was called.

    Their rows are loaded when they are needed. `obj` is the only object, where it is all_views.
    """

    def __init__(self, scope: Scope, order: Order, obj: Model | None = None) -> None:
        self.scope = scope
        self.order = order
        self.labels = [label_of(model) for model in scope.models]
        #: The names that history has of the views of whole models: one for each partition.
        self.names = [f"{label}{tag}" for label in self.labels for tag in keys.past_tags()]
        #: The days of the list that goes back to the first hour of the period.
        self.days = _days_of_list(scope)
        #: The stored views of the objects by subject; None if they have to be read.
        self.stored: Mapping[str, int | None] = {}
        self._large_models = scope.models  # those with too many objects for all of them
        self._rows: dict[str, Any] = {subject_of(obj): obj} if obj else {}  # that are loaded

    def choose(self, trending: Iterable[str] = ()) -> None:
        """Chooses the objects; those of whole models among the best and those that are trending."""
        if not self.scope.is_listed:
            self._choose_best(trending)
        elif "object" in self.scope.chosen:
            self._choose_one()
        else:
            self.stored = self._linked()

    def _choose_best(self, trending: Iterable[str]) -> None:
        best = self._best()[:CANDIDATES]
        if not best:  # there is no list of longer times, nor of a site's first hour
            for model in self.scope.models:
                viewed = row_counts.most_viewed(self.scope.rows(model), CANDIDATES)
                self._rows.update((subject_of(row), row) for row, _ in viewed)
        self.load([*best, *islice(trending, CANDIDATES)])
        self.stored = self._loaded_views()

    def _choose_one(self) -> None:
        if not self._rows:
            for model in self.scope.models:
                self._rows.update((subject_of(row), row) for row in self.scope.rows(model))
        self.stored = self._loaded_views()

    def _loaded_views(self) -> dict[str, int | None]:
        return {subject: loaded(row) for subject, row in self._rows.items()}

    def _linked(self) -> dict[str, int | None]:
        """Returns the stored views of a category's or an author's objects.

        Of too many these are the most viewed in the period, then those of all time.
        """
        linked = self._most_viewed_linked()
        self._large_models = [model for model, views in linked.items() if len(views) >= MOST]
        best_by_model = rows_by_model(self._best()) if self._large_models else {}
        for model in self._large_models:
            best = best_by_model.get(model, {})
            linked[model] = self._with_best_first(model, linked[model], best)
        merged: dict[str, int | None] = {}
        for views in linked.values():
            merged.update(views)
        return merged

    def _most_viewed_linked(self) -> dict[type[Model], dict[str, int | None]]:
        """Returns views of all time by model and subject, of the most viewed if there are many."""
        rows = {model: self.scope.rows(model) for model in self.scope.models}
        tracked = [rows[model] for model in rows if issubclass(model, Tracked)]
        stored = row_counts.stored_views(tracked)
        linked: dict[type[Model], dict[str, int | None]] = {}
        for model, queryset in rows.items():
            linked[model] = {**stored.get(model, {})}
            if model in stored:
                continue
            for row, views in row_counts.most_viewed(queryset, MOST):
                self._rows[subject_of(row)] = row
                linked[model][subject_of(row)] = views
        return linked

    def _with_best_first(
        self, model: type[Model], views: dict[str, int | None], best: Mapping[Any, str]
    ) -> dict[str, int | None]:
        """Returns MOST of the views of a model; first those of its best subjects.

        `best` has these subjects by primary key.
        """
        unread: dict[str, int | None] = {}
        if len(views) in (MOST, row_counts.FEW):  # some may be missing
            missing = [pk for pk, subject in best.items() if subject not in views]
            pks = self.scope.rows(model).filter(pk__in=missing).values_list("pk", flat=True)
            unread = {best[pk]: None for pk in pks}
        all_views = {**views, **unread}
        first = {subject: all_views[subject] for subject in best.values() if subject in all_views}
        return dict(islice({**first, **all_views}.items(), MOST))

    def _best(self) -> list[str]:
        """Returns subjects with the most in the period, out of a list or of its history.

        Of long periods they are those of all time. By growth they are those with the most views, in
        the order of their highest number in one list.
        """
        # Rows are sorted by all time already.
        is_sorted = self.days == popular.EVER and self.scope.is_listed
        if not self._large_models or is_sorted:
            return []
        now, before = self._views_in_periods()
        names = sorted(now, key=lambda name: now[name] - before.get(name, 0), reverse=True)
        return [name.removeprefix(history.of_reads("")) for name in names[:MOST]]

    def _views_in_periods(self) -> tuple[dict[str, int], dict[str, int]]:
        """Returns views by name in the period and in the one before, of a list or of history."""
        hours = self.scope.span.hours
        # The lists lack the running hour, which is in the trending one, but not for filters.
        is_short = self.scope.is_listed and len(hours) <= LONGEST_DAY
        if is_short:
            return self._summed()
        now, before = self._rises()
        if now or self.scope.is_present or len(hours) > model_sums.QUARTER:
            return now, before
        return self._summed()

    def _hours_before(self) -> range:
        """Returns the hours of the period before, with which only growth is compared."""
        if self.order == "growth" and self.scope.before:
            return self.scope.before.hours
        return range(0)

    def _rises(self) -> tuple[dict[str, int], dict[str, int]]:
        """Returns the least number of each name of the list in the period and in the one before."""
        hours = self.scope.span.hours
        if self.scope.is_present:
            now = {name: least for name, _, _, _, _, least, *_ in self.ranking}
        else:
            now = popular.rises(
                self._list_names, days=self.days, since=hours.start, until=hours.stop
            )
        before = self._hours_before()
        if not (now and before):
            return now, {}
        return now, popular.rises(
            self._list_names, days=self.days, since=before.start, until=before.stop
        )

    def _summed(self) -> tuple[dict[str, int], dict[str, int]]:
        """Returns views by name in the period and in the one before, out of the whole history."""
        hours = self.scope.span.hours
        rows = []
        if self.scope.is_listed:
            rows = [self.scope.rows(model) for model in self._large_models]
        most = popular.most(self._list_names, since=hours.start, until=hours.stop, rows=rows)
        now = {name: counts.views for name, counts in most}
        before = self._hours_before()
        gains = period_gains.gains(now, since=before.start, until=before.stop)
        return now, {name: counts.views for name, counts in gains.items()}

    @cached_property
    def ranking(self) -> list[Any]:
        """The list of so many days.

        Entries of that of all time end with the first hour of history.
        """
        entries = popular.entries(*self._list_names, days=self.days, by="views")
        # Not by the bound, which has what is in several lists several times, so what was viewed of
        # late comes first.
        entries = entries.annotate(least=Max("views")).order_by("-least", "subject")
        if self.days == popular.EVER:
            entries = entries.annotate(start=Subquery(history.first_hour(self.names)))
        return [*entries[:MOST]]

    @property
    def _list_names(self) -> list[str]:
        """The labels of the models, or the names that history has of their reads."""
        labels = [label_of(model) for model in self._large_models]
        if self.order == "reads" and self.days != popular.EVER:
            return [history.of_reads(label) for label in labels]
        return labels

    @property
    def is_cut(self) -> bool:
        """Returns True if objects are left out that may have views in the period."""
        if self.scope.is_listed:
            return MOST in Counter(name.partition(":")[0] for name in self.stored).values()
        # Whose order is that of the list.
        is_by_list = self.order == "views" and self.scope.before is None
        return self.days == popular.EVER and not is_by_list and len(self.stored) >= CANDIDATES

    @property
    def first(self) -> list[str]:
        """The subjects of the objects whose breakdowns and funnels are added up."""
        return [*self.stored][:MOST]

    def load(self, subjects: Iterable[str]) -> None:
        """Loads the rows of those of the subjects that are not loaded yet."""
        missing = [subject for subject in dict.fromkeys(subjects) if subject not in self._rows]
        for model, pks in rows_by_model(missing).items():
            rows = self.scope.rows(model).filter(pk__in=pks)
            links = [*self._links("category", model), *self._links("author", model)]
            if links:
                rows = rows.defer(None).select_related(*(link.name for link in links))
            self._rows.update((subject_of(row), row) for row in rows)

    def __getitem__(self, subject: str) -> Any:
        """Returns the object. Its row is loaded with those of all others, unless it is there."""

        def load_row() -> Model:
            if subject not in self._rows:
                self.load(self.stored)
            [(model, pks)] = rows_by_model([subject]).items()
            # It may have been deleted meanwhile.
            return self._rows.get(subject) or model(pk=next(iter(pks)))

        return self._rows.get(subject) or SimpleLazyObject(load_row)

    def _links(self, filter_name: str, model: type[Model]) -> list[Any]:
        """Returns the foreign keys that a filter by category or author may be about."""
        if filter_name not in self.scope.chosen:
            return []
        fields: Sequence[Any] = news_links(model)
        if filter_name == "author":
            fields = [author_field(model)]
        return [field for field in fields if isinstance(field, ForeignKey)]

    def chosen(self, filter_name: str) -> Model | None:
        """Returns the category or the author that the filter asks for, None if no loaded row links
        to it.

        A filter asks for a category by its subject, and for an author by the primary key.
        """
        asked = self.scope.chosen[filter_name]
        for row in self._rows.values():
            for link in self._links(filter_name, row.__class__):
                linked = getattr(row, link.name)
                if linked and asked in (str(linked.pk), subject_of(linked)):
                    return linked  # type: ignore[no-any-return]
        return None


def _days_of_list(scope: Scope) -> int:
    """Returns the days of the shortest list that goes back to the first hour of the period."""
    hours_back = buckets.hour_index(buckets.now()) - scope.span.hours.start
    if scope.before:
        for days in popular.DAYS:
            if days * 24 >= hours_back:
                return days
    return popular.EVER
