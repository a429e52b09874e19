"""Dividing the table of history by month on PostgreSQL, so that an old month is dropped as a table
and not row by row.

PostgreSQL calls such a table a partition. Here it is called a month, because in readtrack a
partition is a part of Redis.
"""

import re
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from readtrack import buckets
from readtrack.numbers.models import History
from readtrack.numbers.sql import sql_view
from readtrack.sql import databases, vendors

# Months after the present one that have a table. For so long no full flush may run, which makes
# the tables.
AHEAD = 2
FILLFACTOR = 85  # of each month, which none takes from the table as a whole
FIRST = "_past"  # the end of the name of the table that history was before it was divided
BOUND = "past"  # the name of that table's constraint


class Month(NamedTuple):
    """A table with the hours of one month (since 1970, `until` is exclusive).

    The first table has all hours from before history was divided, and is no month of its own.
    """

    since: int
    until: int
    name: str
    is_pending: bool  # a process was killed while it detached the month


def divide(connection: BaseDatabaseWrapper, *, at: datetime) -> None:
    """Makes the table of history the first partition of a new table, which is divided by month.

    That partition has all hours until the month after next. Call it outside a transaction: then
    pages and flushes wait only while PostgreSQL changes its catalogue, and not while it checks the
    rows and builds the index.
    """
    table = History._meta.db_table
    until = _month_start(at, AHEAD)
    concurrently = "" if connection.in_atomic_block else "CONCURRENTLY"
    with connection.cursor() as cursor:
        # In two steps, so that PostgreSQL checks the rows without an exclusive lock of the table.
        cursor.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT {BOUND} CHECK (hour < {until}) NOT VALID"
        )
        cursor.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {BOUND}")
        cursor.execute(f"CREATE INDEX {concurrently} ON {table} USING brin (hour)")
        with transaction.atomic(using=connection.alias):
            divide_table = vendors.statement(connection, "divide", app="readtrack.numbers")
            cursor.execute(
                divide_table.format(table=table, first=table + FIRST, until=until, bound=BOUND)
            )
            if sql_view.exists(cursor, connection):
                # The view still reads the old table, under its new name.
                sql_view.create_view(connection)


def add_months(*, at: datetime) -> None:
    """Adds the tables of the months up to AHEAD months after `at`, if history is divided."""
    connection = databases.of(History)
    if not vendors.vendor_of(connection).has_ranges:
        return
    last_start = _month_start(at, AHEAD)
    with connection.cursor() as cursor:
        if _first_hour_without_month(cursor) > last_start:
            return
        with transaction.atomic(using=connection.alias):
            table = History._meta.db_table
            # The lock makes other processes wait. Then they find the months and add none.
            cursor.execute(f"LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE")
            start = _first_hour_without_month(cursor)
            while start <= last_start:
                _add_month(cursor, start)
                start = _first_hour_without_month(cursor)


def _add_month(cursor: Any, start: int) -> None:
    """Adds the table of the month that begins with this hour (since 1970)."""
    table = History._meta.db_table
    bucket = buckets.bucket_of_hour(start)
    month = datetime.strptime(bucket, "%Y%m%d%H")
    name = f"{table}_{month:%Y_%m}"
    bounds = f"FROM ({start}) TO ({_month_start(month, 1)})"
    like = f"(LIKE {table} INCLUDING ALL) WITH (fillfactor = {FILLFACTOR})"
    cursor.execute(f"CREATE TABLE {name} {like}")
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
    """Drops the tables of the months, and those that a killed process has detached and not dropped.

    Readers and writers of history do not have to wait.
    """
    connection = databases.of(History)
    if not vendors.vendor_of(connection).has_ranges or connection.in_atomic_block:
        return
    table = History._meta.db_table
    with connection.cursor() as cursor:
        for month in months:
            mode = "FINALIZE" if month.is_pending else "CONCURRENTLY"
            cursor.execute(f"ALTER TABLE {table} DETACH PARTITION {month.name} {mode}")
        detached_months = vendors.statement(connection, "detached_months", app="readtrack.numbers")
        cursor.execute(detached_months, [rf"^{table}_\d{{4}}_\d{{2}}$", table])
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP TABLE {name}")


def _months(cursor: Any) -> list[Month]:
    """Returns all months that history is divided into, oldest first."""
    list_months = vendors.statement(databases.of(History), "months", app="readtrack.numbers")
    cursor.execute(list_months, [History._meta.db_table])
    months = []
    for name, bounds, is_pending in cursor.fetchall():
        # The bounds are text: FOR VALUES FROM (490000) TO (490744). The first table begins with
        # MINVALUE and not with a number, so its only number is taken for both.
        hours = [int(hour) for hour in re.findall(r"\d+", bounds)]
        months.append(Month(since=hours[0], until=hours[-1], name=name, is_pending=is_pending))
    return sorted(months)


def _first_hour_without_month(cursor: Any) -> int:
    """Returns the first hour (since 1970) after all months.

    If history is not divided, it is an hour that never comes.
    """
    return max((month.until for month in _months(cursor)), default=sys.maxsize)


def _month_start(at: datetime, later: int) -> int:
    """Returns the first hour (since 1970) of the month `later` months after that of `at`."""
    months = at.year * 12 + at.month - 1 + later  # since the year 0
    year, month_index = divmod(months, 12)
    return buckets.bucket_index(f"{year}{month_index + 1:02}0100")
