"""What differs between databases: many values at once, upserts, and conflicts worth another try."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from django.db import OperationalError, connections, models, router
from django.db.backends.base.base import BaseDatabaseWrapper

Result = TypeVar("Result")

PAUSES = (0.05, 0.25)  # seconds before each further try
# Deadlock, serialization failure: PostgreSQL's names; lock wait time-out, deadlock: MySQL's numbers.
CONFLICTS: frozenset[Any] = frozenset({"40P01", "40001", 1205, 1213})


def of(model: type[models.Model]) -> BaseDatabaseWrapper:
    """The connection that the model is written by; what a flush reads it reads there too, ahead of replicas."""
    return connections[router.db_for_write(model)]


def retried(connection: BaseDatabaseWrapper, write: Callable[[], Result]) -> Result:
    """What the write gives, tried again when it lost against another transaction. Never inside one of the caller's."""
    for pause in PAUSES:
        try:
            return write()
        except OperationalError as error:
            if connection.in_atomic_block or not is_conflict(error):
                raise
        time.sleep(pause)
    return write()


def is_conflict(error: OperationalError) -> bool:
    """Whether the same statement may well succeed in a moment."""
    state = getattr(error.__cause__, "sqlstate", None)
    return not CONFLICTS.isdisjoint((state, *error.args[:1])) or "database is locked" in str(error)


def array(values: Sequence[Any]) -> Any:
    """The values as a parameter of `unnest()`: whole numbers as text, which takes a fifth of the time."""
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
    ordered = list({row[: len(keys)]: row for row in sorted(rows, key=lambda row: row[: len(keys)])}.values())
    if not ordered:
        return
    connection = of(model)
    fields = [model._meta.get_field(name) for name in (*keys, *values)]
    statement = _UPSERTS.get(connection.vendor, _upsert_portable)
    retried(connection, lambda: statement(connection, model, fields, len(keys), ordered))


def _upsert_postgresql(
    connection: BaseDatabaseWrapper, model: type[models.Model], fields: Sequence[Any], width: int, rows: list[Any]
) -> None:
    columns = [array(column) for column in zip(*rows, strict=True)]
    source = ", ".join(f"%s::{field.rel_db_type(connection)}[]" for field in fields)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {_table(connection, model)} AS row ({_columns(connection, fields)})"
            f" SELECT * FROM unnest({source}) {_on_conflict(connection, fields, width)}",
            columns,
        )


def _upsert_portable(
    connection: BaseDatabaseWrapper, model: type[models.Model], fields: Sequence[Any], width: int, rows: list[Any]
) -> None:
    _insert_each(connection, model, fields, rows, conflict=_on_conflict(connection, fields, width))


def _upsert_mysql(
    connection: BaseDatabaseWrapper, model: type[models.Model], fields: Sequence[Any], width: int, rows: list[Any]
) -> None:
    names = [connection.ops.quote_name(field.column) for field in fields[width:]]
    guard = f"VALUES({names[0]}) > {names[0]}"
    # Assigned from left to right: what the guard looks at comes last.
    changes = ", ".join(f"{name} = IF({guard}, VALUES({name}), {name})" for name in reversed(names))
    _insert_each(connection, model, fields, rows, conflict=f"ON DUPLICATE KEY UPDATE {changes}")


_UPSERTS = {"postgresql": _upsert_postgresql, "mysql": _upsert_mysql}


def _insert_each(
    connection: BaseDatabaseWrapper, model: type[models.Model], fields: Sequence[Any], rows: list[Any], *, conflict: str
) -> None:
    # MySQL knows no alias there; its own clause needs none.
    alias = "" if connection.vendor == "mysql" else " AS row"
    marks = ", ".join("%s" for _ in fields)
    prepared = [
        [field.get_db_prep_value(value, connection) for field, value in zip(fields, row, strict=True)] for row in rows
    ]
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {_table(connection, model)}{alias} ({_columns(connection, fields)})"
            f" VALUES ({marks}) {conflict}",
            prepared,
        )


def _on_conflict(connection: BaseDatabaseWrapper, fields: Sequence[Any], width: int) -> str:
    names = [connection.ops.quote_name(field.column) for field in fields]
    changes = ", ".join(f"{name} = EXCLUDED.{name}" for name in names[width:])
    guard = names[width]
    return f"ON CONFLICT ({', '.join(names[:width])}) DO UPDATE SET {changes} WHERE row.{guard} < EXCLUDED.{guard}"


def _table(connection: BaseDatabaseWrapper, model: type[models.Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _columns(connection: BaseDatabaseWrapper, fields: Sequence[Any]) -> str:
    return ", ".join(connection.ops.quote_name(field.column) for field in fields)
