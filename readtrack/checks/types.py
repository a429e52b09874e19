"""READTRACK itself: that it is a dict of settings that there are, each of its type."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, get_args, get_origin

from django.conf import settings
from django.core.checks import WARNING

from readtrack.checks.check import Check
from readtrack.conf import TYPES


def not_a_dict() -> Iterator[tuple[str]]:
    if not isinstance(getattr(settings, "READTRACK", {}), dict):
        yield (type(settings.READTRACK).__name__,)


def unknown_settings() -> Iterator[tuple[str, str]]:
    for name in _overrides():
        if name not in TYPES:
            yield str(name), ", ".join(get_close_matches(str(name).upper(), TYPES) or TYPES)


def wrong_types() -> Iterator[tuple[str, str, Any]]:
    for name, value in _overrides().items():
        kind = TYPES.get(name)
        if kind is not None and not _fits(value, kind):
            yield name, _words(kind), value


def _words(kind: Any) -> str:
    """What fits."""
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(repr, get_args(kind)))}"
    return WORDS[get_origin(kind) or kind]


def _overrides() -> dict[str, Any]:
    overrides = getattr(settings, "READTRACK", {})
    return overrides if isinstance(overrides, dict) else {}


def _fits(value: Any, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is Mapping:
        return isinstance(value, dict)
    if get_origin(kind) is Sequence:
        inner = get_args(kind)[0]
        return isinstance(value, (list, tuple)) and all(_fits(item, inner) for item in value)
    if kind is float:
        return type(value) in (int, float) and value > 0
    if kind is int:
        return type(value) is int and value >= 0
    return isinstance(value, kind)


WORDS: Mapping[Any, str] = {
    int: "a whole number, at least 0",
    float: "a number above 0",
    bool: "True or False",
    str: "a string",
    Sequence: "a list of strings",
    Mapping: "a dict",
}

CHECKS = (
    Check(
        "readtrack.E001",
        not_a_dict,
        "READTRACK is of the type {}, not a dict.",
        hint="Set READTRACK = {{}} for the defaults.",
    ),
    Check(
        "readtrack.E002",
        wrong_types,
        "READTRACK['{0}'] is {2!r}.",
        hint="Give it {1}, or leave it out for the default.",
    ),
    Check(
        "readtrack.W003",
        unknown_settings,
        "READTRACK has no setting '{0}'.",
        hint="Did you mean: {1}?",
        level=WARNING,
    ),
)
