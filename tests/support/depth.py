"""How much tests look at that have no natural end.

An ordinary run draws the same examples each time, disturbs every thirteenth step of a flush, and
takes some variants of each test. READTRACK_DEEP=1, as in `.ci/run`, takes all variants, and disturbs
every fourth step. From 2 on every step is disturbed, other examples are drawn in each run, and that
many times as many.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

from hypothesis import HealthCheck, settings

DEEP = int(os.environ.get("READTRACK_DEEP", "0"))
# From one step that is disturbed to the next one. The tests of a flush begin at different steps.
STRIDE = {0: 13, 1: 4}.get(DEEP, 1)
Variant = TypeVar("Variant")


def examples(number: int) -> int:
    """Returns the number of examples to draw where an ordinary run draws this number."""
    return number * max(DEEP, 1)


def some(variants: Iterable[Variant], *, deep: Iterable[Variant]) -> list[Variant]:
    """Returns the variants of a test that each run takes, and in a deep run those of `deep` behind
    them, each once.
    """
    chosen = list(variants)
    return [*chosen, *(one for one in deep if one not in chosen)] if DEEP else chosen


settings.register_profile(
    "readtrack",
    derandomize=not DEEP,
    max_examples=examples(100),
    database=None,
    deadline=None,  # a busy machine may be slow
    # Examples share their test's fixtures: each of them empties Redis itself.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("readtrack")
