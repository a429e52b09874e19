"""System checks: what can be set up wrongly, without touching a network. `messages.ini` has their words."""

from collections.abc import Callable, Iterable
from typing import Any

Problems = Callable[[], Iterable[tuple[Any, ...]]]  # yields the words of each problem


def problem_if(condition: object, *words: Any) -> list[tuple[Any, ...]]:
    """Returns one problem with these words if the condition is true, and otherwise none."""
    return [words] if condition else []
