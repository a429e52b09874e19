"""What is known of an object beside its numbers: when it was published, its category and its author.

Nothing here costs a query: what is not loaded is left out.
"""

from datetime import date, datetime
from typing import Any, NamedTuple

from django.db.models import DateField, ForeignKey, Model
from django.utils.timezone import template_localtime  # type: ignore[attr-defined]

from readtrack import buckets
from readtrack.dashboard.scope import FIRST_DAY
from readtrack.subjects import author_field, news_links
from readtrack.texts import name_of

#: Names of fields that obviously have the time of publication, the usual ones first.
PUBLISHED = (
    "published_at",
    "published_on",
    "published",
    "pub_date",
    "publication_date",
    "publish_date",
    "date_published",
    "first_published_at",
)


class Details(NamedTuple):
    """What is known of an object. A text is "" if it is not known."""

    published: date | None
    category: str
    author: str


def details_of(obj: Any) -> Details:
    """Returns what is known of the object without a query."""
    model = obj.__class__
    categories = [_name_at(obj, link) for link in news_links(model)]
    return Details(
        published=_published(obj),
        category=next(filter(None, categories), ""),
        author=_name_at(obj, author_field(model)),
    )


def linked_fields(model: type[Model]) -> list[Any]:
    """Returns the foreign keys to the categories and the author of the model's rows."""
    fields = [*news_links(model), author_field(model)]
    return [field for field in fields if isinstance(field, ForeignKey)]


def _name_at(obj: Model, field: Any) -> str:
    """Returns the name of the row that a foreign key leads to; "" if it is not loaded."""
    if not isinstance(field, ForeignKey) or not field.is_cached(obj):
        return ""
    row = field.get_cached_value(obj)
    return "" if row is None else name_of(row)


def published_at(obj: Model) -> datetime | None:
    """Returns when the object was published, FIRST_DAY or later, as aware UTC; None if not known.

    Of a field without a time it is the start of the day.
    """
    value = _published_value(obj)
    if value is None:
        return None
    # Days at both ends of the calendar have no time in all zones.
    if value.year < FIRST_DAY.year:
        value = FIRST_DAY
    if value.year > buckets.now().year + 1:
        return None
    if isinstance(value, datetime):
        return buckets.now(value)
    return buckets.now(buckets.day_start(value))


def _published(obj: Model) -> date | None:
    """Returns the local day on which the object was published."""
    value = _published_value(obj)
    if isinstance(value, datetime):
        local: datetime = template_localtime(value)
        return local.date()
    return value


def _published_value(obj: Model) -> date | datetime | None:
    """Returns the value of the object's first field of PUBLISHED that has one."""
    if obj._state.adding:  # it stands for a row that was deleted
        return None
    fields = {field.name: field for field in obj._meta.concrete_fields}
    for name in PUBLISHED:
        if not isinstance(fields.get(name), DateField) or name in obj.get_deferred_fields():
            continue
        value = getattr(obj, name)
        if isinstance(value, date):  # or a datetime, which is one
            return value
    return None
