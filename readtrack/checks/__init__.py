"""System checks: what can be set up wrongly, each with what to do. None of them touches a network."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from django.core.checks import ERROR, WARNING


class Check(NamedTuple):
    """One thing that can be wrong: `problems` yields the words that fill message and hint, once for each problem."""

    id: str
    problems: Callable[[], Iterable[tuple[Any, ...]]]
    message: str
    hint: str

    @property
    def level(self) -> int:
        """The level that the id names, by its E or W."""
        return ERROR if ".E" in self.id else WARNING


def problem_if(condition: object, *words: Any) -> list[tuple[Any, ...]]:
    """Returns one problem with these words if the condition is true, and otherwise none."""
    return [words] if condition else []
