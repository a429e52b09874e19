"""What a page shows: live counts, and what is unread for its reader, in one round trip."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

from django.core.exceptions import SynchronousOnlyOperation
from django.db import Error

from readtrack.hits import readers
from readtrack.models import Tracked
from readtrack.sql import epochs, read_states, row_counts
from readtrack.store import counters, keys, read_state, scripts
from readtrack.store.circuit import fail_open

Item = TypeVar("Item")


class PageState(NamedTuple):
    """The views of subjects, and their numbers of new items for one reader, both by subject."""

    views: dict[str, int]
    unread: dict[str, int]  # without subjects of which Redis gave no answer
    # The times of the last publications (µs) by subject; None unless they were asked for.
    published: dict[str, int] | None = None


class PageQuestion:
    """What a page asks Redis: `ask()` sends the calls in one round trip, then `state()` has their
    results.

    A caller that makes a round trip of its own can send the `calls` with it in place of `ask()`.
    """

    def __init__(
        self,
        *,
        counts: Mapping[str, int | None] = {},
        dots: Sequence[str] = (),
        reader: readers.Reader | None = None,
        has_times: bool = False,
    ) -> None:
        """Asks for the views of the subjects in `counts`, and for what is unread in `dots` for the
        reader.

        `counts` has SQL's views by subject, or None for views that are not loaded: these are read
        from SQL now. With `has_times` it also asks when the dots were last published to, unless
        there is no reader.
        """
        # SQL is read before Redis. In the other order, a total could be settled in between, and
        # SQL's count would be added to it a second time.
        self._stored = _stored_views(counts)
        self._total_calls = [counters.totals(portion) for portion in scripts.parted(self._stored)]
        self._unread_calls: list[scripts.Call[dict[str, int]]] = []
        if reader is not None:
            self._unread_calls = read_state.unread_calls(reader, dots)
        self._published_calls: list[scripts.Call[dict[str, int]]] | None = None  # not asked for
        if has_times and reader is not None:
            self._published_calls = read_state.last_published(dots)

    @property
    def calls(self) -> list[scripts.Call[Any]]:
        """The calls to Redis; none for a page without counts and dots."""
        # The times are read before the dots. What is published in between is in the dots already
        # and newer than the times, so the page's script asks for it once too often. In the other
        # order it would miss it.
        return [*self._total_calls, *(self._published_calls or ()), *self._unread_calls]

    def ask(self, *extra_calls: scripts.Call[Any]) -> None:
        """Runs the calls and the extra calls in one round trip. Does not raise if Redis fails."""
        calls = [*self.calls, *extra_calls]
        if calls:
            fail_open(scripts.run_all, [], *calls)
        # A Redis that has not begun answers with no dots at all, as at the first page of a site.
        has_begun = all(call.result for call in self._unread_calls if call.has_result)
        if not has_begun and read_states.begin_new_site():
            fail_open(scripts.run_all, [], *self._unread_calls)

    def state(self) -> PageState:
        """Returns what Redis answered. While Redis is down it has SQL's counts, and no read state.

        A caller reads the results of extra calls from these calls. Makes another query if a total
        is unsettled.
        """
        views = _merged_views(self._stored, _joined(self._total_calls))
        published = None
        if self._published_calls is not None:
            published = _joined(self._published_calls)
        return PageState(views, _highest(self._unread_calls), published)


def page_state(
    *,
    counts: Mapping[str, int | None] = {},
    dots: Sequence[str] = (),
    reader: readers.Reader | None = None,
) -> PageState:
    """Returns views and read state, with one round trip. The parameters are those of
    PageQuestion.
    """
    question = PageQuestion(counts=counts, dots=dots, reader=reader)
    question.ask()
    return question.state()


def _joined(calls: Iterable[scripts.Call[dict[str, Item]]]) -> dict[str, Item]:
    """Returns the results of the calls together. Leaves out calls without a result."""
    joined: dict[str, Item] = {}
    for call in calls:
        if call.has_result:
            joined.update(call.result)
    return joined


def _highest(calls: Iterable[scripts.Call[dict[str, int]]]) -> dict[str, int]:
    """Returns the highest of the numbers of each subject. Leaves out calls without a result.

    A category may have a number in each partition.
    """
    highest: dict[str, int] = {}
    for call in calls:
        if not call.has_result:
            continue
        for subject, number in call.result.items():
            highest[subject] = max(number, highest.get(subject, 0))
    return highest


def count_in_memory(obj: Any, field_name: str = "view_count") -> int | None:
    """Returns the count that the object holds, without a query.

    Returns None if the field is deferred, if the site assigned something that is no count, or if
    the object is not Tracked.
    """
    if not isinstance(obj, Tracked):
        return None
    count = obj.__dict__.get(field_name)
    # The site may have assigned anything, such as an F() expression.
    if not isinstance(count, int) or count < 0:
        return None
    return count


def is_sound(tag: str) -> bool:
    """Returns True unless the Redis of the partition was restored from an older snapshot.

    After such a restore SQL may already include what Redis has counted and not settled, so the two
    must not be added up. Returns False as well if Redis or SQL cannot be asked: then the page shows
    the higher one of the two counts, which is never too high.
    """
    epoch = fail_open(scripts.run, None, counters.epoch(tag))
    if epoch is None:
        return False
    try:
        stored = epochs.SqlEpoch().known([epoch]).get(tag)
    except (Error, SynchronousOnlyOperation):
        return False
    # SQL does not know the list of a Redis that was emptied. If Redis was restored, SQL knows a
    # newer epoch than the last two of Redis.
    return stored is None or stored.current in (epoch.current, epoch.previous)


def _stored_views(counts: Mapping[str, int | None]) -> dict[str, int]:
    """Returns the counts by subject. Reads those that are None from SQL; a missing one is 0."""
    stored = {subject: count or 0 for subject, count in counts.items()}
    not_loaded = [subject for subject, count in counts.items() if count is None]
    if not_loaded:
        stored.update(_views_in_sql(not_loaded))
    return stored


def _views_in_sql(subjects: Sequence[str]) -> dict[str, int]:
    """Returns SQL's views by subject.

    While SQL is down, it returns no views if the totals in Redis are enough, because all of them
    are settled; so a page that comes from a cache can still show counts. Otherwise it raises
    django.db.Error.
    """
    try:
        stored = row_counts.by_subject(subjects)
    except Error:
        calls = [counters.totals(portion) for portion in scripts.parted(subjects)]
        fail_open(scripts.run_all, [], *calls)
        live = _joined(calls)
        if all(subject in live and live[subject].is_settled for subject in subjects):
            return {}
        raise
    return {subject: counts.views for subject, counts in stored.items()}


def _merged_views(
    stored: Mapping[str, int], totals: Mapping[str, counters.Total]
) -> dict[str, int]:
    """Returns the views by subject, merged from SQL's counts and Redis's totals.

    They are never less than either.
    """
    views = dict(stored)
    is_partition_sound = cache(is_sound)
    for subject, total in totals.items():
        count = stored[subject]
        # An unsettled total does not include SQL's count, so both are added up. But if Redis was
        # restored from an older snapshot, SQL's count may include that total: then the higher one
        # of the two is taken.
        if total.is_settled or not count or not is_partition_sound(keys.tag(subject)):
            views[subject] = max(total.views, count)
        else:
            views[subject] = total.views + count
    return views
