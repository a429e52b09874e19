"""Progress of work that lasts."""

from typing import Any

from tqdm import tqdm

SECONDS_BEFORE_BAR = 1


def bar(what: str, unit: str, *, verbosity: int = 1, total: int | None = None, **options: Any) -> "tqdm[Any]":
    """A bar that counts these units and is gone at the end; hidden with verbosity 0, or for work of a moment."""
    hidden = None if verbosity else True  # None: hidden where the output is no terminal
    options = {"desc": what, "unit": unit, "total": total, "disable": hidden, **options}
    return tqdm(delay=SECONDS_BEFORE_BAR, leave=False, **options)
