"""Rows that are read past caches of the ORM.

The flush writes by SQL of its own, of which such a cache learns nothing. So it would answer with
old counts, and the flush would take them for those of the database.
"""

from typing import Any, TypeVar

from django.db import models

_Row = TypeVar("_Row", bound=models.Model, covariant=True)


def past_caches(rows: "models.QuerySet[_Row]") -> "models.QuerySet[_Row]":
    """Returns the queryset, which no cache answers. It may be the same object."""
    # django-cacheops adds this method to all querysets. django-cachalot sees what is written by
    # other SQL, so it needs nothing.
    without_cache: Any = getattr(rows, "nocache", None)
    if without_cache is None:
        return rows
    rows_past_cache: models.QuerySet[_Row] = without_cache()
    return rows_past_cache


class OwnRows(models.Manager[_Row]):
    """The manager of the app's own tables."""

    def get_queryset(self) -> "models.QuerySet[_Row]":
        """Returns all rows."""
        return past_caches(super().get_queryset())


class OwnRow(models.Model):
    """The base of the app's own tables."""

    objects = OwnRows()

    class Meta:
        abstract = True
        default_permissions = ()
