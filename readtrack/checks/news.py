"""Checks of what makes a category unread: fields and relations that models and `MODELS` name."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple

from django.core import checks
from django.core.exceptions import FieldDoesNotExist
from django.db.models import ForeignKey, ManyToManyField, Model

from readtrack import subjects
from readtrack.conf import conf
from readtrack.models import Tracked


class Declaration(NamedTuple):
    """The names of the relations by which rows of a model are news for others."""

    where: str  # an attribute of the model, or a key of the setting
    model: type[Model]
    names: Any


def check_fields() -> list[checks.CheckMessage]:
    """Checks that `news_fields` and `news_author` name fields of the model."""
    messages: list[checks.CheckMessage] = []
    for model in subjects.tracked_models():
        named = [("news_fields", name) for name in model.news_fields]
        if model.news_author:
            named.append(("news_author", model.news_author))
        for attribute, name in named:
            if _has_field(model, name):
                continue
            messages.append(
                checks.Error(
                    f"{model._meta.label}.{attribute} names '{name}', which is no field of it.",
                    hint="Name its fields: in news_fields any, in news_author a foreign key.",
                    id="readtrack.E009",
                )
            )
    return messages


def _has_field(model: type[Model], name: str) -> bool:
    try:
        model._meta.get_field(name)
    except FieldDoesNotExist:
        return False
    return True


def check_relations() -> list[checks.CheckMessage]:
    """Checks that each `news_for` lists relations of the model that can be followed."""
    return [
        checks.Error(
            f"{declaration.where} {problem}, so it makes nothing unread.",
            hint=(
                f"{_guess(declaration)}List relations of the model itself. For others, such as 'category__parent' or"
                " the tags of taggit, call tracker.publish_to(objects, [post]) in the transaction"
                " that saves the post."
            ),
            id="readtrack.E044",
        )
        for declaration in _declarations()
        for problem in _problems(declaration)
    ]


def _declarations() -> Iterator[Declaration]:
    """Yields what the site's models and MODELS declare; another check reports unknown models."""
    for tracked in subjects.tracked_models():
        # A model may lack the fields that Tracked names by default.
        if tracked.news_for is not Tracked.news_for:
            yield Declaration(f"{tracked._meta.label}.news_for", tracked, tracked.news_for)
    for label, entry in conf.MODELS.items():
        model = subjects.model_with_label(str(label))
        if model is not None and isinstance(entry, dict) and "news_for" in entry:
            where = f"READTRACK['MODELS']['{label}']['news_for']"
            yield Declaration(where, model, entry["news_for"])


def _relations(model: type[Model]) -> list[str]:
    """Returns the names of the model's foreign keys and many-to-many fields."""
    fields = model._meta.get_fields()
    return [field.name for field in fields if isinstance(field, (ForeignKey, ManyToManyField))]


def _guess(declaration: Declaration) -> str:
    """Returns the question whether other relations were meant; "" if no name resembles one."""
    if not isinstance(declaration.names, (list, tuple)):
        return ""
    relations = _relations(declaration.model)
    wrong = [str(name) for name in declaration.names if name not in relations]
    meant = [nearest for name in wrong for nearest in get_close_matches(name, relations, n=1)]
    return f"Did you mean: {', '.join(meant)}? " if meant else ""


def _problems(declaration: Declaration) -> list[str]:
    """Returns what is wrong with a declaration, in words that follow `where`."""
    names = declaration.names
    if not isinstance(names, (list, tuple)):
        return [f"is {names!r} and no list, such as [{names!r}]"]
    relations = _relations(declaration.model)
    return [
        f"names {name!r}, which is no foreign key or many-to-many field of the model"
        for name in names
        if name not in relations
    ]
