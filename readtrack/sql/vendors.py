"""What databases do differently. Everything else in `sql/` is the same for all of them.

A further database needs a class here. If it needs a statement of its own, that is the file
`statements/NAME_VENDOR.sql`; `statements/NAME.sql` is for all other databases.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from typing import Any

from django.db import DataError, Error, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

# Deadlock and serialization failure of PostgreSQL; changed record and deadlock of MySQL and
# MariaDB.
CONFLICTS: frozenset[Any] = frozenset({"40P01", "40001", 1020, 1213})
LOCK_TIMEOUTS: frozenset[Any] = frozenset({"55P03", 1205})
# Texts that the character set of a column lacks, in a comparison and in an INSERT of MySQL.
LACKING_CHARACTERS: frozenset[Any] = frozenset({1267, 1270, 1271, 1366, 3854, 3988})

MISSING_TABLES: frozenset[Any] = frozenset({"42P01", 1146})


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

    @contextmanager
    def transaction(
        self, connection: BaseDatabaseWrapper, *, lock_wait: int, is_writing: bool
    ) -> Iterator[None]:
        """Opens a transaction that waits for locks of others for that many seconds at most, where
        the database can limit that; 0 is for no limit.
        """
        with transaction.atomic(using=connection.alias):
            yield

    def is_pooled(self, connection: BaseDatabaseWrapper) -> bool:
        """Returns True if a pooler of connections is known to be before the database."""
        return False

    def can_hold(self, connection: BaseDatabaseWrapper, text: str) -> bool:
        """Returns True if a text column of the app's own can hold the text."""
        return True

    def raise_on_conflict(self, table: str, keys: Sequence[str], values: Sequence[str]) -> str:
        """Returns the end of an INSERT, for rows that exist already: if the first of the values is
        lower in the existing row, all values are replaced.

        `keys` and `values` are the quoted names of columns.
        """
        first_value = values[0]
        is_lower = f"{table}.{first_value} < EXCLUDED.{first_value}"
        return f"{self.replace_on_conflict(keys, values)} WHERE {is_lower}"

    def add_on_conflict(self, table: str, keys: Sequence[str], values: Sequence[str]) -> str:
        """Returns the end of an INSERT, for rows that exist already: the values are added to
        theirs.

        `keys` and `values` are the quoted names of columns.
        """
        changes = ", ".join(f"{column} = {table}.{column} + EXCLUDED.{column}" for column in values)
        return f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"

    def replace_on_conflict(self, keys: Sequence[str], values: Sequence[str]) -> str:
        """Returns the end of an INSERT, for rows that exist already: their values are replaced.

        `keys` and `values` are the quoted names of columns.
        """
        changes = ", ".join(f"{column} = EXCLUDED.{column}" for column in values)
        return f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"


