"""Telling how far long work is."""

from collections.abc import Callable

# Called with how much was done since its last call.
Progress = Callable[[int], object]


def no_progress(number: int) -> None:
    """Tells nobody."""
