"""Views and new visitors of many subjects in each of several periods, such as days."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from readtrack.models import History, Reset
from readtrack.sql import databases, vendors
from readtrack.sql.history import BASELINE
from readtrack.sql.period_gains import among, rows_of
from readtrack.store import scripts

AT_ONCE = 10_000  # subjects in one query
DENSE = 12  # hours of two days with rows, above which the rows of a subject are not all read
HOURS_BY_INDEX = 12  # hours of a period from which on its last row is looked up by the index


class Steps(NamedTuple):
    """The views and the new visitors of a subject by number of the period.

    A period without a row of history has no entry.
    """

    # No pair for each period, because tens of thousands of pairs wake the garbage collector, which
    # looks at every object.
    views: dict[int, int]
    visitors: dict[int, int]


def steps(
    columns: Sequence[str],
    starts: Sequence[int],
    *,
    until: int,
    places: Sequence[int] | None = None,
) -> dict[str, Steps]:
    """Returns the steps of each subject, from one query for thousands of them.

    `starts` are the first hours of the periods, of which the last one ends before `until`. The
    query is quicker with the most viewed subjects first. With `places`, the numbers of some periods
    with the last one, a step may be the sum of all periods since the last number before it, which
    takes half the time.
    """
    by_subject = {column: Steps({}, {}) for column in columns}
    for portion in scripts.sliced(columns, AT_ONCE):
        condition, parameters = among(portion)
        statement = _statement(starts, until=until, places=places, condition=condition)
        for column, highest in _highest(statement, parameters):
            if column in by_subject:  # MySQL also returns keys that differ in case
                _add_steps(by_subject[column], highest)
    return by_subject


def _statement(
    starts: Sequence[int], *, until: int, places: Sequence[int] | None, condition: str
) -> str:
    """Returns the statement for the highest counts of each period: subject, period and counts."""
    vendor = vendors.vendor_of(databases.of(History))
    expressions: dict[str, Any] = {
        "since": max(starts[0], BASELINE + 1),
        "until": until,
        "period": vendor.period_of_hour(starts),
    }
    is_long = until - starts[0] >= HOURS_BY_INDEX * len(starts)
    if not vendor.has_arrays or not is_long:
        return databases.statement(History, "steps", condition=condition, **expressions)
    periods = range(len(starts)) if places is None else places
    ends_of_periods = (*starts[1:], until)
    expressions["periods"] = ", ".join(map(str, periods))
    expressions["ends"] = ", ".join(str(ends_of_periods[period]) for period in periods)
    expressions["resets"] = Reset._meta.db_table
    if places is not None:
        return databases.statement(History, "steps_of_some", **expressions)
    expressions["dense"] = DENSE
    expressions["earlier"] = max(starts[len(starts) // 2], until - 30 * 24)
    return databases.statement(History, "steps_of_dense", **expressions)


def _highest(
    statement: str, parameters: Sequence[Any]
) -> Iterator[tuple[str, Iterable[tuple[int, Any, Any]]]]:
    """Yields each subject with the period, views and visitors of its rows."""
    if vendors.vendor_of(databases.of(History)).has_arrays:
        # In arrays, because thousands of rows take longer to fetch than to find.
        arrays = "array_agg(slot), array_agg(views), array_agg(visitors)"
        statement = f"SELECT subject, {arrays} FROM ({statement}) AS highest GROUP BY 1"
        for subject, *columns in rows_of(statement, parameters):
            yield subject, zip(*columns, strict=True)
        return
    rows = sorted(rows_of(statement, parameters), key=itemgetter(0))
    for subject, rows_of_subject in groupby(rows, key=itemgetter(0)):
        yield subject, [(period, views, visitors) for _, period, views, visitors in rows_of_subject]


def _add_steps(steps: Steps, highest: Iterable[tuple[int, Any, Any]]) -> None:
    """Adds the differences of absolute counts to the steps of a subject.

    The counts of period -1 are those from before the first period, None without an earlier row.
    """
    (_, before_views, before_visitors), *later = sorted(highest)
    old_views = before_views or 0
    old_visitors = before_visitors or 0
    for period, views, visitors in later:
        if views < old_views:  # it was reset in between
            old_views = 0
            old_visitors = 0
        risen = views - old_views
        new_visitors = visitors - old_visitors
        steps.views[period] = risen
        # No more visitors than views, because an import adds those of all its views at once.
        steps.visitors[period] = max(0, min(new_visitors, risen))
        old_views = views
        old_visitors = visitors
