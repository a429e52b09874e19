"""Views and new visitors that subjects gained in a range of hours."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from readtrack.models import History
from readtrack.sql import databases, vendors
from readtrack.sql.history import BASELINE
from readtrack.sql.row_counts import RowCounts
from readtrack.store import scripts

# The condition that leaves out rows of a model in a partition, such as `blog.post:{rt00}`.
OF_OBJECTS = "subject NOT LIKE '%%:{rt%%'"


def gains(columns: Collection[str], *, since: int, until: int) -> dict[str, RowCounts]:
    """Returns the gains of those subjects that have rows in these hours (since 1970).

    `columns` are the subjects as history's column holds them. The keys of the result are the same.
    """
    by_column: dict[str, RowCounts] = {}
    if since >= until:
        return by_column
    for portion in scripts.sliced([*columns]):
        condition, parameters = among(portion)
        statement = gains_statement(condition, since=since, until=until)
        for column, _, views, visitors in rows_of(statement, parameters):
            by_column[column] = RowCounts(int(views), int(visitors))
    return by_column


def gains_by_hour(pattern: str, *, since: int, until: int) -> Mapping[int, RowCounts]:
    """Returns the gains of all objects whose subject is LIKE the pattern, together, by hour."""
    condition = f"subject LIKE %s AND {OF_OBJECTS}"
    statement = gains_statement(condition, since=since, until=until, subject="''", slot="hour")
    return {
        int(hour): RowCounts(int(views), int(visitors))
        for _, hour, views, visitors in rows_of(statement, [pattern])
    }


def gains_statement(
    condition: str, *, since: int, until: int, subject: str = "subject", slot: str = "0"
) -> str:
    """Returns the statement for the gains of the subjects that meet the condition.

    Its rows have a subject, a slot, views and visitors. `subject` and `slot` are the
    expressions that the rows are grouped by.
    """
    return databases.statement(
        History,
        "gains",
        subject=subject,
        slot=slot,
        since=max(since, BASELINE + 1),
        until=until,
        condition=condition,
    )


def rows_of(statement: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
    """Returns the rows that the statement finds in history's database."""
    with databases.of(History).cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: Sequence[Sequence[Any]] = cursor.fetchall()
    return rows


def among(columns: Sequence[str]) -> tuple[str, Sequence[Any]]:
    """Returns the condition for rows of these subjects, and its parameters."""
    if vendors.vendor_of(databases.of(History)).has_arrays:
        # In a subquery, because to estimate thousands of names for each month takes PostgreSQL
        # longer than to find the rows.
        return "subject = ANY(ARRAY(SELECT unnest(%s::text[])))", [[*columns]]
    return f"subject IN ({', '.join('%s' for _ in columns)})", columns
