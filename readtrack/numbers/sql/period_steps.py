"""Views of many subjects in each of several periods, such as days."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from readtrack.hits.stages import STAGES
from readtrack.models import Reset
from readtrack.numbers.models import History
from readtrack.numbers.sql import first_hours
from readtrack.numbers.sql.first_hours import NO_HOURS_ASKED, AskedHours, FirstHours
from readtrack.numbers.sql.history import BASELINE
from readtrack.numbers.sql.period_gains import among, rows_of
from readtrack.numbers.sql.period_numbers import period_of_hour
from readtrack.sql import databases, vendors
from readtrack.store import scripts

AT_ONCE = 10_000  # subjects in one query
# If a subject has rows in more than these hours of two days, PostgreSQL reads only the last row of
# each period.
DENSE = 12
# From this average length of the periods (hours) PostgreSQL looks up rows by the index.
HOURS_BY_INDEX = 12
NO_SUBJECT = ""  # stands in the rows with first hours


# The views of a subject in each period, by the number of the period. Periods are numbered from 0. A
# period without a row of history has no entry.
Steps = dict[int, int]


def steps(
    columns: Sequence[str],
    starts: Sequence[int],
    *,
    until: int,
    only_periods: Sequence[int] | None = None,
) -> dict[str, Steps]:
    """Returns the steps of each subject, with one query for each AT_ONCE subjects.

    See `steps_and_first_hours`.
    """
    by_subject, _first_hours = steps_and_first_hours(
        columns, starts, until=until, only_periods=only_periods
    )
    return by_subject


def steps_and_first_hours(
    columns: Sequence[str],
    starts: Sequence[int],
    *,
    until: int,
    only_periods: Sequence[int] | None = None,
    asked_hours: AskedHours = NO_HOURS_ASKED,
) -> tuple[dict[str, Steps], FirstHours]:
    """Returns the steps of each subject, with one query for each AT_ONCE subjects, and the first
    hours that are asked for. Without a subject nothing is asked.

    `columns` are the subjects as columns have them, which are also the keys of the result. The
    query is quicker if the most viewed subjects come first. `starts` are the first hours of the
    periods (since 1970); the last period ends before `until`.

    `only_periods` are the numbers of some periods, the last one among them. With them the query
    takes half the time, but a step may be the sum of its period and of the periods before it that
    are left out.
    """
    by_subject: dict[str, Steps] = {column: {} for column in columns}
    hours_statement, parameters_of_hours = first_hours.statement_of(
        asked_hours, columns=f"'{NO_SUBJECT}', {{place}}, {{hour}}"
    )
    found_hours: list[tuple[int, Any]] = []
    for portion in scripts.sliced(columns, AT_ONCE):
        condition, parameters = among(portion)
        statement = _statement(starts, until=until, only_periods=only_periods, condition=condition)
        statement = f"{statement}\n{hours_statement}"
        for column, rows in _highest(statement, [*parameters, *parameters_of_hours]):
            if column == NO_SUBJECT:
                found_hours += rows
            else:
                _add_steps(by_subject[column], rows)
    return by_subject, first_hours.from_rows(asked_hours, found_hours)


def _statement(
    starts: Sequence[int], *, until: int, only_periods: Sequence[int] | None, condition: str
) -> str:
    """Returns the SQL statement for the highest absolute counts of each period.

    Its rows have the subject, the number of the period and the views.
    """
    vendor = vendors.vendor_of(databases.of(History))
    expressions: dict[str, Any] = {
        "since": max(starts[0], BASELINE + 1),
        "until": until,
        "period": period_of_hour(starts, vendor),
    }
    is_long = until - starts[0] >= HOURS_BY_INDEX * len(starts)
    if not vendor.has_arrays or not is_long:
        return databases.statement(History, "steps", condition=condition, **expressions)
    periods = range(len(starts)) if only_periods is None else only_periods
    ends_of_periods = (*starts[1:], until)
    expressions["periods"] = ", ".join(map(str, periods))
    expressions["ends"] = ", ".join(str(ends_of_periods[period]) for period in periods)
    expressions["resets"] = Reset._meta.db_table
    prefixes = [f"'{stage}:' || subject" for stage in STAGES]
    expressions["names"] = ", ".join(["subject", *prefixes])
    if only_periods is not None:
        return databases.statement(History, "steps_of_some", **expressions)
    expressions["dense"] = DENSE
    # Besides the last two days, a subject has to be dense in two days about the middle, but no more
    # than 30 days ago.
    middle = starts[len(starts) // 2]
    expressions["earlier"] = max(middle, until - 30 * 24)
    return databases.statement(History, "steps_of_dense", **expressions)


def _highest(
    statement: str, parameters: Sequence[Any]
) -> Iterator[tuple[str, Iterable[tuple[int, Any]]]]:
    """Yields each subject of the statement, and its rows: period and views."""
    if vendors.vendor_of(databases.of(History)).has_arrays:
        # One row with arrays for each subject, because to fetch thousands of rows takes longer than
        # to find them.
        arrays = "array_agg(slot), array_agg(views)"
        statement = f"SELECT subject, {arrays} FROM ({statement}) AS highest GROUP BY 1"
        for subject, *columns in rows_of(statement, parameters):
            yield subject, zip(*columns, strict=True)
        return
    rows = sorted(rows_of(statement, parameters), key=itemgetter(0))
    for subject, rows_of_subject in groupby(rows, key=itemgetter(0)):
        yield subject, [(period, views) for _, period, views in rows_of_subject]


def _add_steps(steps: Steps, highest: Iterable[tuple[int, Any]]) -> None:
    """Adds the differences of the highest absolute counts to the steps of a subject.

    An entry of `highest` has the number of a period and the views. Period -1 has the views from
    before the first period, which are None if there is no earlier row.
    """
    (_, views_before), *periods = sorted(highest)
    old_views = views_before or 0
    for period, views in periods:
        if views < old_views:  # the subject was reset in between
            old_views = 0
        steps[period] = views - old_views
        old_views = views
