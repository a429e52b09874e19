"""Finds the object that a path shows, by the site's own URLconf and the attributes of its views."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from django.apps import apps
from django.conf import settings
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import QuerySet
from django.urls import Resolver404, ResolverMatch, get_script_prefix, resolve
from django.utils.translation import get_language_from_path, override
from django.views.generic import DetailView

from readtrack.conf import conf
from readtrack.models import Tracked
from readtrack.subjects import subject_of, subject_of_row

KNOWN_PATHS = 20_000  # whose targets are cached
KNOWN_TARGETS = 50_000  # whose subjects are cached


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows among which a view finds its objects, by one field. One instance a view: lookups are made together."""

    queryset: "QuerySet[Any]"
    field: str


class Target(NamedTuple):
    """The row whose field has that value, or, without rows, an object found already."""

    rows: Rows | None
    value: Any


class Urls:
    """The site's paths."""

    def __init__(self) -> None:
        self.target: Callable[[str], Target | None] = lru_cache(maxsize=KNOWN_PATHS)(self._target)
        self._rows: dict[Hashable, Rows] = {}

    def _target(self, path: str) -> Target | None:
        """Returns what the path shows; None if the URLconf or the view does not say."""
        with override(get_language_from_path(path) or settings.LANGUAGE_CODE):
            try:
                match = resolve("/" + path.removeprefix(get_script_prefix()))
            except Resolver404:
                return None
        rule = conf.IMPORT_VIEWS.get(match.view_name) or conf.IMPORT_VIEWS.get(match._func_path)
        return self._by_rule(rule, match) if rule else self._by_view(match)

    def _by_rule(self, rule: Any, match: ResolverMatch) -> Target | None:
        """Applies IMPORT_VIEWS: `"app.Model"`, `("app.Model", "argument"[, "field"])` or a function of arguments."""
        if callable(rule):
            obj = rule(match.kwargs)
            return Target(None, obj) if isinstance(obj, Tracked) else None
        label, argument, field = (rule, "pk", "pk") if isinstance(rule, str) else (*rule, "pk")[:3]
        queryset = apps.get_model(label)._default_manager.all()
        return self._row(label, queryset, field=field, value=match.kwargs.get(argument))

    def _by_view(self, match: ResolverMatch) -> Target | None:
        """Reads a DetailView's attributes, some of which `as_view()` may have been given."""
        view = getattr(match.func, "view_class", None)
        if not (isinstance(view, type) and issubclass(view, DetailView)):
            return None
        instance: Any = view(**getattr(match.func, "view_initkwargs", {}))
        queryset = instance.queryset
        if queryset is None and instance.model is None:
            return None  # it finds its objects by code, with a request that we do not have
        if queryset is None:
            queryset = instance.model._default_manager.all()
        pk, slug = (match.kwargs.get(name) for name in (instance.pk_url_kwarg, instance.slug_url_kwarg))
        if pk is None:
            return self._row(match.func, queryset, field=instance.slug_field, value=slug)
        return self._row(match.func, queryset, field="pk", value=pk)

    def _row(self, owner: Hashable, queryset: "QuerySet[Any]", *, field: str, value: Any) -> Target | None:
        model = queryset.model
        if value is None or not issubclass(model, Tracked) or "\0" in str(value):
            return None
        try:
            column: Any = model._meta.pk if field == "pk" else model._meta.get_field(field)
            value = column.clean(value, None)
        except ValidationError:  # also what no column of that kind can hold
            return None
        except FieldDoesNotExist:
            pass  # a field of a related model
        return Target(self._rows.setdefault((owner, field), Rows(queryset, field)), value)


class Objects:
    """Subjects by target. Those that are not cached are looked up with one query for each view."""

    def __init__(self, *, limit: int = KNOWN_TARGETS) -> None:
        self.limit = limit
        self._known: OrderedDict[Target, str] = OrderedDict()

    def subjects(self, targets: Iterable[Target]) -> dict[Target, str]:
        """Returns the subject of each target; empty for an object that does not exist."""
        found: dict[Target, str] = {}
        unknown: dict[Rows, list[Target]] = {}
        for target in dict.fromkeys(targets):
            if target in self._known:
                self._known.move_to_end(target)
                found[target] = self._known[target]
            elif target.rows is None:
                found[target] = subject_of(target.value)
            else:
                unknown.setdefault(target.rows, []).append(target)
        for rows, some in unknown.items():
            values = [target.value for target in some]
            pks = dict(rows.queryset.filter(**{f"{rows.field}__in": values}).values_list(rows.field, "pk"))
            for target in some:
                pk = pks.get(target.value)
                found[target] = "" if pk is None else subject_of_row(rows.queryset.model, pk)
        self._known.update(found)
        while len(self._known) > self.limit:
            self._known.popitem(last=False)
        return found
