"""What a page shows: live counts, and what is unread for its reader, in one round trip."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

from django.core.exceptions import SynchronousOnlyOperation
from django.db import Error

from readtrack.hits import readers
from readtrack.models import Tracked
from readtrack.sql import epochs, row_counts
from readtrack.store import counters, keys, read_state, scripts
from readtrack.store.circuit import fail_open

Item = TypeVar("Item")


class PageState(NamedTuple):
    """Views, and numbers of new items for one reader, by subject. A number that Redis does not have
    is left out.
    """

    views: dict[str, int]
    unread: dict[str, int]
    # Of the `extra_calls` of `page_state`, in their order; empty if one of them has no result.
    extra_results: list[Any]


class PageQuestion:
    """What a page asks Redis: `calls` go to Redis in one round trip, then `state()` reads their
    results.

    `ask()` makes that round trip; a caller that makes one anyway takes the calls along instead.
    """

    def __init__(
        self,
        *,
        counts: Mapping[str, int | None] = {},
        dots: Sequence[str] = (),
        reader: readers.Reader | None = None,
    ) -> None:
        """Reads the counts that are None from SQL.

        `counts` are SQL's by subject; those that are None are read, because a Redis that was
        restored from an old snapshot may have less.
        """
        # SQL is read before Redis, so that its count is not added to a total that is settled in
        # between.
        self._stored = _stored_views(counts)
        self._totals = [counters.totals(part) for part in scripts.parted(self._stored)]
        self._unread: list[scripts.Call[dict[str, int]]] = []
        if reader is not None:
            self._unread = read_state.unread(reader, dots)

    @property
    def calls(self) -> list[scripts.Call[Any]]:
        """The calls, none for a page without counts and dots."""
        return [*self._totals, *self._unread]

    def ask(self, *extra_calls: scripts.Call[Any]) -> None:
        """Runs the page's calls and the extra calls in one round trip. Does not raise if Redis
        fails.
        """
        calls = [*self.calls, *extra_calls]
        if calls:
            fail_open(scripts.run_all, [], *calls)

    def state(self) -> PageState:
        """Returns what Redis answered; while Redis is down SQL's counts, and no read state.

        An unsettled total takes another query.
        """
        views = _merged_views(self._stored, _joined(self._totals))
        return PageState(views, _joined(self._unread), [])


def page_state(
    *,
    counts: Mapping[str, int | None] = {},
    dots: Sequence[str] = (),
    reader: readers.Reader | None = None,
    extra_calls: Sequence[scripts.Call[Any]] = (),
) -> PageState:
    """Returns views and read state, in one round trip, which also runs the extra calls.

    The other parameters are those of PageQuestion.
    """
    question = PageQuestion(counts=counts, dots=dots, reader=reader)
    question.ask(*extra_calls)
    state = question.state()
    results = [call.result for call in extra_calls if call.has_result]
    if len(results) < len(extra_calls):
        return state
    return state._replace(extra_results=results)


def _joined(calls: Iterable[scripts.Call[dict[str, Item]]]) -> dict[str, Item]:
    """Returns the results of the calls that have one."""
    joined: dict[str, Item] = {}
    for call in calls:
        if call.has_result:
            joined.update(call.result)
    return joined


def loaded(obj: Any, name: str = "view_count") -> int | None:
    """Returns the stored count that the object carries; None for a deferred one, and for an object
    without the columns of Tracked.
    """
    count = obj.__dict__.get(name) if isinstance(obj, Tracked) else None
    # The view may have put an F() expression there.
    return count if isinstance(count, int) and count >= 0 else None


def is_sound(tag: str) -> bool:
    """Returns True unless the Redis of the partition went back, so that SQL may hold what is
    unsettled there.
    """
    epoch = fail_open(scripts.run, None, counters.epoch(tag))
    if epoch is None:
        return False
    try:
        stored = epochs.SqlEpoch().known([epoch]).get(tag)
    except (Error, SynchronousOnlyOperation):
        # Then the page shows the higher one of the two counts, which is never too high.
        return False
    # Neither epoch of a Redis that went back is the one that SQL knows.
    return stored is None or stored.current in (epoch.current, epoch.previous)


def _stored_views(counts: Mapping[str, int | None]) -> dict[str, int]:
    """Returns the counts, with those that are None read from SQL."""
    stored = {subject: count or 0 for subject, count in counts.items()}
    lacking = [subject for subject, count in counts.items() if count is None]
    if lacking:
        stored.update(_read(lacking))
    return stored


def _read(subjects: Sequence[str]) -> dict[str, int]:
    """Returns SQL's counts by subject; none while SQL is down and Redis has all of them settled,
    for a page out of a cache. Raises django.db.Error if Redis has not.
    """
    try:
        stored = row_counts.by_subject(subjects)
    except Error:
        calls = [counters.totals(part) for part in scripts.parted(subjects)]
        fail_open(scripts.run_all, [], *calls)
        live = _joined(calls)
        if all(subject in live and live[subject].is_settled for subject in subjects):
            return {}
        raise
    return {subject: counts.views for subject, counts in stored.items()}


def _merged_views(
    stored: Mapping[str, int], totals: Mapping[str, counters.Total]
) -> dict[str, int]:
    """Returns the views by SQL's counts and by Redis's totals, never less than either."""
    views = dict(stored)
    is_partition_sound = cache(is_sound)
    for subject, total in totals.items():
        count = stored[subject]
        # An unsettled total lacks SQL's count, which is added, unless Redis went back.
        if total.is_settled or not count or not is_partition_sound(keys.tag(subject)):
            views[subject] = max(total.views, count)
        else:
            views[subject] = total.views + count
    return views
