"""The SQL view of what each object gained by the day, for tools that know no Django."""

from itertools import groupby
from typing import Any

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.timezone import get_default_timezone

from readtrack import buckets
from readtrack.models import History
from readtrack.sql import vendors

VIEW = "readtrack_daily"
# Hours whose distance from UTC is written into the view where the database knows no time zones.
HOURS = range(buckets.bucket_index("2000010100"), buckets.bucket_index("2045010100"))


def create_view(connection: BaseDatabaseWrapper) -> None:
    """Creates the view, or replaces it. Its days are those of TIME_ZONE."""
    vendor = vendors.vendor_of(connection)
    quote = connection.ops.quote_name
    if vendor.knows_zones:
        day = vendor.day.format(zone=get_default_timezone())
    else:
        # SQLite knows no zones, and MySQL only those that somebody has loaded.
        day = vendor.day.format(seconds=_local_seconds())
    statement = vendors.statement(connection, "sql_view").format(
        create=vendor.create_view,
        view=VIEW,
        table=quote(History._meta.db_table),
        reads=quote("reads"),  # a word of MySQL
        day=day,
        position=vendor.position,
        integer=vendor.big_integer,
    )
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if "REPLACE" not in vendor.create_view:
            cursor.execute(f"DROP VIEW IF EXISTS {VIEW}")
        cursor.execute(statement)


def drop_view(connection: BaseDatabaseWrapper) -> None:
    """Drops the view, if there is one."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP VIEW IF EXISTS {VIEW}")


def exists(cursor: Any, connection: BaseDatabaseWrapper) -> bool:
    """Returns True if the database has the view."""
    return VIEW in connection.introspection.table_names(cursor, include_views=True)


def _local_seconds() -> str:
    """Returns the expression for the seconds of local time since 1970, at the start of `hour`."""
    changes = [(next(hours), ahead) for ahead, hours in groupby(HOURS, key=_seconds_ahead)]
    _, first_ahead = changes[0]
    whens = "".join(f" WHEN hour >= {hour} THEN {ahead}" for hour, ahead in reversed(changes))
    return f"hour * 3600 + CASE{whens} ELSE {first_ahead} END"


def _seconds_ahead(hour: int) -> int:
    """Returns the seconds that the zone is ahead of UTC in an hour."""
    offset = buckets.hour_start(hour).astimezone(get_default_timezone()).utcoffset()
    return int(offset.total_seconds()) if offset else 0
