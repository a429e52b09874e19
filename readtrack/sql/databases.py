"""The differences between databases: many values at once, upserts, and conflicts that are worth another try."""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar

from django.db import OperationalError, connections, models, router
from django.db.backends.base.base import BaseDatabaseWrapper

Result = TypeVar("Result")

PAUSES = (0.05, 0.25)  # seconds before each further try
# Deadlock, serialization failure: PostgreSQL's names; lock wait time-out, deadlock: MySQL's numbers.
CONFLICTS: frozenset[Any] = frozenset({"40P01", "40001", 1205, 1213})


def of(model: type[models.Model]) -> BaseDatabaseWrapper:
    """Returns the connection that the model is written by; a flush reads there too, because replicas lag."""
    return connections[router.db_for_write(model)]


def retried(connection: BaseDatabaseWrapper, write: Callable[[], Result]) -> Result:
    """Returns the result of the write, tried again after a conflict, unless the caller has a transaction open."""
    for pause in PAUSES:
        try:
            return write()
        except OperationalError as error:
            if connection.in_atomic_block or not is_conflict(error):
                raise
        time.sleep(pause)
    return write()


def is_conflict(error: OperationalError) -> bool:
    """Returns True if the same statement may succeed in a moment."""
    state = getattr(error.__cause__, "sqlstate", None)
    return not CONFLICTS.isdisjoint((state, *error.args[:1])) or "database is locked" in str(error)


def array(values: Sequence[Any]) -> Any:
    """Returns the values as a parameter of `unnest()`: whole numbers as text, which takes a fifth of the time."""
    if set(map(type, values)) == {int}:
        return f"{{{','.join(map(str, values))}}}"
    return list(values)


def replace(
    model: type[models.Model], keys: Sequence[str], values: Sequence[str], *, rows: Iterable[tuple[Any, ...]]
) -> None:
    """Inserts rows (keys first, then values), or replaces those that exist."""
    connection = of(model)
    names = (*keys, *values)
    model._default_manager.using(connection.alias).bulk_create(
        [model(**dict(zip(names, row, strict=True))) for row in rows],
        update_conflicts=True,
        update_fields=values,
        unique_fields=keys if connection.features.supports_update_conflicts_with_target else None,
    )


def upsert(
    model: type[models.Model], keys: Sequence[str], values: Sequence[str], *, rows: Iterable[tuple[Any, ...]]
) -> None:
    """Inserts rows (keys first, then values), or replaces those whose first value is lower."""
    key = itemgetter(slice(len(keys)))
    # Sorted, so that two flushes lock rows in the same order and cannot deadlock.
    ordered = list({key(row): row for row in sorted(rows, key=key)}.values())
    if not ordered:
        return
    connection = of(model)
    fields = [model._meta.get_field(name) for name in (*keys, *values)]
    statement = _UPSERTS.get(connection.vendor, _upsert_portable)
    retried(connection, partial(statement, connection, model, fields, len(keys), ordered))


def _upsert_postgresql(
    connection: BaseDatabaseWrapper, model: type[models.Model], fields: Sequence[Any], width: int, rows: list[Any]
) -> None:
    table, columns = _names(connection, model, fields)
    source = ", ".join(f"%s::{field.rel_db_type(connection)}[]" for field in fields)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} AS row ({', '.join(columns)}) SELECT * FROM unnest({source})"
            f" {_on_conflict(columns, width)}",
            [array(column) for column in zip(*rows, strict=True)],
        )


def _upsert_portable(
    connection: BaseDatabaseWrapper, model: type[models.Model], fields: Sequence[Any], width: int, rows: list[Any]
) -> None:
    table, columns = _names(connection, model, fields)
    _insert_each(connection, f"{table} AS row", columns, fields, rows, conflict=_on_conflict(columns, width))


def _upsert_mysql(
    connection: BaseDatabaseWrapper, model: type[models.Model], fields: Sequence[Any], width: int, rows: list[Any]
) -> None:
    table, columns = _names(connection, model, fields)
    values = columns[width:]
    guard = f"VALUES({values[0]}) > {values[0]}"
    # MySQL assigns from left to right, so the column that the guard reads comes last.
    changes = ", ".join(f"{name} = IF({guard}, VALUES({name}), {name})" for name in reversed(values))
    _insert_each(connection, table, columns, fields, rows, conflict=f"ON DUPLICATE KEY UPDATE {changes}")


_UPSERTS = {"postgresql": _upsert_postgresql, "mysql": _upsert_mysql}


def _insert_each(
    connection: BaseDatabaseWrapper,
    table: str,
    columns: Sequence[str],
    fields: Sequence[Any],
    rows: list[Any],
    *,
    conflict: str,
) -> None:
    marks = ", ".join("%s" for _ in fields)
    prepared = [
        [field.get_db_prep_value(value, connection) for field, value in zip(fields, row, strict=True)] for row in rows
    ]
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) {conflict}", prepared)


def _on_conflict(columns: Sequence[str], width: int) -> str:
    changes = ", ".join(f"{name} = EXCLUDED.{name}" for name in columns[width:])
    guard = columns[width]
    return f"ON CONFLICT ({', '.join(columns[:width])}) DO UPDATE SET {changes} WHERE row.{guard} < EXCLUDED.{guard}"


def _names(
    connection: BaseDatabaseWrapper, model: type[models.Model], fields: Sequence[Any]
) -> tuple[str, Sequence[str]]:
    """Returns the quoted names of the table and of the fields' columns."""
    quote = connection.ops.quote_name
    return quote(model._meta.db_table), [quote(field.column) for field in fields]
