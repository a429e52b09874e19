"""What one page shows: live counts and read state, all of it in one round trip."""

from collections import ChainMap
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from readtrack import subjects
from readtrack.models import Tracked
from readtrack.readers import Reader
from readtrack.store import counters, reads, scripts
from readtrack.store.connection import fail_open
from readtrack.store.counters import Total

AnyTracked = TypeVar("AnyTracked", bound=Tracked)


class Glance(NamedTuple):
    """What Redis holds for one page: totals by token, and how much is new to the reader by token."""

    totals: dict[str, Total]
    unread: dict[str, int]


def views(objs: Iterable[AnyTracked]) -> dict[AnyTracked, int]:
    """The live count of each object, in one round trip and without a query."""
    tokens = subjects.tokens(objs)
    totals = glance(counts=list(tokens.values())).totals
    return {obj: live(totals.get(token), stored=obj.view_count) for obj, token in tokens.items()}


def glance(*, counts: Sequence[str] = (), dots: Sequence[str] = (), reader: Reader | None = None) -> Glance:
    """Totals and read state of many tokens in one round trip; empty with Redis gone."""
    return fail_open(_glance, Glance({}, {}), counts, dots, reader)


def _glance(counts: Sequence[str], dots: Sequence[str], reader: Reader | None) -> Glance:
    totals = [counters.totals(some) for some in scripts.sliced(counts)]
    read = [reads.unread(reader, some) for some in scripts.sliced(dots)] if reader is not None else []
    answers = scripts.run_all(*totals, *read)
    return Glance(dict(ChainMap(*answers[: len(totals)])), dict(ChainMap(*answers[len(totals) :])))


def live(total: Total | None, *, stored: int) -> int:
    """The number to show, from Redis's total and SQL's snapshot: never less than either."""
    if total is None:
        return stored
    return max(total.views, stored) if total.is_based else total.views + stored
