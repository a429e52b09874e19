"""What is known of an object beside its numbers: when it was published, its category and its
author.

Nothing here costs a query: what is not loaded is left out.
"""

from datetime import date
from typing import Any, NamedTuple

from django.db.models import ForeignKey, Model

from readtrack.numbers.published import published_day
from readtrack.subjects import author_field, news_links
from readtrack.texts import name_of


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
        published=published_day(obj),
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
