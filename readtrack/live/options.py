"""The setting LIVE."""

import re
from typing import Any

from readtrack.conf import conf

PATH = re.compile(r"/[\w./-]+")


def events() -> str:
    """Returns the path at which pages hear of publications; "" for none."""
    path: str = conf.of_part("LIVE").get("events", "")
    return path


def problems() -> list[str]:
    """Returns what is wrong with the setting, in words."""
    return [problem for key, value in conf.of_part("LIVE").items() if (problem := _of(key, value))]


def _of(key: Any, value: Any) -> str:
    """Returns what is wrong with one key of the setting; "" for nothing."""
    if key != "events":
        return f"there is no key {key!r}"
    if value == "" or (isinstance(value, str) and PATH.fullmatch(value)):
        return ""
    return f"'events' is {value!r}, which is no path of the site"
