"""The SQL view of what each object gained by the day, for tools that know no Django."""

from itertools import groupby
from typing import Any

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.timezone import get_default_timezone

from readtrack import buckets
from readtrack.hits.stages import STAGES
from readtrack.numbers.models import DayVisitors, History
from readtrack.sql import vendors

VIEW = "readtrack_daily"
# If the database knows no time zones, the view has the offset from UTC of each of these hours.
HOURS = range(buckets.bucket_index("2000010100"), buckets.bucket_index("2045010100"))


def create_view(connection: BaseDatabaseWrapper) -> None:
    """Creates the view, or replaces it. Its days are those of TIME_ZONE."""
    vendor = vendors.vendor_of(connection)
    quote = connection.ops.quote_name
    if vendor.knows_zones:
        day = vendor.day.format(zone=get_default_timezone(), shift=buckets.hour_shift())
    else:
        # SQLite knows no zones, and MySQL only those that somebody has loaded.
        day = vendor.day.format(seconds=_local_seconds())
    statement = vendors.statement(connection, "sql_view", app="readtrack.numbers").format(
        create=vendor.create_view,
        view=VIEW,
        table=quote(History._meta.db_table),
        people=quote(DayVisitors._meta.db_table),
        # In quotes, because "reads" is a reserved word of MySQL.
        stages=", ".join(f"daily.{quote(stage)}" for stage in STAGES),
        sums_of_stages=", ".join(f"{_sum_of(stage, vendor)} AS {quote(stage)}" for stage in STAGES),
        stage=_case("'{stage}'", otherwise="''"),
        subject=_case("SUBSTR(subject, {start})", otherwise="subject"),
        day=day,
        position=vendor.position,
        integer=vendor.big_integer,
    )
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if "REPLACE" not in vendor.create_view:
            cursor.execute(f"DROP VIEW IF EXISTS {VIEW}")
        cursor.execute(statement)


def _sum_of(stage: str, vendor: vendors.Vendor) -> str:
    """Returns the SQL expression for the views of a day that reached a stage."""
    views = f"CASE WHEN stage = '{stage}' THEN views ELSE 0 END"
    return f"CAST(SUM({views}) AS {vendor.big_integer})"


def _case(value: str, *, otherwise: str) -> str:
    """Returns the SQL expression for a value of a row that has a stage of views, as "reads:" says
    at the beginning of its subject, and for a value of any other row.
    """
    whens = []
    for stage in STAGES:
        value_of_stage = value.format(stage=stage, start=len(stage) + 2)
        whens.append(f"WHEN subject LIKE '{stage}:%' THEN {value_of_stage}")
    return f"CASE {' '.join(whens)} ELSE {otherwise} END"


def drop_view(connection: BaseDatabaseWrapper) -> None:
    """Drops the view, if there is one."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP VIEW IF EXISTS {VIEW}")


def exists(cursor: Any, connection: BaseDatabaseWrapper) -> bool:
    """Returns True if the database has the view."""
    return VIEW in connection.introspection.table_names(cursor, include_views=True)


def _local_seconds() -> str:
    """Returns the SQL expression for the local time at the start of the column `hour`.

    It is UTC's time (s since 1970) plus the offset that TIME_ZONE has in that hour.
    """
    # The first hour of each offset, and the offset (s). A zone changes it when summer time begins
    # or ends.
    changes = [(next(hours), offset) for offset, hours in groupby(HOURS, key=_utc_offset)]
    _, first_offset = changes[0]
    # The latest change comes first, because CASE takes the first condition that holds.
    whens = "".join(f" WHEN hour >= {hour} THEN {offset}" for hour, offset in reversed(changes))
    return f"hour * 3600 - {buckets.hour_shift()} + CASE{whens} ELSE {first_offset} END"


def _utc_offset(hour: int) -> int:
    """Returns the seconds by which TIME_ZONE is ahead of UTC in an hour (since 1970)."""
    offset = buckets.hour_start(hour).astimezone(get_default_timezone()).utcoffset()
    return int(offset.total_seconds()) if offset else 0
