"""The SQL view `readtrack_daily`: what each object gained by the day, for tools that read SQL and know no Django."""

from itertools import groupby

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.timezone import get_default_timezone

from readtrack import buckets
from readtrack.models import History
from readtrack.sql import databases

VIEW = "readtrack_daily"
HOURS = range(buckets.bucket_index("2000010100"), buckets.bucket_index("2045010100"))  # whose zone is written out


def create(connection: BaseDatabaseWrapper) -> None:
    """Creates the view of history, or replaces it. Days are those of TIME_ZONE."""
    quote, vendor = connection.ops.quote_name, connection.vendor
    if vendor == "postgresql":
        day = f"CAST(TO_TIMESTAMP(hour * 3600.0) AT TIME ZONE '{get_default_timezone()}' AS date)"
    else:
        # SQLite knows no zones, and MySQL only those that somebody has loaded.
        changes = [(next(hours), ahead) for ahead, hours in groupby(HOURS, key=_ahead)]
        whens = "".join(f" WHEN hour >= {hour} THEN {ahead}" for hour, ahead in reversed(changes))
        local = f"hour * 3600 + CASE{whens} ELSE {changes[0][1]} END"
        is_mysql = vendor == "mysql"
        day = f"DATE(TIMESTAMPADD(SECOND, {local}, '1970-01-01'))" if is_mysql else f"DATE({local}, 'unixepoch')"
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
        cursor.execute(f"CREATE {'' if vendor == 'sqlite' else 'OR REPLACE '}VIEW {VIEW} AS {query}")


def drop(connection: BaseDatabaseWrapper) -> None:
    """Drops the view, if there is one."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP VIEW IF EXISTS {VIEW}")


def _ahead(hour: int) -> int:
    """Returns the seconds that the zone is ahead of UTC in an hour."""
    offset = buckets.hour_start(hour).astimezone(get_default_timezone()).utcoffset()
    return int(offset.total_seconds()) if offset else 0
