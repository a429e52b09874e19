"""One row of the tables that the checks are."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from django.core.checks import ERROR


class Check(NamedTuple):
    """One thing that can be wrong: `problems` yields the words that fill message and hint, once a problem."""

    id: str
    problems: Callable[[], Iterable[tuple[Any, ...]]]
    message: str
    hint: str
    level: int = ERROR
