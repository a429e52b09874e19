"""The differences between databases: many values at once, upserts, and conflicts that are worth
another try.

Statements that Django cannot write are in `statements/`, with names in braces that the backend has
quoted.
"""

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from importlib.resources import files
from operator import itemgetter
from typing import Any, TypeVar

from django.db import OperationalError, connections, models, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict

from readtrack.store import scripts

Result = TypeVar("Result")

PAUSES = (0.05, 0.25)  # seconds before each further try
STATEMENTS = {  # by the names of their files, without comments
    path.name.removesuffix(".sql"): re.sub("--.*\n", "", path.read_text(encoding="utf-8"))
    for path in files("readtrack.sql").joinpath("statements").iterdir()
}
# Deadlock, serialization failure: PostgreSQL's names; lock wait time-out, deadlock: MySQL's
# numbers.
CONFLICTS: frozenset[Any] = frozenset({"40P01", "40001", 1205, 1213})


def of(model: type[models.Model]) -> BaseDatabaseWrapper:
    """Returns the connection that the model is written by."""
    return connections[router.db_for_write(model)]


def rows(model: type[models.Model]) -> "models.QuerySet[Any]":
    """Returns all rows of the model, read where they are written, because replicas lag."""
    return model._base_manager.using(router.db_for_write(model))


def with_keys(model: type[models.Model], keys: Sequence[Any]) -> "Iterator[models.QuerySet[Any]]":
    """Yields the rows that have these primary keys, in parts, because databases limit the number of
    parameters.
    """
    connection, (known, kind) = of(model), prepared(model, keys)
    quote: Any = connection.ops.quote_name
    if connection.vendor != "postgresql":
        yield from (rows(model).filter(pk__in=some) for some in scripts.sliced([*known.values()]))
    elif known:
        # in one array, because psycopg takes longer to place a thousand parameters than PostgreSQL
        # to answer
        condition = (
            f"{quote(model._meta.db_table)}.{quote(model._meta.pk.column)} = ANY(%s::{kind}[])"
        )
        yield rows(model).extra(where=[condition], params=[array([*known])])  # noqa: S610 - no text of others


def prepared(model: type[models.Model], keys: Collection[Any]) -> tuple[dict[Any, Any], str]:
    """Returns the primary keys by the values that the database knows them by, and their type in
    PostgreSQL's arrays.

    Numbers that no column can hold are left out.
    """
    connection, pk = of(model), model._meta.pk
    # The widest type, because the column's own would cut long texts, and raise for numbers out of
    # its range.
    kind = pk.rel_db_type(connection) or ""
    kind = (
        "bigint"
        if kind in {"integer", "smallint"}
        else "text"
        if kind.startswith("varchar")
        else kind
    )
    if set(map(type, keys)) == {int}:  # as most keys are
        return {key: key for key in keys if abs(key) < 2**63}, kind
    return {pk.get_db_prep_value(key, connection): key for key in keys}, kind


def unlocked(model: type[models.Model]) -> "models.QuerySet[Any]":
    """Returns the rows that no other transaction has locked, in a transaction; SQLite, which cannot
    tell, all.
    """
    features = of(model).features
    # A comment that is added locks the key of its post, which does not keep counts from being
    # written.
    skip_locked, no_key = (
        features.has_select_for_update_skip_locked,
        features.has_select_for_no_key_update,
    )
    return rows(model).select_for_update(skip_locked=skip_locked, no_key=no_key)


def retried(connection: BaseDatabaseWrapper, write: Callable[[], Result]) -> Result:
    """Returns the result of the write, tried again after a conflict, unless the caller has a
    transaction open.
    """
    for pause in PAUSES:
        try:
            return write()
        except OperationalError as error:
            state = getattr(error.__cause__, "sqlstate", None)
            is_conflict = not CONFLICTS.isdisjoint(
                (state, *error.args[:1])
            ) or "database is locked" in str(error)
            if connection.in_atomic_block or not is_conflict:
                raise
        time.sleep(pause)
    return write()


def words(model: type[models.Model]) -> dict[str, str]:
    """Returns the words for statements about the model: its table, and an INSERT that ignores rows
    which exist.
    """
    ops = of(model).ops
    return {
        "table": ops.quote_name(model._meta.db_table),
        "insert": ops.insert_statement(on_conflict=OnConflict.IGNORE),
        "ignore": ops.on_conflict_suffix_sql([], OnConflict.IGNORE, [], []),
    }


def oldest_lock(model: type[models.Model]) -> tuple[int, timedelta, str] | None:
    """Returns the session that has locked rows for the longest time, its age and last statement, or
    None.
    """
    connection = of(model)
    if connection.vendor not in {"postgresql", "mysql"}:
        return None
    with connection.cursor() as cursor:
        try:
            cursor.execute(STATEMENTS[f"oldest_lock_{connection.vendor}"], [words(model)["table"]])
        except OperationalError:  # MySQL's user lacks the privilege PROCESS
            return None
        found = cursor.fetchone()
    return (found[0], timedelta(seconds=max(0, found[1])), found[2]) if found else None


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
    """Inserts rows (keys, then values), or replaces those whose first value is lower."""
    key = itemgetter(slice(len(keys)))
    # Sorted, so that two flushers lock rows in the same order and cannot deadlock.
    ordered = list({key(row): row for row in sorted(rows, key=key)}.values())
    if not ordered:
        return
    connection = of(model)
    table = connection.ops.quote_name(model._meta.db_table)
    fields: list[Any] = [model._meta.get_field(name) for name in (*keys, *values)]
    columns = [connection.ops.quote_name(field.column) for field in fields]
    insert = f"INSERT INTO {table} ({', '.join(columns)})"
    changed = columns[len(keys) :]
    if connection.vendor == "mysql":
        # MySQL assigns from left to right, so the column that the others look at comes last.
        changes = [
            f"{name} = IF(VALUES({changed[0]}) > {changed[0]}, VALUES({name}), {name})"
            for name in changed[::-1]
        ]
        conflict = f"ON DUPLICATE KEY UPDATE {', '.join(changes)}"
    else:
        changes = [f"{name} = EXCLUDED.{name}" for name in changed]
        targets, is_lower = (
            ", ".join(columns[: len(keys)]),
            f"{table}.{changed[0]} < EXCLUDED.{changed[0]}",
        )
        conflict = f"ON CONFLICT ({targets}) DO UPDATE SET {', '.join(changes)} WHERE {is_lower}"

    def write() -> None:
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                source = ", ".join(f"%s::{field.rel_db_type(connection)}[]" for field in fields)
                arrays = [array(column) for column in zip(*ordered, strict=True)]
                cursor.execute(f"{insert} SELECT * FROM unnest({source}) {conflict}", arrays)
                return
            adapt = [partial(field.get_db_prep_value, connection=connection) for field in fields]
            prepared = [
                [to_db(value) for to_db, value in zip(adapt, row, strict=True)] for row in ordered
            ]
            cursor.executemany(
                f"{insert} VALUES ({', '.join('%s' for _ in fields)}) {conflict}", prepared
            )

    retried(connection, write)
