"""Checks of what makes a category unread: fields and relations that models and `NEWS_FOR` name."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.core import checks
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model

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
    """Checks that `news_for` and NEWS_FOR list relations of the model that can be followed."""
    return [
        checks.Error(
            f"{declaration.where} {problem}, so it makes nothing unread.",
            hint=(
                "List relations of the model itself. For others, such as 'category__parent' or"
                " the tags of taggit, call tracker.publish_to(objects, [post]) in the transaction"
                " that saves the post."
            ),
            id="readtrack.E044",
        )
        for declaration in _declarations()
        for problem in _problems(declaration)
    ]


def _declarations() -> Iterator[Declaration]:
    """Yields what the site's models and NEWS_FOR declare; another check reports unknown models."""
    for tracked in subjects.tracked_models():
        # A model may lack the fields that Tracked names by default.
        if tracked.news_for is not Tracked.news_for:
            yield Declaration(f"{tracked._meta.label}.news_for", tracked, tracked.news_for)
    for label, names in conf.NEWS_FOR.items():
        model = subjects.model_with_label(str(label))
        if model is not None:
            yield Declaration(f"READTRACK['NEWS_FOR']['{label}']", model, names)


def _problems(declaration: Declaration) -> list[str]:
    """Returns what is wrong with a declaration, in words that follow `where`."""
    names = declaration.names
    if not isinstance(names, (list, tuple)):
        return [f"is {names!r} and no list, such as [{names!r}]"]
    followed = {field.name for field in subjects.news_links(declaration.model)}
    return [
        f"names {name!r}, which is no foreign key or many-to-many field of the model"
        for name in names
        if name not in followed
    ]
