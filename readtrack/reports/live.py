"""What one page shows: live counts and read state, all of it in one round trip."""

from collections import ChainMap
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from readtrack import subjects
from readtrack.hits.readers import Reader
from readtrack.models import Tracked
from readtrack.store import counters, read_state, scripts
from readtrack.store.circuit import fail_open
from readtrack.store.counters import Total

AnyTracked = TypeVar("AnyTracked", bound=Tracked)


class PageState(NamedTuple):
    """What Redis holds for one page: totals by token, and how much is new to the reader by token."""

    totals: dict[str, Total]
    unread: dict[str, int]


def views(objs: Iterable[AnyTracked]) -> dict[AnyTracked, int]:
    """The live count of each object, in one round trip and without a query."""
    tokens = subjects.tokens(objs)
    totals = page_state(counts=list(tokens.values())).totals
    return {obj: shown_views(totals.get(token), stored=obj.view_count) for obj, token in tokens.items()}


def page_state(*, counts: Sequence[str] = (), dots: Sequence[str] = (), reader: Reader | None = None) -> PageState:
    """Totals and read state of many tokens in one round trip; empty with Redis gone."""
    return fail_open(_page_state, PageState({}, {}), counts, dots, reader)


def _page_state(counts: Sequence[str], dots: Sequence[str], reader: Reader | None) -> PageState:
    totals = [counters.totals(some) for some in scripts.sliced(counts)]
    read = [read_state.unread(reader, some) for some in scripts.sliced(dots)] if reader is not None else []
    answers = scripts.run_all(*totals, *read)
    return PageState(dict(ChainMap(*answers[: len(totals)])), dict(ChainMap(*answers[len(totals) :])))


def shown_views(total: Total | None, *, stored: int) -> int:
    """The number to show, from Redis's total and SQL's snapshot: never less than either."""
    if total is None:
        return stored
    return max(total.views, stored) if total.is_based else total.views + stored
