"""Partitions of history by month, so that old ones go without a row being deleted, and the SQL view
of it by day.
"""

import re
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import groupby
from typing import Any, NamedTuple

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.timezone import get_default_timezone

from readtrack import buckets
from readtrack.models import History
from readtrack.sql import databases

VIEW = "readtrack_daily"
HOURS = range(
    buckets.bucket_index("2000010100"), buckets.bucket_index("2045010100")
)  # whose zone is written out
AHEAD = 2  # months after the present one that have a partition: as long may full flushes be missing
FIRST, BOUND = "_past", "past"  # suffix of the first partition, and the name of its constraint


class Part(NamedTuple):
    """The hours of a partition (since 1970, the end exclusive), its name, and True if a killed
    process detached it.
    """

    since: int
    until: int
    name: str
    is_pending: bool


def divide(connection: BaseDatabaseWrapper, *, at: datetime) -> None:
    """Makes the table of history the first partition of a new one, with all hours until the month
    after next.

    Outside a transaction no page or flush waits for longer than a change of the catalogue takes.
    """
    table, until = History._meta.db_table, _month(at, AHEAD)
    with connection.cursor() as cursor:
        # What PostgreSQL must know of the rows is found out before the table is locked.
        cursor.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT {BOUND} CHECK (hour < {until}) NOT VALID"
        )
        cursor.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {BOUND}")
        concurrently = "" if connection.in_atomic_block else "CONCURRENTLY"
        cursor.execute(f"CREATE INDEX {concurrently} ON {table} USING brin (hour)")
        with transaction.atomic(using=connection.alias):
            words = {"table": table, "first": table + FIRST, "until": until, "bound": BOUND}
            cursor.execute(databases.STATEMENTS["divide"].format_map(words))
            if VIEW in connection.introspection.table_names(cursor, include_views=True):
                create_view(connection)  # because it goes along with the table that has a new name


def add_months(*, at: datetime) -> None:
    """Adds the partitions of the months to come, if history is divided and they are missing."""
    connection, last = databases.of(History), _month(at, AHEAD)
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        if _end(cursor) > last:
            return
        with transaction.atomic(using=connection.alias):
            table = History._meta.db_table
            cursor.execute(
                f"LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE"
            )  # one process adds them
            while (start := _end(cursor)) <= last:
                month = buckets.hour_start(start)
                name = f"{table}_{month:%Y_%m}"
                cursor.execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL)")
                bounds = f"FROM ({start}) TO ({_month(month, 1)})"
                cursor.execute(f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES {bounds}")


def old_months(*, before: int) -> list[Part]:
    """Returns the months that end by that hour, oldest first; none in a transaction, in which none
    can be detached.
    """
    connection = databases.of(History)
    if connection.vendor != "postgresql" or connection.in_atomic_block:
        return []
    with connection.cursor() as cursor:
        return [
            part
            for part in _parts(cursor)
            if part.until <= before and not part.name.endswith(FIRST)
        ]


def drop_months(months: Sequence[Part]) -> None:
    """Drops the months, and those that a killed process had detached. Readers and writers of
    history go on.
    """
    connection, table = databases.of(History), History._meta.db_table
    if connection.vendor != "postgresql" or connection.in_atomic_block:
        return
    with connection.cursor() as cursor:
        for month in months:
            how = "FINALIZE" if month.is_pending else "CONCURRENTLY"
            cursor.execute(f"ALTER TABLE {table} DETACH PARTITION {month.name} {how}")
        cursor.execute(
            databases.STATEMENTS["detached_months"], [rf"^{table}_\d{{4}}_\d{{2}}$", table]
        )
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP TABLE {name}")


def _parts(cursor: Any) -> list[Part]:
    cursor.execute(databases.STATEMENTS["partitions"], [History._meta.db_table])
    found = (
        (name, re.findall(r"\d+", bound), is_pending)
        for name, bound, is_pending in cursor.fetchall()
    )
    # The first one begins with MINVALUE.
    return sorted(
        Part(int(ends[0]), int(ends[-1]), name, is_pending) for name, ends, is_pending in found
    )


def _end(cursor: Any) -> int:
    """Returns the first hour that no partition is for; one that never comes if history is a single
    table.
    """
    return max((part.until for part in _parts(cursor)), default=sys.maxsize)


def _month(at: datetime, later: int) -> int:
    """Returns the first hour (since 1970, UTC) of the month that comes so many months after `at`."""
    months = at.year * 12 + at.month - 1 + later
    return buckets.hour_index(datetime(months // 12, months % 12 + 1, 1, tzinfo=timezone.utc))


def create_view(connection: BaseDatabaseWrapper) -> None:
    """Creates the view of what each object gained by the day (of TIME_ZONE), for tools that know no
    Django.
    """
    quote, vendor = connection.ops.quote_name, connection.vendor
    if vendor == "postgresql":
        day = f"CAST(TO_TIMESTAMP(hour * 3600.0) AT TIME ZONE '{get_default_timezone()}' AS date)"
    else:
        # SQLite knows no zones, and MySQL only those that somebody has loaded.
        changes = [(next(hours), ahead) for ahead, hours in groupby(HOURS, key=_ahead)]
        whens = "".join(f" WHEN hour >= {hour} THEN {ahead}" for hour, ahead in reversed(changes))
        local = f"hour * 3600 + CASE{whens} ELSE {changes[0][1]} END"
        is_mysql = vendor == "mysql"
        day = (
            f"DATE(TIMESTAMPADD(SECOND, {local}, '1970-01-01'))"
            if is_mysql
            else f"DATE({local}, 'unixepoch')"
        )
    query = databases.STATEMENTS["daily"].format(
        table=quote(History._meta.db_table),
        reads=quote("reads"),  # a word of MySQL
        day=day,
        position="STRPOS" if vendor == "postgresql" else "INSTR",
        integer="SIGNED" if vendor == "mysql" else "BIGINT",
    )
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if vendor == "sqlite":
            cursor.execute(f"DROP VIEW IF EXISTS {VIEW}")
        # Replaced where that is possible, because the rights that were granted on it stay.
        cursor.execute(
            f"CREATE {'' if vendor == 'sqlite' else 'OR REPLACE '}VIEW {VIEW} AS {query}"
        )


def drop_view(connection: BaseDatabaseWrapper) -> None:
    """Drops the view, if there is one."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP VIEW IF EXISTS {VIEW}")


def _ahead(hour: int) -> int:
    """Returns the seconds that the zone is ahead of UTC in an hour."""
    offset = buckets.hour_start(hour).astimezone(get_default_timezone()).utcoffset()
    return int(offset.total_seconds()) if offset else 0
