"""The counts in the site's own rows: reading them, and raising many at once without a signal."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.db import transaction

from readtrack.models import Tracked
from readtrack.sql import databases
from readtrack.store import scripts


class RowCounts(NamedTuple):
    """The counts of one row."""

    views: int
    visitors: int


class Written(NamedTuple):
    """The result of a write by primary key: rows raised, views of rows that store more, rows that are missing."""

    raised: Sequence[Any] = ()
    ahead: Mapping[Any, int] = {}
    missing: Sequence[Any] = ()


def stored(model: type[Tracked], pks: Sequence[Any]) -> dict[Any, RowCounts]:
    """Returns the stored counts by primary key, read where they are written; missing rows are left out."""
    found: dict[Any, RowCounts] = {}
    for some in scripts.sliced(pks):  # because databases limit the number of parameters
        rows = databases.rows(model).filter(pk__in=some).values_list("pk", "view_count", "visitor_count")
        found.update((pk, RowCounts(*counts)) for pk, *counts in rows)
    return found


def write(model: type[Tracked], snapshots: Mapping[Any, RowCounts]) -> Written:
    """Raises the rows that store less, in one short transaction."""
    connection = databases.of(model)
    # Sorted, so that two flushers lock rows in the same order and cannot deadlock.
    ordered = {pk: snapshots[pk] for pk in sorted(snapshots)}
    statement = _write_postgresql if connection.vendor == "postgresql" else _write_portable
    return databases.retried(connection, partial(statement, model, ordered))


def _write_postgresql(model: type[Tracked], snapshots: Mapping[Any, RowCounts]) -> Written:
    table, pk, views, visitors, pk_type = _names(model)
    prepared = _prepared(model, snapshots)
    pks, *counts = map(databases.array, (list(prepared), *zip(*snapshots.values(), strict=True)))
    # The server answers in arrays, and only about rows that are not as expected.
    with databases.of(model).cursor() as cursor:
        cursor.execute(  # names are quoted by the backend, values are parameters
            f"WITH raised AS (UPDATE {table} AS row SET {views} = GREATEST(row.{views}, new.views),"
            f" {visitors} = GREATEST(row.{visitors}, new.visitors)"
            f" FROM unnest(%s::{pk_type}[], %s::bigint[], %s::bigint[])"
            f" AS new(pk, views, visitors)"
            # The condition on the key stands twice, because PostgreSQL would otherwise read all of a large table.
            f" WHERE row.{pk} = new.pk AND row.{pk} = ANY(%s::{pk_type}[])"
            f" AND (row.{views} < new.views OR row.{visitors} < new.visitors)"
            f" RETURNING row.{pk} AS pk, row.{views} AS views, row.{views} > new.views AS is_ahead)"
            f" SELECT CASE WHEN count(*) < %s THEN array_agg(pk) END,"
            f" array_agg(pk) FILTER (WHERE is_ahead), array_agg(views) FILTER (WHERE is_ahead), count(*) FROM raised",
            [pks, *counts, pks, len(snapshots)],
        )
        some, ahead, counts, count = cursor.fetchone()
    found = dict(zip((prepared[value] for value in ahead or ()), counts or (), strict=True))
    if count == len(snapshots):
        return Written(list(snapshots), found)
    raised = [prepared[value] for value in some or ()]
    untouched = prepared.keys() - set(some or ())
    others = {prepared[value]: views for value, views in _read_postgresql(model, list(untouched)).items()}
    found.update((pk, views) for pk, views in others.items() if views > snapshots[pk].views)
    return Written(raised, found, [prepared[value] for value in untouched if prepared[value] not in others])


def _read_postgresql(model: type[Tracked], values: Sequence[Any]) -> dict[Any, int]:
    """Returns the stored views by the values that the database knows primary keys by."""
    table, pk, views, _, pk_type = _names(model)
    with databases.of(model).cursor() as cursor:
        cursor.execute(
            f"SELECT {pk}, {views} FROM {table} WHERE {pk} = ANY(%s::{pk_type}[])", [databases.array(values)]
        )
        return dict(cursor.fetchall())


def _write_portable(model: type[Tracked], snapshots: Mapping[Any, RowCounts]) -> Written:
    connection = databases.of(model)
    table, pk, views, visitors, _ = _names(model)
    present = stored(model, list(snapshots))
    # Both counts only rise, so a row that another flush raises meanwhile keeps the higher number.
    behind = {
        pk: snapshots[pk]
        for pk, row in present.items()
        if row.views < snapshots[pk].views or row.visitors < snapshots[pk].visitors
    }
    parameters = [
        (new.views, new.views, new.visitors, new.visitors, value)
        for value, new in zip(_prepared(model, behind), behind.values(), strict=True)
    ]
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if parameters:
            cursor.executemany(
                f"UPDATE {table} SET {views} = CASE WHEN {views} < %s THEN %s ELSE {views} END,"
                f" {visitors} = CASE WHEN {visitors} < %s THEN %s ELSE {visitors} END WHERE {pk} = %s",
                parameters,
            )
    ahead = {pk: row.views for pk, row in present.items() if row.views > snapshots[pk].views}
    return Written(list(behind), ahead, [pk for pk in snapshots if pk not in present])


def lower(model: type[Tracked], pk: Any, *, stored: RowCounts, live: RowCounts) -> None:
    """Lowers a row that was reset to the live counts, unless it changed since it was read."""
    row = databases.rows(model).filter(pk=pk, view_count=stored.views, visitor_count=stored.visitors)
    row.update(view_count=live.views, visitor_count=live.visitors)


def zero(model: type[Tracked], pks: Iterable[Any]) -> None:
    """Sets the counts of the rows to zero."""
    databases.rows(model).filter(pk__in=pks).update(view_count=0, visitor_count=0)


def _names(model: type[Tracked]) -> list[Any]:
    """Returns the quoted names of the table, its primary key and its two counts, and the type of the primary key."""
    connection, options = databases.of(model), model._meta
    fields: list[Any] = [options.pk, *map(options.get_field, ("view_count", "visitor_count"))]
    names = [options.db_table, *(field.column for field in fields)]
    return [*map(connection.ops.quote_name, names), options.pk.rel_db_type(connection)]


def _prepared(model: type[Tracked], pks: Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns the primary keys by the values that the database knows them by."""
    if set(map(type, pks)) == {int}:
        return dict(zip(pks, pks, strict=True))
    connection = databases.of(model)
    return {model._meta.pk.get_db_prep_value(pk, connection): pk for pk in pks}
