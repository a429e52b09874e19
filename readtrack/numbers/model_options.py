"""What a model says to numbers: attributes of a model that extends `Tracked`, and options in MODELS
of any other.
"""

from typing import Any, ClassVar

from django.db.models import Model

from readtrack import subjects
from readtrack.models import Tracked


class NumbersOfModel:
    """The attributes that a model may have for numbers, with the values of a model without them."""

    #: True if a view enters the funnel, False if not; None is the site's setting.
    has_funnel: ClassVar[bool | None] = None
    #: Date or time when an object was published; "" is a field with an obvious name, if there is
    #: one.
    published_field: ClassVar[str] = ""
    #: Publications of a day that charts of the site and of categories name, at most. More of them
    #: are one note, such as "12 published". 0 is none.
    publication_notes: ClassVar[int] = 0


# Those that MODELS may have, too, with their types.
IN_MODELS: dict[str, type] = {"published_field": str, "publication_notes": int}


def option_of(model: type[Model], name: str) -> Any:
    """Returns what the model says: its attribute if it extends `Tracked`, else its option in
    MODELS.

    An option in MODELS of another type, which a check reports, is left out.
    """
    default = getattr(NumbersOfModel, name)
    if issubclass(model, Tracked):
        return getattr(model, name, default)
    value = subjects.option_of(model, name)
    if type(value) is not IN_MODELS[name]:
        return default
    return value
