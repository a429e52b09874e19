"""Progress bars of long commands."""

from typing import Any

from tqdm import tqdm

SECONDS_BEFORE_BAR = 1


def bar(what: str, unit: str, *, verbosity: int = 1, total: int | None = None, **options: Any) -> "tqdm[Any]":
    """Returns a bar that counts units. It is hidden for the first second, with verbosity 0, and without a terminal."""
    hidden = None if verbosity else True  # None: hidden where the output is no terminal
    options = {"desc": what, "unit": unit, "total": total, "disable": hidden, **options}
    return tqdm(delay=SECONDS_BEFORE_BAR, leave=False, **options)
