"""When objects were published, by the field that their model has for it.

Nothing here costs a query: what is not loaded is not known.
"""

from datetime import date, datetime
from typing import Any

from django.conf import settings
from django.db.models import DateTimeField, Model
from django.utils.timezone import (  # type: ignore[attr-defined]
    get_default_timezone,
    make_naive,
    template_localtime,
)

from readtrack import buckets, local_time
from readtrack.subjects import published_field


def published_at(obj: Model) -> datetime | None:
    """Returns when the object was published, as `time_published` does; None if it is not known."""
    return time_published(_value_of(obj))


def time_published(value: date | datetime | None) -> datetime | None:
    """Returns the time that a value of a model's `published_field` means, as aware UTC.

    Of a field without a time it is the start of the day. Of a time before FIRST_DAY it is that day;
    None without a value, and for one that lies more than a year ahead.
    """
    if value is None:
        return None
    # Days at both ends of the calendar have no time in all zones.
    if value.year < local_time.FIRST_DAY.year:
        value = local_time.FIRST_DAY
    if value.year > buckets.now().year + 1:
        return None
    if isinstance(value, datetime):
        return buckets.now(value)
    return buckets.now(local_time.day_start(value))


def value_of_time(field: Any, at: datetime) -> Any:
    """Returns a time as a value of the `published_field`, for conditions."""
    if not isinstance(field, DateTimeField):
        return template_localtime(at).date()
    return at if settings.USE_TZ else make_naive(at, get_default_timezone())


def published_day(obj: Model) -> date | None:
    """Returns the local day on which the object was published; None if it is not known."""
    value = _value_of(obj)
    if isinstance(value, datetime):
        local: datetime = template_localtime(value)
        return local.date()
    return value


def _value_of(obj: Model) -> date | datetime | None:
    """Returns the value of the object's `published_field`, if it is loaded and a date."""
    if obj._state.adding:  # it stands for a row that was deleted
        return None
    field = published_field(obj.__class__)
    if field is None or field.attname in obj.get_deferred_fields():
        return None
    value = getattr(obj, field.attname)
    return value if isinstance(value, date) else None  # a datetime is a date, too