class PostgreSQL(Vendor):
    """PostgreSQL takes many rows as arrays, and divides history by month."""

    has_arrays = True
    has_ranges = True
    knows_zones = True
    shows_locks = True
    position = "STRPOS"
    day = "CAST(TO_TIMESTAMP(hour * 3600.0 - {shift}) AT TIME ZONE '{zone}' AS date)"

    @contextmanager
    def transaction(
        self, connection: BaseDatabaseWrapper, *, lock_wait: int, is_writing: bool
    ) -> Iterator[None]:
        """Opens a transaction of READ COMMITTED, for which flushes are made. With a stricter level
        each save of a row beside it would be a conflict.
        """
        settings = []
        # A level can only be set at the start of the outermost transaction.
        if not connection.in_atomic_block:
            settings.append("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        if lock_wait:
            settings.append(f"SET LOCAL lock_timeout = '{lock_wait}s'")
        with transaction.atomic(using=connection.alias):
            if settings:
                with connection.cursor() as cursor:
                    cursor.execute("; ".join(settings))
            yield

    def is_pooled(self, connection: BaseDatabaseWrapper) -> bool:
        """Returns True if the session that answers is not the one that the driver was told of.

        A pooler tells drivers a process id of its own, by which they cancel statements.
        """
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            [answering] = cursor.fetchone()
        return bool(connection.connection.info.backend_pid != answering)

    def can_hold(self, connection: BaseDatabaseWrapper, text: str) -> bool:
        """Returns True if the database's encoding has all characters of the text."""
        if text.isascii():
            return True
        encoding = connection.connection.info.parameter_status("server_encoding")
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            return False
        except LookupError:  # PostgreSQL has other names for some encodings
            return str(encoding) == "SQL_ASCII"
        return True


class SQLite(Vendor):
    """SQLite knows no CREATE OR REPLACE."""

    create_view = "CREATE VIEW"

    @contextmanager
    def transaction(
        self, connection: BaseDatabaseWrapper, *, lock_wait: int, is_writing: bool
    ) -> Iterator[None]:
        """Opens a transaction. One that is to write begins with the lock for that, for which it
        waits as long as the connection's `timeout` says, because after another writer it could not
        write any more what it has read.
        """
        wrapper: Any = connection
        wrapper.ensure_connection()  # which sets the mode to that of the site
        mode = wrapper.transaction_mode
        if is_writing:
            wrapper.transaction_mode = "IMMEDIATE"
        try:
            with transaction.atomic(using=connection.alias):
                wrapper.transaction_mode = mode
                yield
        finally:
            wrapper.transaction_mode = mode


class MySQL(Vendor):
    """MySQL has a syntax of its own for rows, casts and conflicts."""

    ignores_case = True  # by its default collations
    shows_locks = True
    row = "ROW(%s)"
    big_integer = "SIGNED"
    day = "DATE(TIMESTAMPADD(SECOND, {seconds}, '1970-01-01'))"

    @contextmanager
    def transaction(
        self, connection: BaseDatabaseWrapper, *, lock_wait: int, is_writing: bool
    ) -> Iterator[None]:
        """Opens a transaction that waits for that many seconds at most for LOCK TABLES and ALTER
        TABLE of others.
        """
        if not lock_wait or connection.in_atomic_block:
            with transaction.atomic(using=connection.alias):
                yield
            return
        with connection.cursor() as cursor:
            cursor.execute(
                "SET @readtrack_wait = @@SESSION.lock_wait_timeout,"
                f" SESSION lock_wait_timeout = {lock_wait}"
            )
        try:
            with transaction.atomic(using=connection.alias):
                yield
        finally:
            with suppress(Error), connection.cursor() as cursor:
                cursor.execute("SET SESSION lock_wait_timeout = @readtrack_wait")

    def raise_on_conflict(self, table: str, keys: Sequence[str], values: Sequence[str]) -> str:
        first_value = values[0]
        is_lower = f"VALUES({first_value}) > {first_value}"
        # MySQL assigns from left to right, so the column that the condition compares comes last.
        changes = [
            f"{column} = IF({is_lower}, VALUES({column}), {column})" for column in reversed(values)
        ]
        return f"ON DUPLICATE KEY UPDATE {', '.join(changes)}"

    def add_on_conflict(self, table: str, keys: Sequence[str], values: Sequence[str]) -> str:
        changes = [f"{column} = {column} + VALUES({column})" for column in values]
        return f"ON DUPLICATE KEY UPDATE {', '.join(changes)}"

    def replace_on_conflict(self, keys: Sequence[str], values: Sequence[str]) -> str:
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


def statement(connection: BaseDatabaseWrapper, name: str, *, app: str = "readtrack") -> str:
    """Returns the statement called `name`: the vendor's own one, or the one for all databases.

    `app` is the core or the part that has it, in its folder `sql/statements`.
    """
    statements = statements_of(app)
    return statements.get(f"{name}_{connection.vendor}") or statements[name]


@cache
def statements_of(app: str) -> dict[str, str]:
    """Returns the statements of the core or of a part without comments, by their names."""
    return {
        path.name.removesuffix(".sql"): re.sub("--.*\n", "", path.read_text(encoding="utf-8"))
        for path in files(app).joinpath("sql", "statements").iterdir()
    }


def is_conflict(error: Exception) -> bool:
    """Returns True if another transaction was in the way, so that a second try may succeed."""
    return _is_locked_in_sqlite(error) or not CONFLICTS.isdisjoint(_codes(error))


def is_lock_timeout(error: Exception) -> bool:
    """Returns True if another transaction kept the lock of a table, or of a row, for too long."""
    return _is_locked_in_sqlite(error) or not LOCK_TIMEOUTS.isdisjoint(_codes(error))


def _is_locked_in_sqlite(error: Exception) -> bool:
    """Returns True if another connection to an SQLite database writes, and does not end."""
    return "database is locked" in str(error)


def is_missing_table(error: Exception) -> bool:
    """Returns True if the statement names a table that the database lacks."""
    return "no such table" in str(error) or not MISSING_TABLES.isdisjoint(_codes(error))


def is_impossible_value(error: Exception) -> bool:
    """Returns True if the statement has a value that no column of that kind can hold."""
    return isinstance(error, DataError) or not LACKING_CHARACTERS.isdisjoint(_codes(error))


def _codes(error: Exception) -> set[Any]:
    """Returns the codes of an error of the database: PostgreSQL's state, and MySQL's number."""
    if not isinstance(error, Error):
        return set()
    return {getattr(error.__cause__, "sqlstate", None), *error.args[:1]}
