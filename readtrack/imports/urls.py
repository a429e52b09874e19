"""Which object a path shows, by the site's own URLconf and what its views say of themselves."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from django.apps import apps
from django.conf import settings
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import Model, QuerySet
from django.urls import Resolver404, ResolverMatch, get_script_prefix, resolve
from django.utils.translation import get_language_from_path, override
from django.views.generic import DetailView

from readtrack.conf import conf
from readtrack.models import Tracked
from readtrack.subjects import subject_of, subject_of_row

KNOWN = 20_000  # paths whose targets are remembered


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Where a view finds its objects: one of these for each view, so that lookups can be made together."""

    queryset: "QuerySet[Any]"
    field: str


class Target(NamedTuple):
    """What a path asks for: the row whose field has that value, or, without rows, an object found already."""

    rows: Rows | None
    value: Any


class Urls:
    """The site's paths, as far as its views say what they show."""

    def __init__(self) -> None:
        self.target: Callable[[str], Target | None] = lru_cache(maxsize=KNOWN)(self._target)
        self._rows: dict[Hashable, Rows] = {}

    def _target(self, path: str) -> Target | None:
        """What the path shows; None where the URLconf or the view does not say."""
        with override(get_language_from_path(path) or settings.LANGUAGE_CODE):
            try:
                match = resolve("/" + path.removeprefix(get_script_prefix()))
            except Resolver404:
                return None
        rule = conf.IMPORT_VIEWS.get(match.view_name) or conf.IMPORT_VIEWS.get(match._func_path)
        return self._by_rule(rule, match) if rule else self._by_view(match)

    def _by_rule(self, rule: Any, match: ResolverMatch) -> Target | None:
        """By IMPORT_VIEWS: `"app.Model"`, `("app.Model", "argument"[, "field"])` or a function of the arguments."""
        if callable(rule):
            obj = rule(match.kwargs)
            return Target(None, obj) if isinstance(obj, Tracked) else None
        label, argument, field = (rule, "pk", "pk") if isinstance(rule, str) else (*rule, "pk")[:3]
        rows = self._shared(label, field, queryset=apps.get_model(label)._default_manager.all())
        return _target(rows, match.kwargs.get(argument))

    def _by_view(self, match: ResolverMatch) -> Target | None:
        """By a DetailView's own attributes, which `as_view()` may have been given too."""
        view = getattr(match.func, "view_class", None)
        if not (isinstance(view, type) and issubclass(view, DetailView)):
            return None
        instance: Any = view(**getattr(match.func, "view_initkwargs", {}))
        queryset = instance.queryset
        if queryset is None and instance.model is None:
            return None  # it finds its objects by code, with a request we do not have
        if queryset is None:
            queryset = instance.model._default_manager.all()
        pk, slug = (match.kwargs.get(name) for name in (instance.pk_url_kwarg, instance.slug_url_kwarg))
        field = instance.slug_field if pk is None else "pk"
        return _target(self._shared(match.func, field, queryset=queryset), slug if pk is None else pk)

    def _shared(self, owner: Hashable, field: str, *, queryset: "QuerySet[Any]") -> Rows:
        return self._rows.setdefault((owner, field), Rows(queryset, field))


def _target(rows: Rows, value: Any) -> Target | None:
    model = rows.queryset.model
    if value is None or not issubclass(model, Tracked) or "\0" in str(value):
        return None
    try:
        field: Any = model._meta.pk if rows.field == "pk" else model._meta.get_field(rows.field)
        return Target(rows, field.clean(value, None))  # also refuses what no column of that kind can hold
    except ValidationError:
        return None
    except FieldDoesNotExist:
        return Target(rows, value)  # a field of a related model


KNOWN_OBJECTS = 50_000  # targets whose subjects are remembered


class Objects:
    """Looks up what is not known yet, with one query for each view that shows it."""

    def __init__(self, *, limit: int = KNOWN_OBJECTS) -> None:
        self.limit = limit
        self._known: OrderedDict[Target, str] = OrderedDict()

    def subjects(self, targets: Iterable[Target]) -> dict[Target, str]:
        """The subject of each target; empty for an object that does not exist."""
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
            found.update(_looked_up(rows, some))
        self._known.update(found)
        while len(self._known) > self.limit:
            self._known.popitem(last=False)
        return found


def _looked_up(rows: Rows, targets: list[Target]) -> dict[Target, str]:
    model: type[Model] = rows.queryset.model
    values = [target.value for target in targets]
    pks = dict(rows.queryset.filter(**{f"{rows.field}__in": values}).values_list(rows.field, "pk"))
    return {target: subject_of_row(model, pks[target.value]) if target.value in pks else "" for target in targets}
