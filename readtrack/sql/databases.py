"""Connections and rows of models: by many keys, unlocked ones, upserts, and retried writes.

Statements that Django cannot write are in `statements/`, with names in braces that the backend has
quoted. What differs between vendors is in `vendors.py`.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from django.db import OperationalError, connections, models, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict

from readtrack.models.tracked import every_row
from readtrack.sql import vendors
from readtrack.store import scripts

Result = TypeVar("Result")

PAUSES = (0.05, 0.25)  # seconds before each further try


class PreparedKeys(NamedTuple):
    """Primary keys as the database knows them."""

    originals: Mapping[Any, Any]  # the keys as they were given, by the database's values
    array_type: str  # the type of their arrays in PostgreSQL


class OldestLock(NamedTuple):
    """The session that has locked rows of a table for the longest time."""

    session: int
    age: timedelta
    statement: str  # the last one of the session, "" where the database does not know it


def of(model: type[models.Model]) -> BaseDatabaseWrapper:
    """Returns the connection that the model is written by."""
    return connections[router.db_for_write(model)]


def rows(model: type[models.Model]) -> "models.QuerySet[Any]":
    """Returns all rows of the model, read where they are written, because replicas lag."""
    return every_row(model, using=router.db_for_write(model))


def with_keys(model: type[models.Model], keys: Sequence[Any]) -> "Iterator[models.QuerySet[Any]]":
    """Yields the rows that have these primary keys, in portions, because databases limit the number
    of parameters.
    """
    connection = of(model)
    originals, array_type = prepared(model, keys)
    if not vendors.vendor_of(connection).has_arrays:
        for portion in scripts.sliced([*originals.values()]):
            yield rows(model).filter(pk__in=portion)
        return
    if not originals:
        return
    quote: Any = connection.ops.quote_name
    column = f"{quote(model._meta.db_table)}.{quote(model._meta.pk.column)}"
    # In one array, because psycopg takes longer to place a thousand parameters than PostgreSQL
    # takes to answer.
    condition = f"{column} = ANY(%s::{array_type}[])"
    yield rows(model).extra(where=[condition], params=[array([*originals])])  # noqa: S610 - quoted names


def prepared(model: type[models.Model], keys: Collection[Any]) -> PreparedKeys:
    """Returns the primary keys as the database knows them. Numbers that no column can hold are left
    out.
    """
    connection = of(model)
    pk = model._meta.pk
    array_type = _array_type(pk.rel_db_type(connection) or "")
    if set(map(type, keys)) == {int}:  # as most keys are
        return PreparedKeys({key: key for key in keys if abs(key) < 2**63}, array_type)
    return PreparedKeys({pk.get_db_prep_value(key, connection): key for key in keys}, array_type)


def _array_type(column_type: str) -> str:
    """Returns the widest type of the column's kind.

    The column's own type would cut long texts, and raise for numbers out of its range.
    """
    if column_type in {"integer", "smallint"}:
        return "bigint"
    if column_type.startswith("varchar"):
        return "text"
    return column_type


def unlocked(model: type[models.Model]) -> "models.QuerySet[Any]":
    """Returns the rows that no other transaction has locked, and locks them. Call it in a
    transaction.

    SQLite locks no rows, so it returns all.
    """
    features = of(model).features
    return rows(model).select_for_update(
        skip_locked=features.has_select_for_update_skip_locked,
        # A new comment locks the key of its post, which does not keep counts from being written.
        no_key=features.has_select_for_no_key_update,
    )


def retried(connection: BaseDatabaseWrapper, write: Callable[[], Result]) -> Result:
    """Returns the result of the write, which is tried again after a conflict.

    In a transaction of the caller the conflict is raised at once.
    """
    for pause in PAUSES:
        try:
            return write()
        except OperationalError as error:
            if connection.in_atomic_block or not vendors.is_conflict(error):
                raise
        time.sleep(pause)
    return write()


def statement(model: type[models.Model], name: str, **expressions: Any) -> str:
    """Returns the statement of that name for the model's table, with these expressions in it."""
    connection = of(model)
    ops = connection.ops
    return vendors.statement(connection, name).format(
        table=ops.quote_name(model._meta.db_table),
        # An INSERT that ignores rows which exist.
        insert=ops.insert_statement(on_conflict=OnConflict.IGNORE),
        ignore=ops.on_conflict_suffix_sql([], OnConflict.IGNORE, [], []),
        **expressions,
    )


def oldest_lock(model: type[models.Model]) -> OldestLock | None:
    """Returns the session that has locked rows of the model for the longest time.

    Returns None if there is none, or if the database does not show locks.
    """
    connection = of(model)
    if not vendors.vendor_of(connection).shows_locks:
        return None
    table = connection.ops.quote_name(model._meta.db_table)
    with connection.cursor() as cursor:
        try:
            cursor.execute(vendors.statement(connection, "oldest_lock"), [table])
        except OperationalError:  # MySQL's user lacks the privilege PROCESS
            return None
        row = cursor.fetchone()
    if not row:
        return None
    session, seconds, last_statement = row
    return OldestLock(session, timedelta(seconds=max(0, seconds)), last_statement)


def array(values: Sequence[Any]) -> Any:
    """Returns the values as a parameter of `unnest()`: whole numbers as text, which takes a fifth
    of the time.
    """
    if set(map(type, values)) == {int}:
        return f"{{{','.join(map(str, values))}}}"
    return list(values)


def upsert(
    model: type[models.Model], keys: Sequence[str], values: Sequence[str], *, rows: Iterable[Any]
) -> None:
    """Inserts rows, or replaces those whose first value is lower.

    `keys` and `values` are the names of fields. A row has the keys, then the values. Of rows with
    equal keys only the last one is written.
    """
    key = itemgetter(slice(len(keys)))
    # Sorted, so that two flushers lock rows in the same order and cannot deadlock.
    ordered = list({key(row): row for row in sorted(rows, key=key)}.values())
    if not ordered:
        return
    connection = of(model)
    vendor = vendors.vendor_of(connection)
    quote = connection.ops.quote_name
    table = quote(model._meta.db_table)
    fields: list[Any] = [model._meta.get_field(name) for name in (*keys, *values)]
    columns = [quote(field.column) for field in fields]
    insert = f"INSERT INTO {table} ({', '.join(columns)})"
    conflict = vendor.raise_on_conflict(table, columns[: len(keys)], columns[len(keys) :])
    if vendor.has_arrays:
        types = ", ".join(f"%s::{field.rel_db_type(connection)}[]" for field in fields)
        sql = f"{insert} SELECT * FROM unnest({types}) {conflict}"
        arrays = [array(column) for column in zip(*ordered, strict=True)]
        write = partial(_execute, connection, sql, arrays)
    else:
        sql = f"{insert} VALUES ({', '.join('%s' for _ in fields)}) {conflict}"
        write = partial(_execute_many, connection, sql, _adapted(connection, fields, ordered))
    retried(connection, write)


def _execute(connection: BaseDatabaseWrapper, sql: str, parameters: Sequence[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)


def _execute_many(
    connection: BaseDatabaseWrapper, sql: str, parameters: Sequence[Sequence[Any]]
) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(sql, parameters)


def _adapted(
    connection: BaseDatabaseWrapper, fields: Sequence[Any], rows: Iterable[Sequence[Any]]
) -> list[list[Any]]:
    """Returns the values of the rows as the database knows them."""
    adapters = [partial(field.get_db_prep_value, connection=connection) for field in fields]
    return [[adapt(value) for adapt, value in zip(adapters, row, strict=True)] for row in rows]
