"""Checks of the setting NUMBERS whose values have the right type, but cannot be used."""

import re

from django.core import checks

from readtrack.models import KIND_LENGTH
from readtrack.numbers import dimensions
from readtrack.numbers.options import numbers_options
from readtrack.store import keys

# An internationalised name is written as browsers send it: xn--bcher-kva.example.
OWN_HOST = re.compile(r"\.?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*", re.IGNORECASE | re.ASCII)
LONGEST_DIMENSION = KIND_LENGTH - len("views:")  # characters


def check_funnel() -> list[checks.CheckMessage]:
    """Checks that the funnel has stages, and each of them once."""
    stages = numbers_options().funnel
    has_repeats = len(set(stages)) < len(stages)
    if stages and not has_repeats:
        return []
    return [
        checks.Error(
            f"READTRACK['NUMBERS']['funnel'] is {stages!r}:"
            " it needs at least one stage, and each stage only once.",
            hint="Name the stages in their order, such as ['view', 'click', 'convert'].",
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
