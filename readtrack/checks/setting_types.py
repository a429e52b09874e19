"""Checks of `READTRACK` itself: a dict of settings that exist, with values of their types."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, get_args, get_origin

from django.apps import apps
from django.conf import settings
from django.core import checks

from readtrack import parts, shipped
from readtrack.conf import TYPES, Path, conf, keys_of, site_settings
from readtrack.renamed import RENAMED


class Expected(NamedTuple):
    """The type that the value of a setting has to have."""

    description: str  # for a hint
    fits: Callable[[Any], bool]  # returns True for a value that can be used


class WrongType(NamedTuple):
    """A setting, or one of its keys, whose value does not fit its type."""

    place: str  # such as "['COOKIE']['age']"
    value: Any
    expected: str


def _is_whole_number(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_positive_number(value: Any) -> bool:
    return type(value) in (int, float) and value > 0


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list_of_strings(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(map(_is_string, value))


def _is_rate(value: Any) -> bool:
    """Returns True for a pair of hits and seconds."""
    if not isinstance(value, (list, tuple)):
        return False
    return len(value) == 2 and all(map(_is_whole_number, value))


def _counts_or_lists_proxies(value: Any) -> bool:
    return value == "auto" or _is_whole_number(value) or _is_list_of_strings(value)


def _is_list_of_paths(value: Any) -> bool:
    """Returns True for a list of strings and `pathlib` paths."""
    if not isinstance(value, (list, tuple)):
        return False
    return all(isinstance(entry, (str, PurePath)) for entry in value)


A_DICT = Expected("a dict", _is_dict)
# By the annotation of a setting, or of one of its keys. An annotation of `Literal` lists its values
# itself.
EXPECTED: Mapping[Any, Expected] = {
    int: Expected("a whole number, at least 0", _is_whole_number),
    float: Expected("a number above 0", _is_positive_number),
    bool: Expected("True or False", _is_boolean),
    str: Expected("a string", _is_string),
    Sequence[str]: Expected("a list of strings", _is_list_of_strings),
    Sequence[Path]: Expected("a list of strings or paths", _is_list_of_paths),
    Mapping: A_DICT,
}
# By the name of a setting whose values have a form of their own.
EXPECTED_BY_SETTING: Mapping[str, Expected] = {
    "RATE": Expected("hits and seconds, such as (5, 10), as whole numbers, at least 0", _is_rate),
    "PROXIES": Expected(
        "'auto', or the number of proxies, or a list of their addresses", _counts_or_lists_proxies
    ),
}


def _expected(name: str) -> Expected:
    """Returns what the value of the setting has to be."""
    if name in EXPECTED_BY_SETTING:
        return EXPECTED_BY_SETTING[name]
    if name in parts.settings() or keys_of(name):
        return A_DICT
    return _expected_by(TYPES[name])


def _expected_by(annotation: Any) -> Expected:
    """Returns what a value with this annotation has to be."""
    if annotation in EXPECTED:
        return EXPECTED[annotation]
    if get_origin(annotation) is Literal:
        choices = get_args(annotation)
        return Expected(f"one of {', '.join(map(repr, choices))}", choices.__contains__)
    return EXPECTED[get_origin(annotation)]


def _keys_of(name: str) -> Mapping[str, Any]:
    """Returns the keys of a setting of the core or of a part, each with its annotation.

    It is empty for a setting that is no dict, and for one whose keys have a check of their own.
    """
    part = parts.settings().get(name)
    keys = part.setting_keys() if part else keys_of(name)
    return keys.__annotations__ if keys else {}


def wrong_types() -> list[WrongType]:
    """Returns the settings, and their keys, whose values do not fit their types."""
    wrong = []
    for name, value in site_settings().items():
        if name not in TYPES and name not in parts.settings():
            continue
        expected = _expected(name)
        if not expected.fits(value):
            wrong.append(WrongType(f"[{name!r}]", value, expected.description))
            continue
        for key, annotation in _keys_of(name).items():
            expected = _expected_by(annotation)
            if key in value and not expected.fits(value[key]):
                place = f"[{name!r}][{key!r}]"
                wrong.append(WrongType(place, value[key], expected.description))
    return wrong


def check_dict() -> list[checks.CheckMessage]:
    """Checks that READTRACK is a dict."""
    given = getattr(settings, "READTRACK", {})
    if isinstance(given, dict):
        return []
    return [
        checks.Error(
            f"READTRACK is of the type {type(given).__name__}, not a dict.",
            hint="Set READTRACK = {} for the defaults.",
            id="readtrack.E001",
        )
    ]


def check_types() -> list[checks.CheckMessage]:
    """Checks that each setting, and each of its keys, has a value of its type."""
    return [
        checks.Error(
            f"READTRACK{setting.place} is {setting.value!r}.",
            hint=f"Give it {setting.expected}, or leave it out for the default.",
            id="readtrack.E002",
        )
        for setting in wrong_types()
    ]


def check_renamed() -> list[checks.CheckMessage]:
    """Checks that settings have their current names."""
    given = getattr(settings, "READTRACK", {})
    if not isinstance(given, dict):
        return []
    return [
        checks.Warning(
            f"READTRACK['{name}'] is called '{RENAMED[name]}' now; a later version refuses the old name.",
            hint=f"Write '{RENAMED[name]}' in its place, with the same value.",
            id="readtrack.W047",
        )
        for name in RENAMED
        if name in given
    ]


def check_parts() -> list[checks.CheckMessage]:
    """Checks that the parts are installed to which the settings belong."""
    messages: list[checks.CheckMessage] = []
    for name in vars(conf):
        part = shipped.part_of_setting(str(name))
        if part and name not in parts.settings():
            messages.append(
                checks.Warning(
                    f"READTRACK['{name}'] has no effect: {part} is not installed.",
                    hint=f"Add '{part}' to INSTALLED_APPS, or leave the setting out.",
                    id="readtrack.W090",
                )
            )
    return messages


def check_needs() -> list[checks.CheckMessage]:
    """Checks that the parts are installed that installed parts need."""
    messages: list[checks.CheckMessage] = []
    for part in parts.installed():
        for needed in part.needs:
            if apps.is_installed(needed):
                continue
            message = checks.Error(
                f"{part.name} needs {needed}, which is not installed.",
                hint=f"Add '{needed}' to INSTALLED_APPS.",
                id="readtrack.E091",
            )
            messages.append(message)
    return messages


def check_names() -> list[checks.CheckMessage]:
    """Checks that READTRACK has no setting that does not exist."""
    messages: list[checks.CheckMessage] = []
    known = [*TYPES, *parts.settings()]
    for name in vars(conf):
        if name in known or shipped.part_of_setting(name):
            continue
        suggestions = get_close_matches(str(name).upper(), known) or known
        messages.append(
            checks.Warning(
                f"READTRACK has no setting '{name}'.",
                hint=f"Did you mean: {', '.join(suggestions)}?",
                id="readtrack.W003",
            )
        )
    return messages


def check_keys() -> list[checks.CheckMessage]:
    """Checks that no setting has a key that does not exist."""
    messages: list[checks.CheckMessage] = []
    for name, given in site_settings().items():
        known = _keys_of(name)
        if not known or not isinstance(given, dict):
            continue
        for key in given:
            if key in known:
                continue
            suggestions = get_close_matches(str(key).lower(), known) or known
            message = checks.Warning(
                f"READTRACK['{name}'] has no key {key!r}.",
                hint=f"Did you mean: {', '.join(suggestions)}?",
                id="readtrack.W092",
            )
            messages.append(message)
    return messages
