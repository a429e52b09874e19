"""The objects of a scope whose numbers are computed: those that filters name, or those of models
that may be best.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
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

By = Literal["views", "reads", "growth"]

CANDIDATES = 40  # objects of whole models whose numbers are computed, to find the best of them
MOST = 1_000  # objects of a category or of an author whose numbers are added up


class Objects:
    """The objects of a scope. `trending` returns subjects that are looked at besides; `obj` is the
    only one, if known.

    The rows of a category and of an author are loaded once they are needed, with one query for each
    model.
    """

    def __init__(
        self, scope: Scope, by: By, trending: Callable[[], Iterable[str]], obj: Model | None = None
    ) -> None:
        self.scope, self.by, self._trending = scope, by, trending
        self.labels = [label_of(model) for model in scope.models]
        #: The names that history has of the views of whole models: one for each partition.
        self.names = [f"{label}{tag}" for label in self.labels for tag in keys.past_tags()]
        back = buckets.hour_index(buckets.now()) - scope.span.hours.start
        #: The days of the list that goes back to the first hour of the period.
        self.days = next(
            (days for days in popular.DAYS if days * 24 >= back and scope.before), popular.EVER
        )
        self._many = scope.models  # those with too many objects for all of them
        self._rows: dict[str, Any] = {subject_of(obj): obj} if obj else {}  # that are loaded

    @cached_property
    def stored(self) -> Mapping[str, int | None]:
        """The stored views of the objects by subject; None if they have to be read."""
        scope = self.scope
        if scope.is_listed and "object" not in scope.chosen:
            return self._linked()
        if scope.is_listed and not self._rows:
            self._rows = {
                subject_of(row): row for model in scope.models for row in scope.rows(model)
            }
        if not scope.is_listed:
            best = self._best[:CANDIDATES]
            # There is no list of longer times, nor of a site's first hour.
            for model in scope.models if not best else ():
                viewed = row_counts.most_viewed(scope.rows(model), CANDIDATES)
                self._rows.update((subject_of(row), row) for row, _ in viewed)
            self.load([*best, *islice(self._trending(), CANDIDATES)])
        return {subject: loaded(row) for subject, row in self._rows.items()}

    def _linked(self) -> dict[str, int | None]:
        """Returns a category's or an author's objects; of too many the most viewed in the period,
        then of all time.
        """
        rows = {model: self.scope.rows(model) for model in self.scope.models}
        stored = row_counts.stored_views(
            [some for model, some in rows.items() if issubclass(model, Tracked)]
        )
        linked: dict[type[Model], dict[str, int | None]] = {}
        for model, some in rows.items():
            linked[model] = {**stored.get(model, {})}
            for row, views in row_counts.most_viewed(some, MOST) if model not in stored else ():
                self._rows[subject_of(row)], linked[model][subject_of(row)] = row, views
        self._many = [model for model, found in linked.items() if len(found) >= MOST]
        best_of = rows_by_model(self._best) if self._many else {}
        for model in self._many:
            found, best = linked[model], best_of.get(model, {})
            lacking = [
                pk
                for pk, name in best.items()
                if name not in found and len(found) in (MOST, row_counts.FEW)
            ]
            found |= {
                best[pk]: None
                for pk in rows[model].filter(pk__in=lacking).values_list("pk", flat=True)
            }
            first = {name: found[name] for name in best.values() if name in found}
            linked[model] = dict(islice({**first, **found}.items(), MOST))
        return {name: views for found in linked.values() for name, views in found.items()}

    @cached_property
    def _best(self) -> list[str]:
        """Subjects with the most in the period, out of a list or of its history; of long periods
        those of all time.

        By growth they are those with the most views, in the order of their highest number in one
        list.
        """
        if not self._many or (
            self.days == popular.EVER and self.scope.is_listed
        ):  # rows are sorted by all time
            return []
        now, is_present = self.scope.span.hours, self.scope.is_present
        before = self.scope.before.hours if self.by == "growth" and self.scope.before else range(0)
        # The lists lack the running hour, which is in the trending one, but not for filters.
        is_short = self.scope.is_listed and len(now) <= 25  # hours of the longest day
        best, earlier = dict[str, int](), dict[str, int]()
        if not is_short:
            rises = partial(popular.rises, self._listed, days=self.days)
            if is_present:
                best = {name: least for name, _, _, _, _, least, *_ in self.ranking}
            else:
                best = rises(since=now.start, until=now.stop)
            earlier = rises(since=before.start, until=before.stop) if best and before else {}
        if is_short or not (best or is_present or len(now) > model_sums.QUARTER):
            rows = [self.scope.rows(model) for model in self._many if self.scope.is_listed]
            summed = popular.most(self._listed, since=now.start, until=now.stop, rows=rows)
            best = {name: one.views for name, one in summed}
            gains = period_gains.gains(best, since=before.start, until=before.stop)
            earlier = {name: one.views for name, one in gains.items()}
        names = sorted(best, key=lambda name: best[name] - earlier.get(name, 0), reverse=True)
        return [name.removeprefix(history.of_reads("")) for name in names[:MOST]]

    @cached_property
    def ranking(self) -> list[Any]:
        """The list of so many days; entries of that of all time end with the first hour of history."""
        found = popular.entries(*self._listed, days=self.days, by="views")
        # Not by the bound, which has what is in several lists several times, so what was viewed of
        # late comes first.
        found = found.annotate(least=Max("views")).order_by("-least", "subject")
        if self.days == popular.EVER:
            found = found.annotate(start=Subquery(history.first_hour(self.names)))
        return [*found[:MOST]]

    @property
    def _listed(self) -> list[str]:
        """The labels of the models, or the names that history has of their reads."""
        is_read = self.by == "reads" and self.days != popular.EVER
        return [
            history.of_reads(label) if is_read else label for label in map(label_of, self._many)
        ]

    @property
    def is_cut(self) -> bool:
        """Returns True if objects are left out that may have views in the period."""
        if self.scope.is_listed:
            return MOST in Counter(name.partition(":")[0] for name in self.stored).values()
        is_by_list = (
            self.by == "views" and self.scope.before is None
        )  # whose order is that of the list
        return self.days == popular.EVER and not is_by_list and len(self.stored) >= CANDIDATES

    @property
    def first(self) -> list[str]:
        """The subjects of the objects whose breakdowns and funnels are added up."""
        return [*self.stored][:MOST]

    def load(self, subjects: Iterable[str]) -> None:
        """Loads the rows of those of the subjects that are not loaded yet."""
        for model, pks in rows_by_model(
            name for name in dict.fromkeys(subjects) if name not in self._rows
        ).items():
            links = [
                link.name for name in ("category", "author") for link in self._links(name, model)
            ]
            rows = self.scope.rows(model).filter(pk__in=pks)
            rows = rows.defer(None).select_related(*links) if links else rows
            self._rows.update((subject_of(row), row) for row in rows)

    def __getitem__(self, subject: str) -> Any:
        """Returns the object, whose row is loaded with those of all others if that was not done
        before.
        """

        def load_row() -> Model:
            if subject not in self._rows:
                self.load(self.stored)
            ((model, pks),) = rows_by_model([subject]).items()
            return self._rows.get(subject) or model(
                pk=next(iter(pks))
            )  # which was deleted meanwhile

        return self._rows.get(subject) or SimpleLazyObject(load_row)

    def _links(self, name: str, model: type[Model]) -> list[Any]:
        """Returns the foreign keys of the model that a filter by category or author may be about."""
        links = [author_field(model)] if name == "author" else news_links(model)
        return [
            link for link in links if name in self.scope.chosen and isinstance(link, ForeignKey)
        ]

    def chosen(self, name: str) -> Model | None:
        """Returns the category or the author of a filter, if a row that is loaded is linked to it."""
        linked = (
            getattr(row, link.name)
            for row in self._rows.values()
            for link in self._links(name, row.__class__)
        )
        asked = self.scope.chosen[name]
        return next(
            (one for one in linked if one and asked in (str(one.pk), subject_of(one))), None
        )
