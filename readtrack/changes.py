"""What a save changed: the values that the database held of the fields that `news_fields` names."""

from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import Model

KNOWN = "_readtrack_known"


def held(instance: Any, only: Collection[str] | None = None) -> dict[str, Any]:
    """The instance's present values of its `news_fields`; deferred ones, and any but `only`, are left out."""
    values = {}
    for name in instance.news_fields:
        column = instance._meta.get_field(name).attname
        if column in instance.__dict__ and (only is None or name in only or column in only):
            values[name] = instance.__dict__[column]
    return values


def changed(instance: Model, values: Mapping[str, Any]) -> set[str]:
    """The names of those values that are not what the database was last known to hold."""
    known = instance.__dict__.get(KNOWN, {})
    return {name for name, value in values.items() if name not in known or known[name] != value}


def remember(instance: Model, values: Mapping[str, Any]) -> None:
    """Takes the values as what the database holds."""
    instance.__dict__[KNOWN] = {**instance.__dict__.get(KNOWN, {}), **values}
