"""The counts in SQL: reading them, and raising many at once. Nothing here lowers a count or fires a signal."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db import connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from readtrack.models import Tracked


class Snapshot(NamedTuple):
    """The counts of one row."""

    views: int
    visitors: int


class Written(NamedTuple):
    """What a write did: how many rows it raised, and by primary key what SQL now stores of all rows that exist."""

    raised: int
    stored: dict[Any, int]


def stored(model: type[Tracked], pks: Sequence[Any]) -> dict[Any, Snapshot]:
    """What SQL stores by primary key, read where it is written; rows that are gone are left out."""
    rows = model._base_manager.using(router.db_for_write(model)).filter(pk__in=pks)
    return {pk: Snapshot(*counts) for pk, *counts in rows.values_list("pk", "view_count", "visitor_count")}


def write(model: type[Tracked], snapshots: Mapping[Any, Snapshot]) -> Written:
    """Raises the rows that store less, by primary key, in one short transaction."""
    connection = connections[router.db_for_write(model)]
    # Sorted, so that two flushers lock rows in the same order and cannot deadlock.
    ordered = {pk: snapshots[pk] for pk in sorted(snapshots)}
    if connection.vendor == "postgresql":
        return _write_postgresql(connection, model, ordered)
    return _write_portable(connection, model, ordered)


def _write_postgresql(
    connection: BaseDatabaseWrapper, model: type[Tracked], snapshots: Mapping[Any, Snapshot]
) -> Written:
    table, pk, views, visitors = _names(connection, model)
    prepared = _prepared(connection, model, snapshots)
    counts = zip(*snapshots.values(), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(  # names are quoted by the backend, values are parameters
            f"UPDATE {table} AS row SET {views} = GREATEST(row.{views}, new.views),"
            f" {visitors} = GREATEST(row.{visitors}, new.visitors)"
            f" FROM unnest(%s::{model._meta.pk.rel_db_type(connection)}[], %s::bigint[], %s::bigint[])"
            f" AS new(pk, views, visitors)"
            f" WHERE row.{pk} = new.pk AND (row.{views} < new.views OR row.{visitors} < new.visitors)"
            f" RETURNING row.{pk}, row.{views}",
            [list(prepared), *map(list, counts)],
        )
        raised = {prepared[value]: count for value, count in cursor.fetchall()}
    others = [pk for pk in snapshots if pk not in raised]
    untouched = {pk: snapshot.views for pk, snapshot in stored(model, others).items()} if others else {}
    return Written(len(raised), raised | untouched)


def _write_portable(
    connection: BaseDatabaseWrapper, model: type[Tracked], snapshots: Mapping[Any, Snapshot]
) -> Written:
    table, pk, views, visitors = _names(connection, model)
    present = stored(model, list(snapshots))
    # Both counts only ever rise, so a row that another flusher raises meanwhile keeps the higher of the two.
    behind = {pk: snapshots[pk] for pk, row in present.items() if row != _higher(row, snapshots[pk])}
    parameters = [
        (new.views, new.views, new.visitors, new.visitors, value)
        for value, new in zip(_prepared(connection, model, behind), behind.values(), strict=True)
    ]
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if parameters:
            cursor.executemany(
                f"UPDATE {table} SET {views} = CASE WHEN {views} < %s THEN %s ELSE {views} END,"
                f" {visitors} = CASE WHEN {visitors} < %s THEN %s ELSE {visitors} END WHERE {pk} = %s",
                parameters,
            )
    return Written(len(behind), {pk: _higher(row, snapshots[pk]).views for pk, row in present.items()})


def _higher(one: Snapshot, other: Snapshot) -> Snapshot:
    return Snapshot(max(one.views, other.views), max(one.visitors, other.visitors))


def _names(connection: BaseDatabaseWrapper, model: type[Tracked]) -> list[str]:
    """The quoted names of the table, its primary key and its two counts."""
    options = model._meta
    fields: list[Any] = [options.pk, *map(options.get_field, ("view_count", "visitor_count"))]
    return [connection.ops.quote_name(name) for name in (options.db_table, *(field.column for field in fields))]


def _prepared(connection: BaseDatabaseWrapper, model: type[Tracked], pks: Mapping[Any, Any]) -> dict[Any, Any]:
    """The primary keys by the values that the database knows them by."""
    return {model._meta.pk.get_db_prep_value(pk, connection): pk for pk in pks}
