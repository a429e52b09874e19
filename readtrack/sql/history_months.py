"""Dividing history by month, so that old months are dropped without deleting a row.

PostgreSQL calls such a part of a table a partition. Here it is called a month, because a partition
is a part of Redis.
"""

import re
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from readtrack import buckets
from readtrack.models import History
from readtrack.sql import databases, sql_view, vendors

AHEAD = 2  # months after the present one that have a table: full flushes may be missing for so long
FIRST = "_past"  # suffix of the table with all hours from before history was divided
BOUND = "past"  # name of that table's constraint


class Month(NamedTuple):
    """A table with the hours of one month (since 1970, `until` is exclusive)."""

    since: int
    until: int
    name: str
    is_pending: bool  # a process was killed while it detached the month


def divide(connection: BaseDatabaseWrapper, *, at: datetime) -> None:
    """Makes the table of history the first partition of a new table.

    That partition takes all hours until the month after next. If no transaction is open, pages and
    flushes wait no longer than a change of the catalogue takes.
    """
    table = History._meta.db_table
    until = _month_start(at, AHEAD)
    concurrently = "" if connection.in_atomic_block else "CONCURRENTLY"
    with connection.cursor() as cursor:
        # PostgreSQL checks the rows before the table is locked.
        cursor.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT {BOUND} CHECK (hour < {until}) NOT VALID"
        )
        cursor.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {BOUND}")
        cursor.execute(f"CREATE INDEX {concurrently} ON {table} USING brin (hour)")
        with transaction.atomic(using=connection.alias):
            divide_table = vendors.statement(connection, "divide")
            cursor.execute(
                divide_table.format(table=table, first=table + FIRST, until=until, bound=BOUND)
            )
            if sql_view.exists(cursor, connection):
                # The view went along with the table that has a new name.
                sql_view.create_view(connection)


def add_months(*, at: datetime) -> None:
    """Adds the months to come, if history is divided and they are missing."""
    connection = databases.of(History)
    if not vendors.vendor_of(connection).has_ranges:
        return
    last = _month_start(at, AHEAD)
    with connection.cursor() as cursor:
        if _end(cursor) > last:
            return
        with transaction.atomic(using=connection.alias):
            table = History._meta.db_table
            # One process adds them.
            cursor.execute(f"LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE")
            while (start := _end(cursor)) <= last:
                _add_month(cursor, start)


def _add_month(cursor: Any, start: int) -> None:
    """Adds the month that begins with this hour."""
    table = History._meta.db_table
    month = buckets.hour_start(start)
    name = f"{table}_{month:%Y_%m}"
    bounds = f"FROM ({start}) TO ({_month_start(month, 1)})"
    cursor.execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL)")
    cursor.execute(f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES {bounds}")


def old_months(*, before: int) -> list[Month]:
    """Returns the months that end by that hour, oldest first.

    Returns none inside a transaction, because PostgreSQL detaches none there.
    """
    connection = databases.of(History)
    if not vendors.vendor_of(connection).has_ranges or connection.in_atomic_block:
        return []
    with connection.cursor() as cursor:
        months = _months(cursor)
    return [month for month in months if month.until <= before and not month.name.endswith(FIRST)]


def drop_months(months: Sequence[Month]) -> None:
    """Drops the months, and those that a killed process had detached.

    Readers and writers of history do not wait.
    """
    connection = databases.of(History)
    if not vendors.vendor_of(connection).has_ranges or connection.in_atomic_block:
        return
    table = History._meta.db_table
    with connection.cursor() as cursor:
        for month in months:
            mode = "FINALIZE" if month.is_pending else "CONCURRENTLY"
            cursor.execute(f"ALTER TABLE {table} DETACH PARTITION {month.name} {mode}")
        detached_months = vendors.statement(connection, "detached_months")
        cursor.execute(detached_months, [rf"^{table}_\d{{4}}_\d{{2}}$", table])
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP TABLE {name}")


def _months(cursor: Any) -> list[Month]:
    """Returns all months that history is divided into, oldest first."""
    list_months = vendors.statement(databases.of(History), "months")
    cursor.execute(list_months, [History._meta.db_table])
    months = []
    for name, bounds, is_pending in cursor.fetchall():
        hours = [int(hour) for hour in re.findall(r"\d+", bounds)]
        # The first one begins with MINVALUE, so it has one number only.
        months.append(Month(hours[0], hours[-1], name, is_pending))
    return sorted(months)


def _end(cursor: Any) -> int:
    """Returns the first hour that no month is for; one that never comes if history is a single
    table.
    """
    return max((month.until for month in _months(cursor)), default=sys.maxsize)


def _month_start(at: datetime, later: int) -> int:
    """Returns the first hour (since 1970, UTC) of the month `later` months after that of `at`."""
    months = at.year * 12 + at.month - 1 + later
    return buckets.hour_index(datetime(months // 12, months % 12 + 1, 1, tzinfo=timezone.utc))
