"""System checks: what can be set up wrongly, each with what to do. None of them touches a network."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple


class Check(NamedTuple):
    """One thing that can be wrong: `problems` yields the words that fill message and hint, once for each problem."""

    problems: Callable[[], Iterable[tuple[Any, ...]]]
    message: str
    hint: str


def problem_if(condition: object, *words: Any) -> list[tuple[Any, ...]]:
    """Returns one problem with these words if the condition is true, and otherwise none."""
    return [words] if condition else []
