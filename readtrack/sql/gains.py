"""Raises rows of history by views of the past."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict

from readtrack.models import History
from readtrack.sql import databases
from readtrack.sql.runs import lock_epoch


class Gain(NamedTuple):
    """Views to add to a subject's rows from one hour until another (since 1970, exclusive) that are below a limit."""

    views: int
    subject: str
    since: int
    until: int
    limit: int


def add(gains: Sequence[Gain]) -> None:
    """Inserts rows for the hours in which gains begin, and adds the gains, whose hours must not overlap.

    A row that is inserted begins with the counts of the row before it. Call it in a transaction.
    """
    # Other writers of sums wait, because this would neither see nor raise a row that they insert meanwhile.
    lock_epoch()
    connection = databases.of(History)
    statements = _add_postgresql if connection.vendor == "postgresql" else _add_portable
    statements(connection, connection.ops.quote_name(History._meta.db_table), sorted(gains, key=lambda gain: gain[1:]))


def _add_postgresql(connection: BaseDatabaseWrapper, table: str, gains: Sequence[Gain]) -> None:
    views, subjects, *hours, limits = zip(*gains, strict=True)
    columns = [databases.array(views), list(subjects), *map(databases.array, hours), databases.array(limits)]
    new = (
        "FROM unnest(%s::bigint[], %s::varchar[], %s::integer[], %s::integer[], %s::bigint[])"
        " AS new(views, subject, since, until, below)"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} (subject, hour, views, visitors)"
            f" SELECT new.subject, new.since, COALESCE(past.views, 0), COALESCE(past.visitors, 0) {new}"
            f" LEFT JOIN LATERAL (SELECT views, visitors FROM {table} WHERE subject = new.subject AND hour < new.since"
            f" ORDER BY hour DESC LIMIT 1) AS past ON true ON CONFLICT DO NOTHING",
            columns,
        )
        cursor.execute(
            f"UPDATE {table} AS row SET views = row.views + new.views {new}"
            f" WHERE row.subject = new.subject AND row.hour >= new.since AND row.hour < new.until"
            # Without the second condition on the subject a large table is read as a whole.
            f" AND row.views < new.below AND row.subject = ANY(%s::varchar[])",
            [*columns, list(dict.fromkeys(subjects))],
        )


def _add_portable(connection: BaseDatabaseWrapper, table: str, gains: Sequence[Gain]) -> None:
    ops = connection.ops
    fields: list[Any] = [History._meta.get_field(name) for name in ("subject", "hour", "views", "visitors")]
    subject, hour, views, visitors = (ops.quote_name(field.column) for field in fields)
    past = f"FROM {table} past WHERE past.{subject} = %s AND past.{hour} < %s ORDER BY past.{hour} DESC LIMIT 1"
    with connection.cursor() as cursor:
        cursor.executemany(
            f"{ops.insert_statement(on_conflict=OnConflict.IGNORE)} {table} ({subject}, {hour}, {views}, {visitors})"
            f" SELECT %s, %s, COALESCE((SELECT past.{views} {past}), 0), COALESCE((SELECT past.{visitors} {past}), 0)"
            f" {ops.on_conflict_suffix_sql(fields, OnConflict.IGNORE, [], [])}",
            [(gain.subject, gain.since) * 3 for gain in gains],
        )
        cursor.executemany(
            f"UPDATE {table} SET {views} = {views} + %s"
            f" WHERE {subject} = %s AND {hour} >= %s AND {hour} < %s AND {views} < %s",
            gains,
        )
