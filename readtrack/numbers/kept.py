"""Which objects a short list is made of, kept in the memory of the process for some minutes.

To find them takes a query or two over many rows. Only their subjects are kept, which are the same
for everybody who may see the scope; their numbers are read for each page.
"""

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import NamedTuple

from readtrack.numbers.scope import Scope
from readtrack.store import keys

KEPT_FOR = 300  # seconds
MOST_KEPT = 200  # lists


class Found(NamedTuple):
    """The subjects of a list, the first of it first."""

    subjects: list[str]
    is_read: bool = True  # False if no read of the models is known
    has_publications: bool = True  # False if nothing was published in the period


class _Key(NamedTuple):
    tenant: str
    table: str
    filters: tuple[tuple[str, str], ...]
    hours: range
    is_all_time: bool


_lists: dict[_Key, tuple[float, Found]] = {}
_lock = Lock()


def found_for(table: str, scope: Scope, find: Callable[[], Found]) -> Found:
    """Returns the list of a table for a scope: that of the last minutes, or what `find` returns."""
    key = _Key(
        tenant=keys.prefix(),
        table=table,
        filters=tuple(sorted(scope.chosen.items())),
        hours=scope.span.hours,
        is_all_time=scope.is_all_time,
    )
    until, found = _lists.get(key, (0.0, None))
    if found is not None and monotonic() < until:
        return found
    found = find()
    with _lock:
        if len(_lists) >= MOST_KEPT:
            _lists.clear()
        _lists[key] = monotonic() + KEPT_FOR, found
    return found


def forget() -> None:
    """Forgets all lists."""
    with _lock:
        _lists.clear()
