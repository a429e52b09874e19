"""Where history begins: the first hour that it has of some names, and in which models gained
something of a kind of hash.

They are rows of another statement, so that they cost no query of their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from typing import Any, NamedTuple

from readtrack.numbers.models import BreakdownHistory, History
from readtrack.numbers.sql.history import BASELINE

PLACE_OF_VIEWS = 0  # of a row; the kinds that are asked for come behind it


class AskedHours(NamedTuple):
    """What the first hours are asked of."""

    names: Sequence[str] = ()  # under which history has views
    labels: Sequence[str] = ()  # of the models whose gains are asked for
    kinds: Sequence[str] = ()  # of the hashes with these gains


NO_HOURS_ASKED = AskedHours()


class FirstHours(NamedTuple):
    """The first hours (since 1970)."""

    # Of one of the names; None if history has none of them. The baseline is of no hour: what it has
    # was viewed before history began.
    of_views: int | None = None
    # In which one of the models gained something, by the kind; without kinds that were never
    # gained.
    by_kind: Mapping[str, int] = {}


def statement_of(asked: AskedHours, *, columns: str) -> tuple[str, list[Any]]:
    """Returns the SQL of the rows with the first hours, each behind "UNION ALL", and its
    parameters.

    `columns` are those of a row, with `{place}` and `{hour}` in them. The index has each hour.
    """
    history = f"{History._meta.db_table} WHERE subject = %s AND hour > {BASELINE}"
    gains = f"{BreakdownHistory._meta.db_table} WHERE subject = %s AND kind = %s"
    gained = [*product(asked.labels, asked.kinds)]
    rows = [_row(columns, PLACE_OF_VIEWS, history) for _name in asked.names]
    rows += [_row(columns, 1 + asked.kinds.index(kind), gains) for _label, kind in gained]
    return "\n".join(rows), [*asked.names, *chain(*gained)]


def _row(columns: str, place: int, source: str) -> str:
    hour = f"(SELECT hour FROM {source} ORDER BY hour LIMIT 1)"  # noqa: S608
    return f"UNION ALL SELECT {columns.format(place=place, hour=hour)}"


def from_rows(asked: AskedHours, rows: Iterable[tuple[int, Any]]) -> FirstHours:
    """Returns the first hours of the rows, each of which has its place and an hour or None."""
    first: dict[int, int] = {}
    for place, found in rows:
        if found is not None:
            hour = int(found)
            first[place] = min(hour, first.get(place, hour))
    by_kind = {kind: first[place] for place, kind in enumerate(asked.kinds, 1) if place in first}
    return FirstHours(first.get(PLACE_OF_VIEWS), by_kind)
