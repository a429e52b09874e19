"""Waits until something holds. A bound is only there to end a test that has failed: no good run
comes near it.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from readtrack.store.circuit import Page, present_page

ENOUGH = 60.0  # seconds, on a machine that does other work besides


def comes_true(
    condition: Callable[[], bool], *, every: float = 0.01, within: float = ENOUGH
) -> bool:
    """Waits until the condition holds, asking `every` so many seconds. Returns False if it does not
    `within` so many seconds.
    """
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def is_ever_below(limit: float, measure: Callable[[], float], *, attempts: int = 20) -> bool:
    """Returns True if one of so many measurements is below the limit. A busy machine makes some of
    them late, a fault makes all of them late; the first one that is in time ends it.
    """
    return any(measure() < limit for _ in range(attempts))


@contextmanager
def making(page: Page) -> Iterator[Page]:
    """Lets code wait for Redis as in a page that the middleware makes."""
    page_around = present_page.set(page)
    try:
        yield page
    finally:
        present_page.reset(page_around)
        page.note_its_wait()
