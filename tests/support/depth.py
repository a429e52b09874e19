"""How much tests look at that have no natural end.

An ordinary run draws the same examples each time, and disturbs every thirteenth step of a flush. `READTRACK_DEEP=20
python3 manage.py test` draws other examples each time, 20 times as many, and disturbs every step.
"""

import os

from hypothesis import HealthCheck, settings

DEEP = int(os.environ.get("READTRACK_DEEP", "0"))
STRIDE = 1 if DEEP else 13  # from one step that is disturbed to the next one


def examples(number: int) -> int:
    """Returns the number of examples to draw where an ordinary run draws this number."""
    return number * max(DEEP, 1)


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
