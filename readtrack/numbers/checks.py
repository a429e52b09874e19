"""Checks of the setting NUMBERS whose values have the right type, but cannot be used."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from django.core import checks
from django.db.models import Model

from readtrack import parts, subjects
from readtrack.conf import conf
from readtrack.numbers import dimensions
from readtrack.numbers.model_options import IN_MODELS, option_of
from readtrack.numbers.models import KIND_LENGTH
from readtrack.numbers.options import numbers_options
from readtrack.numbers.published import is_date
from readtrack.store import keys

# An internationalised name is written as browsers send it: xn--bcher-kva.example.
OWN_HOST = re.compile(r"\.?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*", re.IGNORECASE | re.ASCII)
LONGEST_DIMENSION = KIND_LENGTH - len("views:")  # characters


def check_funnel() -> list[checks.CheckMessage]:
    """Checks that the funnel has stages, and each of them once, also with those of other parts."""
    own_stages = numbers_options().funnel
    stages = parts.stages()
    has_repeats = len(set(stages)) < len(stages)
    if stages and not has_repeats:
        return []
    return [
        checks.Error(
            f"READTRACK['NUMBERS']['funnel'] is {own_stages!r}:"
            " it needs at least one stage, and each stage only once.",
            hint=(
                "Name the stages in their order, such as ['view', 'click', 'convert'], and none"
                " that another part adds."
            ),
            id="readtrack.E032",
        )
    ]


def check_dimensions() -> list[checks.CheckMessage]:
    """Checks that each dimension has a function, and a name that is free and fits."""
    messages: list[checks.CheckMessage] = []
    for path in numbers_options().dimensions:
        problem = _dimension_problem(path)
        if problem:
            messages.append(
                checks.Error(
                    f"READTRACK['NUMBERS']['dimensions'] names '{path}': {problem}.",
                    hint=(
                        "Name device, browser, os, country, referrer, channel, campaign,"
                        " or the dotted path of a callable that takes the request."
                    ),
                    id="readtrack.E033",
                )
            )
    return messages


def _dimension_problem(path: str) -> str:
    """Returns the reason why the dimension cannot be used; "" if it can."""
    name = dimensions.name_of(path)
    if name in keys.reserved():
        return f"other keys are called '{name}'"
    if len(name) > LONGEST_DIMENSION:
        return f"its name is longer than {LONGEST_DIMENSION} characters"
    problem = dimensions.problem(path)
    if problem:
        return problem
    if dimensions.names().count(name) > 1:
        return f"another one is also called '{name}'"
    return ""


def check_own_hosts() -> list[checks.CheckMessage]:
    """Checks that 'own_hosts' has names of hosts, without a scheme, a port or a path."""
    return [
        checks.Error(
            f"READTRACK['NUMBERS']['own_hosts'] has {host!r}, which is no name of a host.",
            hint=(
                "Write it as in ALLOWED_HOSTS: 'shop.example.com', or '.example.com' with all"
                " below."
            ),
            id="readtrack.E063",
        )
        for host in numbers_options().own_hosts
        if not OWN_HOST.fullmatch(str(host))
    ]


def check_options() -> list[checks.CheckMessage]:
    """Checks that the options of numbers in MODELS have values of their types."""
    return [
        checks.Error(
            f"READTRACK['MODELS']['{label}'] has '{name}': {entry[name]!r}.",
            hint="Give 'published_field': 'field', and 'publication_notes': 3.",
            id="readtrack.E067",
        )
        for label, entry in _entries()
        for name, kind in IN_MODELS.items()
        if name in entry and type(entry[name]) is not kind
    ]


def check_published_fields() -> list[checks.CheckMessage]:
    """Checks that `published_field` names a date of the model."""
    messages: list[checks.CheckMessage] = []
    for where, model, name in _published_fields():
        dates = [field.name for field in model._meta.concrete_fields if is_date(field)]
        if name in dates:
            continue
        meant = get_close_matches(name, dates, n=1)
        guess = f"Did you mean '{meant[0]}'? " if meant else ""
        messages.append(
            checks.Error(
                f"{where} names '{name}', which is no date of it.",
                hint=f"{guess}Name a DateField or a DateTimeField of the model.",
                id="readtrack.E065",
            )
        )
    return messages


def _published_fields() -> Iterator[tuple[str, type[Model], str]]:
    """Yields each `published_field`: where it is, the model, and the name that it gives."""
    for model in subjects.tracked_models():
        name = option_of(model, "published_field")
        if name:
            yield f"{model._meta.label}.published_field", model, name
    for label, entry in _entries():
        other = subjects.model_with_label(label)
        name = entry.get("published_field")
        if other is not None and name and isinstance(name, str):
            yield f"READTRACK['MODELS']['{label}']['published_field']", other, name


def _entries() -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """Yields the label and the options of each entry of MODELS that is a dict."""
    for label, entry in conf.MODELS.items():
        if isinstance(entry, dict):
            yield str(label), entry
