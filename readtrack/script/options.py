"""The setting SCRIPT."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from readtrack.conf import cached_setting, conf

DEFAULTS: Mapping[str, Any] = {
    "name": "page.js",
    "count_by": "either",
    "reads": "shown",
    "shared_paths": (),
}
CHOICES: Mapping[str, tuple[str, ...]] = {
    "count_by": ("either", "server", "script"),
    "reads": ("shown", "read"),
}
NAME = re.compile(r"[\w.-]+(?:/[\w.-]+)*", re.ASCII)


def _value(key: str) -> Any:
    return conf.of_part("SCRIPT").get(key, DEFAULTS[key])


def name() -> str:
    """Returns the name of the script and of the address that it calls, below that of
    `readtrack.urls`.
    """
    value: str = _value("name")
    return value if NAME.fullmatch(value) else DEFAULTS["name"]


@cached_setting(maxsize=1)
def count_by() -> str:
    """Returns who counts a page with the script: "either" (the first), "server" or "script"."""
    value: str = _value("count_by")
    return value


@cached_setting(maxsize=1)
def reads_when_read() -> bool:
    """Returns True if a page with a marked text is read once the text was really read."""
    return bool(_value("reads") == "read")


@cached_setting(maxsize=1)
def shared_paths() -> tuple[re.Pattern[str], ...]:
    """Returns the valid regular expressions of paths whose pages are the same for everybody."""
    paths = _value("shared_paths")
    return tuple(re.compile(path, re.IGNORECASE) for path in paths if not _error_of_path(path))


def problems() -> list[str]:
    """Returns what is wrong with the setting, in words."""
    return [
        problem for key, value in conf.of_part("SCRIPT").items() if (problem := _of(key, value))
    ]


def _of(key: Any, value: Any) -> str:
    """Returns what is wrong with one key of the setting; "" for nothing."""
    if key not in DEFAULTS:
        return f"there is no key {key!r}"
    if key in CHOICES:
        choices = " or ".join(map(repr, CHOICES[key]))
        return "" if value in CHOICES[key] else f"{key!r} is {value!r}, not {choices}"
    return PROBLEM_OF[key](value)


def _problem_of_name(value: Any) -> str:
    is_name = isinstance(value, str) and NAME.fullmatch(value)
    return "" if is_name else f"'name' is {value!r}, which cannot be the end of an address"


def _problem_of_paths(value: Any) -> str:
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        return f"'shared_paths' is {value!r}, which is no list"
    for path in value:
        error = _error_of_path(path)
        if error:
            return f"'shared_paths' has {path!r}, which is no regular expression: {error}"
    return ""


PROBLEM_OF: Mapping[str, Callable[[Any], str]] = {
    "name": _problem_of_name,
    "shared_paths": _problem_of_paths,
}


def _error_of_path(path: Any) -> str:
    """Returns what is wrong with a regular expression; "" for nothing."""
    try:
        re.compile(path)
    except (re.error, TypeError) as error:
        return str(error)
    return ""
