"""Moments in SQL: aware in Python and right in the database, whatever the site's USE_TZ says."""

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.timezone import get_default_timezone

from readtrack import buckets

# The type stubs make it generic, Django does not.
if TYPE_CHECKING:
    _DateTimeField = models.DateTimeField[Any, Any]
else:
    _DateTimeField = models.DateTimeField


class MomentField(_DateTimeField):
    """A moment that is aware on the way in and out. Without USE_TZ Django knows but local times, of which one
    hour a year comes twice: where a database has no time zones, ours are UTC, as they are with USE_TZ."""

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:  # noqa: FBT001, FBT002 - Django's signature
        if settings.USE_TZ or not isinstance(value, datetime):
            return super().get_db_prep_value(value, connection, prepared)
        at = buckets.now(value)
        return connection.ops.adapt_datetimefield_value(at if _has_zones(connection) else at.replace(tzinfo=None))

    def from_db_value(
        self, value: datetime | None, expression: Any, connection: BaseDatabaseWrapper
    ) -> datetime | None:
        if value is None or value.tzinfo:
            return value
        zone = get_default_timezone()  # what the admin shows moments in, without USE_TZ
        local = value.replace(tzinfo=zone if _has_zones(connection) else timezone.utc).astimezone(zone)
        # By its offset alone, for Python neither compares nor subtracts rightly in the hour that comes twice.
        return local.replace(tzinfo=timezone(local.utcoffset() or timedelta()))


def _has_zones(connection: BaseDatabaseWrapper) -> bool:
    return connection.vendor == "postgresql"
