"""Live counts and read state of a page, in one round trip."""

from collections import ChainMap
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from readtrack.hits.readers import Reader
from readtrack.models import Tracked
from readtrack.store import counters, read_state, scripts
from readtrack.store.circuit import fail_open
from readtrack.store.counters import Total
from readtrack.subjects import subjects_of

AnyTracked = TypeVar("AnyTracked", bound=Tracked)


class PageState(NamedTuple):
    """Totals, and numbers of new items for one reader, by subject; without those that Redis does not have."""

    totals: dict[str, Total]
    unread: dict[str, int]


def views(objs: Iterable[AnyTracked]) -> dict[AnyTracked, int]:
    """Returns the views of each object (live, one round trip, no query); SQL's counts while Redis is down."""
    subjects = subjects_of(objs)
    totals = page_state(counts=list(subjects.values())).totals
    return {obj: shown_views(totals.get(subject), stored=obj.view_count) for obj, subject in subjects.items()}


def page_state(*, counts: Sequence[str] = (), dots: Sequence[str] = (), reader: Reader | None = None) -> PageState:
    """Returns totals and read state, in one round trip; empty while Redis is down."""
    return fail_open(_page_state, PageState({}, {}), counts, dots, reader)


def _page_state(counts: Sequence[str], dots: Sequence[str], reader: Reader | None) -> PageState:
    totals = [counters.totals(some) for some in scripts.sliced(counts)]
    read = [read_state.unread(reader, some) for some in scripts.sliced(dots)] if reader is not None else []
    answers = scripts.run_all(*totals, *read)
    return PageState(dict(ChainMap(*answers[: len(totals)])), dict(ChainMap(*answers[len(totals) :])))


def shown_views(total: Total | None, *, stored: int) -> int:
    """Returns the number of views to show, by Redis's total and SQL's count: never less than either."""
    if total is None:
        return stored
    return max(total.views, stored) if total.is_settled else total.views + stored
