"""What databases do differently. Everything else in `sql/` is the same for all of them.

A further database needs a class here. If it needs a statement of its own, that is the file
`statements/NAME_VENDOR.sql`; `statements/NAME.sql` is for all other databases.
"""

import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

STATEMENTS = {  # by the names of their files, without comments
    path.name.removesuffix(".sql"): re.sub("--.*\n", "", path.read_text(encoding="utf-8"))
    for path in files("readtrack.sql").joinpath("statements").iterdir()
}
# Deadlock and serialization failure of PostgreSQL; lock wait time-out and deadlock of MySQL.
CONFLICTS: frozenset[Any] = frozenset({"40P01", "40001", 1205, 1213})


class Vendor:
    """A database that has no more than what the portable statements use."""

    has_arrays = False  # `unnest(%s::bigint[])`: one statement takes thousands of rows
    has_ranges = False  # tables that are divided by ranges of a column
    knows_zones = False  # `AT TIME ZONE`
    shows_locks = False  # there is a statement `oldest_lock`
    row = "(%s)"  # a row with one value, in VALUES
    position = "INSTR"  # function that returns where a text begins in another text
    big_integer = "BIGINT"  # the type of a big integer in CAST
    ignores_case = False  # texts that differ in case only are equal
    create_view = "CREATE OR REPLACE VIEW"  # keeps the rights that were granted on the view
    # The expression for the local day of an hour of history. `{seconds}` is the expression of
    # sql_view.py for the local time (s since 1970). A vendor that knows zones takes `{zone}`, the
    # name of a time zone, and the column `hour`.
    day = "DATE({seconds}, 'unixepoch')"

    def raise_on_conflict(self, table: str, keys: Sequence[str], values: Sequence[str]) -> str:
        """Returns the end of an INSERT, for rows that exist already: if the first of the values is
        lower in the existing row, all values are replaced.

        `keys` and `values` are the quoted names of columns.
        """
        first_value = values[0]
        is_lower = f"{table}.{first_value} < EXCLUDED.{first_value}"
        return f"{self.replace_on_conflict(keys, values)} WHERE {is_lower}"

    def replace_on_conflict(self, keys: Sequence[str], values: Sequence[str]) -> str:
        """Returns the end of an INSERT, for rows that exist already: their values are replaced.

        `keys` and `values` are the quoted names of columns.
        """
        changes = ", ".join(f"{column} = EXCLUDED.{column}" for column in values)
        return f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"

    def period_of_hour(self, starts: Sequence[int], first: int = 0) -> str:
        """Returns the SQL expression for the number of the period that the column `hour` is in.

        `starts` are the first hours of the periods (since 1970), `first` is the number of the first
        period.
        """
        if len(starts) == 1:
            return str(first)
        # A binary search, because a year has many periods.
        half = len(starts) // 2
        earlier = self.period_of_hour(starts[:half], first)
        later = self.period_of_hour(starts[half:], first + half)
        return f"CASE WHEN hour < {starts[half]} THEN {earlier} ELSE {later} END"


class PostgreSQL(Vendor):
    """PostgreSQL takes many rows as arrays, and divides history by month."""

    has_arrays = True
    has_ranges = True
    knows_zones = True
    shows_locks = True
    position = "STRPOS"
    day = "CAST(TO_TIMESTAMP(hour * 3600.0) AT TIME ZONE '{zone}' AS date)"

    def period_of_hour(self, starts: Sequence[int], first: int = 0) -> str:
        """Returns the SQL expression for the number of the period that the column `hour` is in."""
        return f"width_bucket(hour, ARRAY[{', '.join(map(str, starts))}]) - 1"


class SQLite(Vendor):
    """SQLite knows no CREATE OR REPLACE."""

    create_view = "CREATE VIEW"


class MySQL(Vendor):
    """MySQL has a syntax of its own for rows, casts and conflicts."""

    ignores_case = True  # by its default collations
    shows_locks = True
    row = "ROW(%s)"
    big_integer = "SIGNED"
    day = "DATE(TIMESTAMPADD(SECOND, {seconds}, '1970-01-01'))"

    def raise_on_conflict(self, table: str, keys: Sequence[str], values: Sequence[str]) -> str:
        """Returns the end of an INSERT, for rows that exist already: if the first of the values is
        lower in the existing row, all values are replaced.
        """
        first_value = values[0]
        is_lower = f"VALUES({first_value}) > {first_value}"
        # MySQL assigns from left to right, so the column that the condition compares comes last.
        changes = [
            f"{column} = IF({is_lower}, VALUES({column}), {column})" for column in reversed(values)
        ]
        return f"ON DUPLICATE KEY UPDATE {', '.join(changes)}"

    def replace_on_conflict(self, keys: Sequence[str], values: Sequence[str]) -> str:
        """Returns the end of an INSERT, for rows that exist already: their values are replaced."""
        changes = [f"{column} = VALUES({column})" for column in values]
        return f"ON DUPLICATE KEY UPDATE {', '.join(changes)}"


class MariaDB(MySQL):
    """MariaDB is MySQL to Django, but has no ROW() in VALUES."""

    row = "(%s)"


VENDORS = {"postgresql": PostgreSQL(), "sqlite": SQLite(), "mysql": MySQL(), "mariadb": MariaDB()}
PORTABLE = Vendor()


def vendor_of(connection: BaseDatabaseWrapper) -> Vendor:
    """Returns what the database of the connection does differently."""
    if getattr(connection, "mysql_is_mariadb", False):
        return VENDORS["mariadb"]
    return VENDORS.get(connection.vendor, PORTABLE)


def statement(connection: BaseDatabaseWrapper, name: str) -> str:
    """Returns the statement of that name: the vendor's own one, or the one for all databases."""
    return STATEMENTS.get(f"{name}_{connection.vendor}") or STATEMENTS[name]


def is_conflict(error: OperationalError) -> bool:
    """Returns True if another transaction was in the way, so that a second try may succeed."""
    state = getattr(error.__cause__, "sqlstate", None)  # of PostgreSQL
    number = error.args[0] if error.args else None  # of MySQL
    is_locked_in_sqlite = "database is locked" in str(error)
    return state in CONFLICTS or number in CONFLICTS or is_locked_in_sqlite
