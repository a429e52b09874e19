"""Types of the arguments in arguments.json."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.utils import timezone

from readtrack.imports.lines import FIELDS


def _number(text: str, *, kind: type[float], highest: int) -> float:
    try:
        number = kind(text)
    except ValueError:
        number = -1
    if not 0 <= number <= highest:
        raise ArgumentTypeError(f"{text!r} is no number from 0 to {highest:,}")
    return number


def _field(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if name not in FIELDS or not path:
        raise ArgumentTypeError(f"{text!r} is not one of {', '.join(FIELDS)}, then = and its path in the JSON")
    return name, path


def _part(text: str) -> str:
    number, parts = map(int, text.split("/"))
    if not 1 <= number <= parts:
        raise ValueError(text)
    return f"{number}/{parts}" if parts > 1 else ""


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else timezone.make_aware(at)


TYPES: dict[str, Callable[[str], Any]] = {
    "int": int,
    "count": partial(_number, kind=int, highest=10**12),
    "share": partial(_number, kind=float, highest=1),
    "field": _field,
    "part": _part,
    "time": _time,
}
