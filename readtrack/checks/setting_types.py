"""Checks of `READTRACK` itself: a dict of settings that exist, with values of their types."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, get_args, get_origin

from django.apps import AppConfig, apps
from django.conf import settings
from django.core import checks

from readtrack import parts, shipped
from readtrack.conf import ANNOTATIONS, Path, conf, key_class, site_settings


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
EXPECTED_BY_ANNOTATION: Mapping[Any, Expected] = {
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


def _expected_of_setting(name: str) -> Expected:
    """Returns what the value of the setting has to be."""
    if name in EXPECTED_BY_SETTING:
        return EXPECTED_BY_SETTING[name]
    if name in parts.settings() or key_class(name):
        return A_DICT
    return _expected_of_annotation(ANNOTATIONS[name])


def _expected_of_annotation(annotation: Any) -> Expected:
    """Returns what a value with this annotation has to be."""
    if annotation in EXPECTED_BY_ANNOTATION:
        return EXPECTED_BY_ANNOTATION[annotation]
    if get_origin(annotation) is Literal:
        choices = get_args(annotation)
        return Expected(f"one of {', '.join(map(repr, choices))}", choices.__contains__)
    return EXPECTED_BY_ANNOTATION[get_origin(annotation)]


def _annotations_of_keys(name: str) -> Mapping[str, Any]:
    """Returns the keys of a setting of the core or of a part, each with its annotation.

    It is empty for a setting that is no dict, and for one whose keys have a check of their own.
    """
    keys_of_setting = key_class(name)
    part = parts.settings().get(name)
    if part is not None:
        keys_of_setting = part.setting_keys()
    if keys_of_setting is None:
        return {}
    return keys_of_setting.__annotations__


def wrong_types() -> list[WrongType]:
    """Returns the settings, and their keys, whose values do not fit their types."""
    wrong = []
    for name, value in site_settings().items():
        if name not in ANNOTATIONS and name not in parts.settings():
            continue
        expected = _expected_of_setting(name)
        if not expected.fits(value):
            wrong.append(WrongType(f"[{name!r}]", value, expected.description))
            continue
        for key, annotation in _annotations_of_keys(name).items():
            expected = _expected_of_annotation(annotation)
            if key in value and not expected.fits(value[key]):
                place = f"[{name!r}][{key!r}]"
                wrong.append(WrongType(place, value[key], expected.description))
    return wrong


def check_dict() -> list[checks.CheckMessage]:
    """Checks that READTRACK is a dict."""
    overrides = getattr(settings, "READTRACK", {})
    if isinstance(overrides, dict):
        return []
    return [
        checks.Error(
            f"READTRACK is of the type {type(overrides).__name__}, not a dict.",
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


def _places_of(name: object) -> list[str]:
    """Returns where a setting or a key called `name` has its place: `WINDOW`, `DOTS['anonymous']`.

    It may be the key of a part that is not installed. Then the place says so.
    """
    key = str(name).lower()
    places = []
    if key.upper() in ANNOTATIONS:
        places.append(key.upper())
    settings_with_key = [
        name for name in (*ANNOTATIONS, *parts.settings()) if key in _annotations_of_keys(name)
    ]
    places += [f"{setting}['{key}']" for setting in settings_with_key]
    for part, its_names in shipped.PARTS.items():
        if not apps.is_installed(part) and key in _keys_of_absent(part):
            place = f"{its_names.setting}['{key}']"
            places.append(f"{place} (add '{part}' to INSTALLED_APPS)")
    return places


def _keys_of_absent(part: str) -> Mapping[str, Any]:
    """Returns what `_annotations_of_keys` returns of the setting of a part that is not
    installed.
    """
    config: Any = AppConfig.create(part)
    class_of_keys = config.setting_keys()
    if class_of_keys is None:
        return {}
    keys: Mapping[str, Any] = class_of_keys.__annotations__
    return keys


def check_names() -> list[checks.CheckMessage]:
    """Checks that READTRACK has no setting that does not exist."""
    messages: list[checks.CheckMessage] = []
    setting_names = [*ANNOTATIONS, *parts.settings()]
    for name in vars(conf):
        if name in setting_names or shipped.part_of_setting(name):
            continue
        suggestions = _places_of(name)
        if not suggestions:
            suggestions = get_close_matches(str(name).upper(), setting_names) or setting_names
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
    for name, value in site_settings().items():
        valid_keys = _annotations_of_keys(name)
        if not valid_keys or not isinstance(value, dict):
            continue
        for key in value:
            if key in valid_keys:
                continue
            suggestions = get_close_matches(str(key).lower(), valid_keys)
            if str(key).lower() not in valid_keys:
                suggestions = [*_places_of(key), *suggestions]
            if not suggestions:
                suggestions = [*valid_keys]
            message = checks.Warning(
                f"READTRACK['{name}'] has no key {key!r}.",
                hint=f"Did you mean: {', '.join(suggestions)}?",
                id="readtrack.W092",
            )
            messages.append(message)
    return messages
