"""When objects were published, by the field that their model has for it.

Nothing here costs a query: what is not loaded is not known.
"""

from datetime import date, datetime
from typing import Any

from django.conf import settings
from django.db.models import DateField, DateTimeField, Model
from django.utils.timezone import (  # type: ignore[attr-defined]
    get_default_timezone,
    make_naive,
    template_localtime,
)

from readtrack import buckets
from readtrack.numbers import local_time
from readtrack.numbers.model_options import option_of

#: Names of fields that obviously have the time of publication, the usual ones first.
PUBLISHED_NAMES = (
    "published_at",
    "published_on",
    "published",
    "pub_date",
    "publication_date",
    "publish_date",
    "date_published",
    "first_published_at",
)


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
    if not settings.USE_TZ:
        return make_naive(at, get_default_timezone())
    return at


def published_day(obj: Model) -> date | None:
    """Returns the local day on which the object was published; None if it is not known."""
    value = _value_of(obj)
    if isinstance(value, datetime):
        local: datetime = template_localtime(value)
        return local.date()
    return value


def _value_of(obj: Model) -> date | datetime | None:
    """Returns the value of the object's `published_field`; None if it is not loaded, or no date."""
    if obj._state.adding:  # it stands for a row that was deleted
        return None
    field = published_field(obj.__class__)
    if field is None or field.attname in obj.get_deferred_fields():
        return None
    value = getattr(obj, field.attname)
    if not isinstance(value, date):  # a datetime is a date, too
        return None
    return value


def published_field(model: type[Model]) -> Any:
    """Returns the field with the date or the time when an object of the model was published.

    It is the one that the `published_field` of the model, or of MODELS, names, else the first one
    with an obvious name; None without one.
    """
    field_name = option_of(model, "published_field")
    dates = {field.name: field for field in model._meta.concrete_fields if is_date(field)}
    if field_name:
        return dates.get(field_name)  # a check reports a name that is none of them
    for obvious_name in PUBLISHED_NAMES:
        if obvious_name in dates:
            return dates[obvious_name]
    return None


def publication_notes(model: type[Model]) -> int:
    """Returns how many publications of a day charts name, at most, by the `publication_notes` of
    the model or of MODELS; 0 for none.
    """
    most: int = option_of(model, "publication_notes")
    return most


def is_date(field: Any) -> bool:
    """Returns True for a field of dates, or of dates with times."""
    return isinstance(field, DateField)
