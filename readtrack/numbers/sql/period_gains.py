"""Views that subjects gained in a range of hours."""

from collections.abc import Collection, Sequence
from typing import Any

from readtrack.numbers.models import History
from readtrack.numbers.sql.history import BASELINE
from readtrack.sql import databases, vendors
from readtrack.store import scripts

# The SQL condition for rows of objects. It leaves out the rows of a whole model in a partition,
# such as `blog.post:{rt00}`.
OF_OBJECTS = "subject NOT LIKE '%%:{rt%%'"
# The SQL condition for rows of a label. Its parameter is the `pattern` of the label.
OF_LABEL = "subject LIKE %s ESCAPE '!'"


def pattern(label: str) -> str:
    """Returns the pattern of LIKE for the objects of a label, such as `blog.post` or
    `reads:blog.post`.
    """
    return f"{label.replace('_', '!_')}:%"  # an underscore stands for any character


def gains(columns: Collection[str], *, since: int, until: int) -> dict[str, int]:
    """Returns the views of the subjects in these hours, by subject.

    `columns` are the subjects as columns have them, which are also the keys of the result. A
    subject without a row in these hours is left out. Hours are since 1970, `until` is exclusive.
    """
    by_column: dict[str, int] = {}
    if since >= until:
        return by_column
    for portion in scripts.sliced([*columns]):
        condition, parameters = among(portion)
        statement = gains_statement(condition, since=since, until=until)
        for column, _, views in rows_of(statement, parameters):
            by_column[column] = int(views)
    return by_column


def gains_statement(
    condition: str, *, since: int, until: int, subject: str = "subject", slot: str = "0"
) -> str:
    """Returns the SQL statement for the gains of the subjects that meet the SQL condition.

    Its rows have `subject`, `slot` and views. `subject` and `slot` are the SQL expressions by which
    the gains are grouped: by default there is a row for each subject, and the slot `hour` divides
    it by hour.
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


def subjects_of_every(nth: int, label: str, *, since: int, until: int) -> list[str]:
    """Returns the subjects of every nth row of the model's objects in these hours, each once, in
    the order of the database.

    They divide the objects into portions of some `nth` rows.
    """
    statement = databases.statement(
        History,
        "subjects_of_every_nth",
        nth=nth,
        since=max(since, BASELINE + 1),
        until=until,
        condition=f"{OF_LABEL} AND {OF_OBJECTS}",
    )
    subjects = [subject for (subject,) in rows_of(statement, [pattern(label)])]
    return list(dict.fromkeys(subjects))


def rows_of(statement: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
    """Returns the rows that the SQL statement finds in the database of history."""
    with databases.of(History).cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: Sequence[Sequence[Any]] = cursor.fetchall()
    return rows


def among(columns: Sequence[str]) -> tuple[str, Sequence[Any]]:
    """Returns the SQL condition for the rows of these subjects, and its parameters."""
    if vendors.vendor_of(databases.of(History)).has_arrays:
        # In a subquery. Otherwise PostgreSQL estimates thousands of subjects for the table of each
        # month, which takes longer than to find the rows.
        return "subject = ANY(ARRAY(SELECT unnest(%s::text[])))", [[*columns]]
    return f"subject IN ({', '.join('%s' for _ in columns)})", columns
