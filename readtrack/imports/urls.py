"""Finds the object that a path shows, by the site's own URLconf and the attributes of its views."""

from contextlib import suppress
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import FieldDoesNotExist, MultipleObjectsReturned, ObjectDoesNotExist, ValidationError
from django.db import DataError
from django.db.models import Model, QuerySet
from django.http import Http404
from django.urls import Resolver404, get_script_prefix, resolve
from django.utils.translation import get_language_from_path, override
from django.views.generic import DetailView
from django.views.generic.detail import SingleObjectMixin

from readtrack.conf import conf
from readtrack.subjects import is_counted, subject_of, subject_of_row


def subject(path: str) -> str | None:
    """Returns the subject that the path shows; "" if that object does not exist, None if no view says what."""
    with override(get_language_from_path(path) or settings.LANGUAGE_CODE):
        try:
            match = resolve("/" + path.removeprefix(get_script_prefix()))
        except Resolver404:
            return None
    # A function, `"app.Model"` or `("app.Model", "argument"[, "field"])`.
    rule: Any = conf.IMPORT_VIEWS.get(match.view_name) or conf.IMPORT_VIEWS.get(match._func_path)
    if callable(rule):
        try:
            obj = rule(path, *match.args, **match.kwargs)
        except (ObjectDoesNotExist, MultipleObjectsReturned, Http404, ValidationError, ValueError, DataError):
            return ""  # a log holds any path, and one that fits no object must not end the import
        if not isinstance(obj, Model) or not is_counted(obj.__class__):
            return None
        return "" if obj.pk is None else subject_of(obj)
    if rule:
        label, argument, field = (rule, "pk", "pk") if isinstance(rule, str) else (*rule, "pk")[:3]
        return _found(apps.get_model(label)._default_manager.all(), field=field, value=match.kwargs.get(argument))
    view = getattr(match.func, "view_class", None)
    if not (isinstance(view, type) and issubclass(view, DetailView)):
        return None
    instance: Any = view(**getattr(match.func, "view_initkwargs", {}))
    if instance.queryset is None and instance.model is None:
        return None  # it finds its objects by code, with a request that we do not have
    pk, slug = (match.kwargs.get(name) for name in (instance.pk_url_kwarg, instance.slug_url_kwarg))
    field, value = (instance.slug_field, slug) if pk is None else ("pk", pk)
    return _found(SingleObjectMixin.get_queryset(instance), field=field, value=value)


def _found(queryset: "QuerySet[Any]", *, field: str, value: Any) -> str | None:
    model = queryset.model
    if value is None or not is_counted(model) or "\0" in str(value):
        return None
    try:
        with suppress(FieldDoesNotExist):  # a field of a related model
            column: Any = model._meta.pk if field == "pk" else model._meta.get_field(field)
            value = column.clean(value, None)
        pk = queryset.filter(**{field: value}).values_list("pk", flat=True).first()
    except (ValidationError, ValueError):
        return None  # also what no column of that kind can hold
    return "" if pk is None else subject_of_row(model, pk)
