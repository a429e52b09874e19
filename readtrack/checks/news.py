"""Checks of the fields and relations that models and `MODELS` name for news."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple

from django.core import checks
from django.core.exceptions import FieldDoesNotExist
from django.db.models import ForeignKey, ManyToManyField, Model

from readtrack import subjects
from readtrack.conf import conf, function_problem
from readtrack.models import Tracked


class Declaration(NamedTuple):
    """A `news_for`: the relations of a model to the objects that its rows make unread."""

    where: str  # the attribute of the model, or the key of the setting
    model: type[Model]
    relation_names: Any  # a list, unless the site made a mistake


def check_fields() -> list[checks.CheckMessage]:
    """Checks that `news_fields` and `news_author` name fields of the model."""
    return [
        checks.Error(
            f"{named.where} names '{named.name}', which is no field of it.",
            hint="Name its fields: in news_fields any, in news_author a foreign key.",
            id="readtrack.E009",
        )
        for named in _fields_of_news()
        if not _has_field(named.model, named.name)
    ]


class NamedField(NamedTuple):
    """A name of a field, which the site gives."""

    where: str  # the attribute of the model, or the key of the setting
    model: type[Model]
    name: str


def _fields_of_news() -> Iterator[NamedField]:
    """Yields each name in a `news_fields` or a `news_author`."""
    for model in subjects.tracked_models():
        for name in model.news_fields:
            yield NamedField(f"{model._meta.label}.news_fields", model, name)
        if model.news_author:
            yield NamedField(f"{model._meta.label}.news_author", model, model.news_author)
    for entry in _entries():
        author = entry.options.get("news_author")
        if author and isinstance(author, str):
            yield NamedField(entry.where("news_author"), entry.model, author)


class Entry(NamedTuple):
    """An entry of MODELS."""

    label: str
    model: type[Model]
    options: dict[str, Any]

    def where(self, option: str) -> str:
        """Returns where in the settings the option is."""
        return f"READTRACK['MODELS']['{self.label}']['{option}']"


def _entries() -> Iterator[Entry]:
    """Yields the entries of MODELS. Those that are wrong as a whole are left out, because another
    check reports them.
    """
    for label, options in conf.MODELS.items():
        model = subjects.model_with_label(str(label))
        if model is not None and isinstance(options, dict):
            yield Entry(str(label), model, options)


def check_rules() -> list[checks.CheckMessage]:
    """Checks that each `is_news` in MODELS names a function that exists."""
    messages: list[checks.CheckMessage] = []
    for entry in _entries():
        path = entry.options.get("is_news")
        if not path or not isinstance(path, str):
            continue
        problem = function_problem(path)
        if problem:
            messages.append(
                checks.Error(
                    f"{entry.where('is_news')} names '{path}', which is no function: {problem}.",
                    hint="Give the path of a function that takes a row, and returns True for news.",
                    id="readtrack.E054",
                )
            )
    return messages


def _has_field(model: type[Model], field_name: str) -> bool:
    """Returns True if the model has a field of that name."""
    try:
        model._meta.get_field(field_name)
    except FieldDoesNotExist:
        return False
    return True


def check_relations() -> list[checks.CheckMessage]:
    """Checks that each `news_for` lists relations of the model that can be followed."""
    return [
        checks.Error(
            f"{declaration.where} {problem}, so it makes nothing unread.",
            hint=(
                f"{_guess(declaration)}List relations of the model itself. For others, such as"
                " 'category__parent' or the tags of taggit, call"
                " tracker.publish_to(objects, [post]) in the transaction that saves the post."
            ),
            id="readtrack.E044",
        )
        for declaration in _declarations()
        for problem in _problems(declaration)
    ]


def _declarations() -> Iterator[Declaration]:
    """Yields each `news_for` of the site's models and of MODELS.

    Models that do not exist are left out, because another check reports them.
    """
    for tracked in subjects.tracked_models():
        # A model may lack the fields that Tracked names by default.
        if tracked.news_for is not Tracked.news_for:
            yield Declaration(f"{tracked._meta.label}.news_for", tracked, tracked.news_for)
    for entry in _entries():
        if "news_for" in entry.options:
            yield Declaration(entry.where("news_for"), entry.model, entry.options["news_for"])


def _relations(model: type[Model]) -> list[str]:
    """Returns the names of the model's foreign keys and many-to-many fields."""
    fields = model._meta.get_fields()
    return [field.name for field in fields if isinstance(field, (ForeignKey, ManyToManyField))]


def _guess(declaration: Declaration) -> str:
    """Returns the question whether other relations were meant; "" if no name resembles one."""
    if not isinstance(declaration.relation_names, (list, tuple)):
        return ""
    relations = _relations(declaration.model)
    resembling = []
    for name in declaration.relation_names:
        if name not in relations:
            resembling += get_close_matches(str(name), relations, n=1)
    if not resembling:
        return ""
    return f"Did you mean: {', '.join(resembling)}? "


def _problems(declaration: Declaration) -> list[str]:
    """Returns what is wrong with a declaration: sentences about `where`, from the verb on."""
    relation_names = declaration.relation_names
    if not isinstance(relation_names, (list, tuple)):
        return [f"is {relation_names!r} and no list, such as [{relation_names!r}]"]
    relations = _relations(declaration.model)
    return [
        f"names {name!r}, which is no foreign key or many-to-many field of the model"
        for name in relation_names
        if name not in relations
    ]
