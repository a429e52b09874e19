"""Finds the object that a path shows, by the site's own URLconf and the attributes of its views."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

from django.apps import apps
from django.conf import settings
from django.core.exceptions import FieldDoesNotExist, MultipleObjectsReturned, ObjectDoesNotExist, ValidationError
from django.db import DataError
from django.db.models import Model, QuerySet
from django.http import Http404
from django.urls import Resolver404, ResolverMatch, get_script_prefix, resolve
from django.utils.translation import get_language_from_path, override
from django.views.generic import DetailView
from django.views.generic.detail import SingleObjectMixin

from readtrack.conf import conf
from readtrack.subjects import is_counted, subject_of, subject_of_row

KNOWN_PATHS = 50_000  # whose subjects are cached


class Row(NamedTuple):
    """The row of the queryset whose field has that value. Rows of one owner and field are looked up together."""

    owner: Hashable
    queryset: "QuerySet[Any]"
    field: str
    value: Any


class Urls:
    """Subjects by path. Those that are not cached are looked up with one query for each view."""

    def __init__(self, *, limit: int = KNOWN_PATHS) -> None:
        self.limit = limit
        self._known: dict[str, str | None] = {}

    def subjects(self, paths: Iterable[str]) -> dict[str, str | None]:
        """Returns the subject that each path shows; "" if that object does not exist, None if no view says what."""
        wanted = dict.fromkeys(paths)
        if len(self._known) >= self.limit:
            self._known.clear()
        lookups: defaultdict[tuple[Hashable, str], dict[str, Row]] = defaultdict(dict)
        for path in [path for path in wanted if path not in self._known]:
            shown = _shown(path)
            if isinstance(shown, Row):
                lookups[shown.owner, shown.field][path] = shown
            else:
                self._known[path] = subject_of(shown) if isinstance(shown, Model) else shown
        for (_, field), rows in lookups.items():
            queryset = next(iter(rows.values())).queryset
            values = [row.value for row in rows.values()]
            pks = dict(queryset.filter(**{f"{field}__in": values}).values_list(field, "pk"))
            for path, row in rows.items():
                exists = row.value in pks
                self._known[path] = subject_of_row(queryset.model, pks[row.value]) if exists else ""
        return {path: self._known[path] for path in wanted}


def _shown(path: str) -> Row | Model | str | None:
    """Returns what the path shows; "" if that does not exist, None if the URLconf or the view does not say."""
    with override(get_language_from_path(path) or settings.LANGUAGE_CODE):
        try:
            match = resolve("/" + path.removeprefix(get_script_prefix()))
        except Resolver404:
            return None
    # A function, `"app.Model"` or `("app.Model", "argument"[, "field"])`.
    rule: Any = conf.IMPORT_VIEWS.get(match.view_name) or conf.IMPORT_VIEWS.get(match._func_path)
    if callable(rule):
        return _by_function(rule, path, match)
    if not rule:
        return _by_view(match)
    label, argument, field = (rule, "pk", "pk") if isinstance(rule, str) else (*rule, "pk")[:3]
    queryset = apps.get_model(label)._default_manager.all()
    return _row(label, queryset, field=field, value=match.kwargs.get(argument))


def _by_function(function: Callable[..., Any], path: str, match: ResolverMatch) -> Model | str | None:
    """Returns the object that the site's function finds by path and arguments, or "" if it does not exist."""
    try:
        obj = function(path, *match.args, **match.kwargs)
    except (ObjectDoesNotExist, MultipleObjectsReturned, Http404, ValidationError, ValueError, DataError):
        return ""  # a log holds any path, and one that fits no object must not end the import
    if not isinstance(obj, Model) or not is_counted(obj.__class__):
        return None
    return obj if obj.pk is not None else ""


def _by_view(match: ResolverMatch) -> Row | None:
    """Reads a DetailView's attributes, some of which `as_view()` may have been given."""
    view = getattr(match.func, "view_class", None)
    if not (isinstance(view, type) and issubclass(view, DetailView)):
        return None
    instance: Any = view(**getattr(match.func, "view_initkwargs", {}))
    if instance.queryset is None and instance.model is None:
        return None  # it finds its objects by code, with a request that we do not have
    queryset = SingleObjectMixin.get_queryset(instance)
    pk, slug = (match.kwargs.get(name) for name in (instance.pk_url_kwarg, instance.slug_url_kwarg))
    field, value = (instance.slug_field, slug) if pk is None else ("pk", pk)
    return _row(match.func, queryset, field=field, value=value)


def _row(owner: Hashable, queryset: "QuerySet[Any]", *, field: str, value: Any) -> Row | None:
    model = queryset.model
    if value is None or not is_counted(model) or "\0" in str(value):
        return None
    try:
        try:
            column: Any = model._meta.pk if field == "pk" else model._meta.get_field(field)
            value = column.clean(value, None)
        except FieldDoesNotExist:
            queryset.filter(**{field: value})  # a field of a related model; this makes no query
    except (ValidationError, ValueError):  # also what no column of that kind can hold
        return None
    return Row(owner, queryset, field, value)
