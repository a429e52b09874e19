"""Checks of the models whose views are counted, and of settings that name models."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from django.apps import apps
from django.core import checks

from readtrack import registry, shipped, subjects
from readtrack.conf import conf
from readtrack.models import CountField, Tracked
from readtrack.models.tracked import COUNTS
from readtrack.store.read_state import by_model


def check_names() -> list[checks.CheckMessage]:
    """Checks that MODELS names models that exist."""
    labels = [model._meta.label for model in apps.get_models()]
    return [
        checks.Error(
            f"READTRACK['MODELS'] names '{label}', which is no model.",
            hint=f"{_did_you_mean(str(label), labels)}Name models as 'app_label.ModelName'.",
            id="readtrack.E008",
        )
        for label in conf.MODELS
        if subjects.model_with_label(str(label)) is None
    ]


def check_any() -> list[checks.CheckMessage]:
    """Checks that there is a model to count, or one with dots."""
    if conf.MODELS or subjects.counted_models() or subjects.read_state_models():
        return []
    return [
        checks.Warning(
            "readtrack has no model to count: none extends Tracked, and MODELS names none.",
            hint=(
                "Let a model extend readtrack.models.Tracked, and run makemigrations and migrate;"
                " or name one: READTRACK['MODELS'] = {'app.Model': {'counted': True}}."
            ),
            id="readtrack.W055",
        )
    ]


def check_options() -> list[checks.CheckMessage]:
    """Checks that each entry of MODELS has known options with values of their types."""
    return [
        checks.Error(
            f"READTRACK['MODELS']['{label}'] {problem.predicate}.",
            hint=(
                f"{problem.guess}Give a dict with one or more of 'counted': True,"
                " 'news_for': ['field'], 'news_author': 'field',"
                " 'is_news': 'path.of.function', 'read_state': True or the name of a form."
            ),
            id="readtrack.E046",
        )
        for label, entry in conf.MODELS.items()
        for problem in _problems(entry)
    ]


class _Problem(NamedTuple):
    """The fault of an entry of MODELS."""

    predicate: str  # the sentence about the entry, from the verb on: "is 1 and no dict"
    guess: str = ""  # such as "Did you mean 'counted'? "


def _problems(entry: Any) -> Iterator[_Problem]:
    """Yields what is wrong with an entry of MODELS; checks/news.py looks at its news_for."""
    if not isinstance(entry, dict):
        yield _Problem(f"is {entry!r} and no dict")
        return
    yield from _unknown_options(entry)
    if not isinstance(entry.get("counted", False), bool):
        yield _Problem(f"has 'counted': {entry['counted']!r}")
    for name in ("news_author", "is_news"):
        if not isinstance(entry.get(name, ""), str):
            yield _Problem(f"has '{name}': {entry[name]!r}")
    form = entry.get("read_state", False)
    if not isinstance(form, bool) and form not in by_model.names():
        part = shipped.part_of_form(str(form))
        guess = _guess(str(form), by_model.names(), part=part)
        yield _Problem(f"has 'read_state': {form!r}", guess)


def _unknown_options(entry: Mapping[Any, Any]) -> Iterator[_Problem]:
    """Yields the options of an entry that there are not, or whose part is not installed."""
    known_keys = registry.known_keys()
    for name in entry:
        if name not in known_keys:
            part = shipped.part_of_model_option(str(name))
            guess = _guess(str(name), known_keys, part=part)
            yield _Problem(f"has {name!r}, which is no option", guess)


def _guess(name: str, valid_names: Iterable[str], *, part: str) -> str:
    """Returns the sentence that the part is needed, to which the name belongs. Without a part, it
    is the question whether another name was meant.
    """
    if part:
        return f"It needs '{part}' in INSTALLED_APPS. "
    return _did_you_mean(name, valid_names)


def _did_you_mean(name: str, valid_names: Iterable[str]) -> str:
    """Returns the question whether the nearest valid name was meant; "" if none resembles it."""
    by_lower_case = {valid_name.lower(): valid_name for valid_name in valid_names}
    for nearest in get_close_matches(name.lower(), by_lower_case, n=1):
        return f"Did you mean '{by_lower_case[nearest]}'? "
    return ""


def check_primary_keys() -> list[checks.CheckMessage]:
    """Checks that a counted model has a primary key of one column."""
    return [
        checks.Error(
            f"{model._meta.label} has a composite primary key, so its views cannot be counted.",
            hint=(
                "Take 'counted' out of its entry in MODELS; or give it a primary key of one column,"
                " and a unique constraint instead."
            ),
            id="readtrack.E010",
        )
        for model in subjects.counted_models()
        if len(model._meta.pk_fields) > 1
    ]


def check_parents() -> list[checks.CheckMessage]:
    """Checks that a child model has the primary key of the parent whose row has its counts."""
    messages: list[checks.CheckMessage] = []
    for model in apps.get_models():
        if not issubclass(model, Tracked):
            continue
        owner = subjects.owner(model)
        if owner in subjects.with_parents(model):
            continue
        child = model._meta.label
        parent = owner._meta.label
        messages.append(
            checks.Error(
                f"{child} has another primary key than {parent},"
                f" which has its columns, so a view counts for another row of {parent}.",
                hint=(
                    "Name the parent that extends Tracked first among its bases,"
                    " and give the child no primary key of its own."
                ),
                id="readtrack.E045",
            )
        )
    return messages


def check_count_fields() -> list[checks.CheckMessage]:
    """Checks that no model has a count field of its own: save() skips those of Tracked only."""
    return [
        checks.Warning(
            f"{model._meta.label}.{field_name} is a field of the model's own,"
            " so save() can write an old count back.",
            hint=(
                "Delete its line from the model, because Tracked has the field,"
                " and run makemigrations. The values stay. If the column still has another name,"
                " rename the field in a migration before that."
            ),
            id="readtrack.W019",
        )
        for model in subjects.tracked_models()
        for field_name in COUNTS
        if not isinstance(model._meta.get_field(field_name), CountField)
    ]
