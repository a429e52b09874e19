"""Which object each page of the site shows, by the page's path."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from django.apps import apps
from django.conf import settings
from django.core.exceptions import (
    FieldDoesNotExist,
    MultipleObjectsReturned,
    ObjectDoesNotExist,
    ValidationError,
)
from django.db import DataError, Error, InterfaceError, OperationalError, models
from django.http import Http404
from django.urls import Resolver404, ResolverMatch, get_script_prefix, resolve
from django.utils.translation import get_language_from_path, override
from django.views.generic.detail import DetailView, SingleObjectMixin

from readtrack.imports.models import Import
from readtrack.imports.options import view_rules
from readtrack.sql import vendors
from readtrack.subjects import is_counted, subject_of, subject_of_row

MOST_PATHS = 200_000  # paths whose objects are remembered

# The errors that a site's function may raise for a path without an object. A log has all kinds of
# paths, so these errors must not end the import.
_NO_OBJECT = (
    ObjectDoesNotExist,
    MultipleObjectsReturned,
    Http404,
    ValidationError,
    ValueError,
    OverflowError,
    DataError,
)


def subject_at(path: str) -> str | None:
    """Returns the subject of the object that the page at that path shows.

    Returns "" if the object does not exist, and None if it is not known which object it shows.
    """
    match = _match_of(path)
    if match is None:
        return None
    rule = _rule_of(match)
    if callable(rule):
        return _subject_by_function(rule, path, match)
    row = _row_by_rule(rule, match) if rule else _row_by_view(match)
    return None if row is None else _subject_of(row)


def _match_of(path: str) -> ResolverMatch | None:
    """Returns the view of the page at that path; None if there is none."""
    with override(get_language_from_path(path) or settings.LANGUAGE_CODE):
        try:
            return resolve("/" + path.removeprefix(get_script_prefix()))
        except Resolver404:
            return None


def _rule_of(match: ResolverMatch) -> Any:
    """Returns the site's setting for the view: a function, `"app.Model"`, `("app.Model",
    "argument")`, or `("app.Model", "argument", "field")`; None if there is none.
    """
    rules = view_rules()
    return rules.get(match.view_name) or rules.get(match._func_path)


class _Row(NamedTuple):
    """The row of the database that a page shows."""

    rows: "models.QuerySet[Any]"  # of which it is the first one with the value
    field: str
    value: Any


class Lookup(NamedTuple):
    """The object that a path shows, or the error by which it could not be looked up."""

    subject: str | None  # as `subject_at` returns it; None for an error
    error: str = ""


def look_up(path: str) -> Lookup:
    """Returns the object that the page at that path shows, or the error of the site's views and
    functions, or of the database about that path. Raises django.db.Error if the database is gone.
    """
    try:
        return Lookup(subject_at(path))
    except Exception as error:
        if isinstance(error, (OperationalError, InterfaceError)):
            Import.objects.exists()  # raises the same error if the database is gone
        first_line, _, _ = str(error).strip().partition("\n")
        return Lookup(None, error=f"{type(error).__name__}: {first_line}")


def _subject_by_function(
    function: Callable[..., Any], path: str, match: ResolverMatch
) -> str | None:
    """Returns the subject of the object that the site's function returns for the path.

    Returns "" if the object does not exist, and None for anything but a counted object.
    """
    try:
        obj = function(path, *match.args, **match.kwargs)
    except _NO_OBJECT:
        return ""
    if not isinstance(obj, models.Model) or not is_counted(obj.__class__):
        return None
    return "" if obj.pk is None else subject_of(obj)


def _row_by_rule(rule: str | Sequence[str], match: ResolverMatch) -> _Row:
    """Returns the row that an argument of the URL names.

    The rule is the label of a model, or a tuple: the label, the name of the argument, and the field
    that has its value. Both are "pk" by default.
    """
    argument = "pk"
    field = "pk"
    if isinstance(rule, str):
        label = rule
    elif len(rule) == 2:
        label, argument = rule
    else:
        label, argument, field = rule
    rows = apps.get_model(label)._default_manager.all()
    return _Row(rows, field, match.kwargs.get(argument))


def _row_by_view(match: ResolverMatch) -> _Row | None:
    """Returns the row that a DetailView shows; None for any other view."""
    view_class = getattr(match.func, "view_class", None)
    if not (isinstance(view_class, type) and issubclass(view_class, DetailView)):
        return None
    view: Any = view_class(**getattr(match.func, "view_initkwargs", {}))
    if view.queryset is None and view.model is None:
        return None  # get_object() or get_queryset() may need a request, which we do not have
    rows = SingleObjectMixin.get_queryset(view)
    pk = match.kwargs.get(view.pk_url_kwarg)
    if pk is not None:
        return _Row(rows, "pk", pk)
    return _Row(rows, view.slug_field, match.kwargs.get(view.slug_url_kwarg))


def _subject_of(row: _Row) -> str | None:
    """Returns the subject of the row.

    Returns "" if there is no such row, and None for a value that the field cannot have.
    """
    model = row.rows.model
    if row.value is None or not is_counted(model) or "\0" in str(row.value):
        return None
    try:
        value = row.value
        # There is no such field if `field` leads to a related model, such as `author__name`.
        with suppress(FieldDoesNotExist):
            value = _field_of(row).clean(value, None)
        pk = row.rows.filter(**{row.field: value}).values_list("pk", flat=True).first()
    except (ValidationError, ValueError):
        return None
    except Error as error:
        if not vendors.is_impossible_value(error):
            raise
        return None  # a text with characters that the database lacks
    return "" if pk is None else subject_of_row(model, pk)


def _field_of(row: _Row) -> Any:
    """Returns the model's field by which the row is found. Raises FieldDoesNotExist."""
    meta = row.rows.model._meta
    return meta.pk if row.field == "pk" else meta.get_field(row.field)


class Pages:
    """The objects of a site's pages, each looked up once."""

    def __init__(self) -> None:
        self._found: dict[str, Lookup] = {}  # by path

    def __contains__(self, path: str) -> bool:
        """Returns True if the path was looked up."""
        return path in self._found

    def look_up(self, path: str) -> Lookup:
        """Returns what `look_up` returns."""
        found = self._found.get(path)
        if found is None:
            found = look_up(path)
            self._keep({path: found})
        return found

    def prepare(self, paths: Iterable[str]) -> None:
        """Looks up the objects of these paths by few queries, so far as that is possible.

        A function of the site is called for a path only if that is looked up.
        """
        groups: defaultdict[Any, list[tuple[str, _Row]]] = defaultdict(list)
        for path in {*paths}.difference(self._found):
            # An error is told if the path is looked up.
            with suppress(Exception):
                self._put_into_group(path, groups)
        for group in groups.values():
            with suppress(Exception):
                self._keep(_found_together(group))

    def _put_into_group(self, path: str, groups: Any) -> None:
        """Puts the path's row into the group of those that one query finds, if there is one."""
        match = _match_of(path)
        if match is None:
            self._keep({path: Lookup(None)})
            return
        rule = _rule_of(match)
        if callable(rule):
            return
        row = _row_by_rule(rule, match) if rule else _row_by_view(match)
        if row is None:
            self._keep({path: Lookup(None)})
        elif _is_unique(row):
            groups[match.func, row.field].append((path, row))

    def _keep(self, found: Mapping[str, Lookup]) -> None:
        if len(self._found) + len(found) > MOST_PATHS:
            self._found.clear()
        self._found.update(found)


def _is_unique(row: _Row) -> bool:
    """Returns True if the value is one of a unique field, so that one query finds many rows."""
    if row.value is None or "\0" in str(row.value) or not is_counted(row.rows.model):
        return False
    field = _field_of(row)
    return bool(field.unique and not field.is_relation)


def _found_together(group: Sequence[tuple[str, _Row]]) -> dict[str, Lookup]:
    """Returns the objects that were found by path, with one query. The rows differ in the value.

    Raises an error for an impossible value.
    """
    _, first = group[0]
    field = _field_of(first)
    paths_by_value: defaultdict[Any, list[str]] = defaultdict(list)
    for path, row in group:
        with suppress(ValidationError, ValueError):
            paths_by_value[field.clean(row.value, None)].append(path)
    rows = first.rows.filter(**{f"{first.field}__in": [*paths_by_value]})
    found: dict[str, Lookup] = {}
    for value, pk in rows.values_list(first.field, "pk"):
        subject = subject_of_row(first.rows.model, pk)
        found.update((path, Lookup(subject)) for path in paths_by_value[value])
    return found
