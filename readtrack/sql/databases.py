"""Connections and rows of models: many rows by key, unlocked rows, upserts, and retried writes.

Statements that Django cannot write are in `statements/`. Names in braces are replaced by quoted
names of tables and columns, and by expressions. What differs between vendors is in `vendors.py`.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import date, timedelta
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from django.apps import apps
from django.db import Error, OperationalError, connections, models, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict

from readtrack.models.tracked import every_row
from readtrack.parts import PartConfig
from readtrack.sql import absent, vendors
from readtrack.store import scripts

Result = TypeVar("Result")

TRIES = 100  # of work that has to begin again when others have changed rows meanwhile
LOCK_WAIT = 5  # seconds that a flush waits for the lock of a table
PAUSES = (0.05, 0.25, 1.0)  # seconds before each further try


class ContendedError(OperationalError):
    """Others have changed the rows in each of many tries."""


class PreparedKeys(NamedTuple):
    """Primary keys, converted to the values that the database stores."""

    originals: Mapping[Any, Any]  # the keys before the conversion, by the database's values
    array_type: str  # the type of an element if PostgreSQL takes them as an array


class OldestLock(NamedTuple):
    """The database session that has locked rows of a table for the longest time."""

    session: int  # its number in the database
    age: timedelta
    statement: str  # the last statement of the session, "" if the database does not know it


def attempts(what: str) -> Iterator[int]:
    """Yields the number of each try of some work, which is named for an error message.

    Raises ContendedError after TRIES. Other flushes do not disturb the work so often, so what is
    read probably comes from a cache, and does not change any more.
    """
    yield from range(TRIES)
    raise ContendedError(
        f"{what}: gave up after {TRIES} tries, because the rows were different from what was read "
        "each time. Is there a cache between Django and the database?"
    )


def of(model: type[models.Model]) -> BaseDatabaseWrapper:
    """Returns the connection to the database that the model is written to."""
    return connections[router.db_for_write(model)]


def rows(model: type[models.Model]) -> "models.QuerySet[Any]":
    """Returns all rows of the model, from the database that it is written to: a replica may lag.

    There are none of a table that is left out because the database lacks it.
    """
    all_rows = every_row(model, using=router.db_for_write(model))
    if absent.is_absent(model):
        return all_rows.none()
    return all_rows


def with_keys(model: type[models.Model], keys: Sequence[Any]) -> "Iterator[models.QuerySet[Any]]":
    """Yields querysets of the rows that have these primary keys.

    There are several querysets, because databases limit the number of parameters; PostgreSQL takes
    all keys at once.
    """
    connection = of(model)
    originals, array_type = prepared(model, keys)
    if not vendors.vendor_of(connection).has_arrays:
        for portion in scripts.sliced([*originals.values()]):
            yield rows(model).filter(pk__in=portion)
        return
    if not originals:
        return
    yield _of_array(rows(model), str(model._meta.pk.column), array_type, [*originals])


def having(
    all_rows: "models.QuerySet[Any]", name: str, texts: Collection[str]
) -> "models.QuerySet[Any]":
    """Returns a queryset of those of the rows whose text field has one of these values.

    Databases but PostgreSQL limit the number of values.
    """
    if not vendors.vendor_of(connections[all_rows.db]).has_arrays:
        return all_rows.filter(**{f"{name}__in": texts})
    column = all_rows.model._meta.get_field(name).column
    return _of_array(all_rows, column, "text", [*texts])


def _of_array(
    all_rows: "models.QuerySet[Any]", column: str, array_type: str, values: Sequence[Any]
) -> "models.QuerySet[Any]":
    """Returns a queryset of those rows of PostgreSQL whose column has one of the values."""
    quote: Any = connections[all_rows.db].ops.quote_name
    full_name = f"{quote(all_rows.model._meta.db_table)}.{quote(column)}"
    # One parameter with an array, because to fill in a thousand parameters takes psycopg longer
    # than PostgreSQL takes to answer.
    condition = f"{full_name} = ANY(%s::{array_type}[])"
    return all_rows.extra(where=[condition], params=[array(values)])  # noqa: S610 - quoted names


def prepared(model: type[models.Model], keys: Collection[Any]) -> PreparedKeys:
    """Returns primary keys of the model, converted to the values that the database stores.

    Leaves out numbers that no column can hold.
    """
    connection = of(model)
    pk = model._meta.pk
    array_type = _array_type(pk.rel_db_type(connection) or "")
    if set(map(type, keys)) == {int}:  # a short cut, because most primary keys are numbers
        originals = {key: key for key in keys if abs(key) < 2**63}
    elif set(map(type, keys)) == {bytes}:  # drivers wrap them in objects that are all different
        originals = {key: key for key in keys}
    else:
        originals = {pk.get_db_prep_value(key, connection): key for key in keys}
    return PreparedKeys(originals, array_type)


def _array_type(column_type: str) -> str:
    """Returns a type of PostgreSQL for values of that column: one that takes any number or text.

    The column's own type would cut long texts, and raise for numbers out of its range.
    """
    if column_type in {"integer", "smallint"}:
        return "bigint"
    if column_type.startswith(("varchar", "character varying")):
        return "text"
    return column_type


def unlocked(model: type[models.Model]) -> "models.QuerySet[Any]":
    """Returns a queryset that locks its rows, without the rows that another transaction has locked.

    It has to be evaluated in a transaction. On SQLite, which has no locks of rows, it has all rows.
    """
    features = of(model).features
    return rows(model).select_for_update(
        skip_locked=features.has_select_for_update_skip_locked,
        # A weaker lock of PostgreSQL. For example, it can be had while a new comment locks the key
        # of its post.
        no_key=features.has_select_for_no_key_update,
    )


def own_transaction(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    """Opens a transaction for rows of the app's own tables; a savepoint within a transaction."""
    return vendors.vendor_of(connection).transaction(connection, lock_wait=0, is_writing=True)


def site_transaction(
    connection: BaseDatabaseWrapper, *, is_writing: bool = False
) -> AbstractContextManager[None]:
    """Opens a transaction for tables of the site, which others may have locked, so that it waits
    LOCK_WAIT seconds at most; a savepoint within a transaction.
    """
    vendor = vendors.vendor_of(connection)
    return vendor.transaction(connection, lock_wait=LOCK_WAIT, is_writing=is_writing)


def can_hold(model: type[models.Model], text: str) -> bool:
    """Returns True if a text column of the app's model can hold the text."""
    connection = of(model)
    return vendors.vendor_of(connection).can_hold(connection, text)


def retried(connection: BaseDatabaseWrapper, write: Callable[[], Result]) -> Result:
    """Calls the function, again after a conflict with another transaction, and returns its result.

    Raises the conflict of the last try; any other error is raised at once. Inside a transaction of
    the caller it does not try again, because the conflict has ended that transaction.
    """
    for pause in PAUSES:
        try:
            return write()
        except Error as error:
            if connection.in_atomic_block or not vendors.is_conflict(error):
                raise
        time.sleep(pause)
    return write()


@contextmanager
def retrying() -> Iterator[None]:
    """While it is open, statements outside of transactions are tried again after a conflict. With
    REPEATABLE READ and SERIALIZABLE any statement may meet one.
    """
    with ExitStack() as wrappers:
        for connection in connections.all():
            wrappers.enter_context(connection.execute_wrapper(_retry))
        yield


def _retry(
    execute: Callable[..., Any],
    sql: str,
    parameters: Any,
    many: bool,  # noqa: FBT001 - as Django calls it
    context: Mapping[str, Any],
) -> Any:
    """Executes a statement as `retried` says; an execute wrapper of Django."""
    statement_once = partial(execute, sql, parameters, many, context)
    return retried(context["connection"], statement_once)


def is_down(connection: BaseDatabaseWrapper) -> bool:
    """Returns True if the connection is of no use any more, after an error."""
    return connection.connection is None or not connection.is_usable()


def is_pooled(connection: BaseDatabaseWrapper) -> bool:
    """Returns True if a pooler of connections, such as PgBouncer, is known to be before the
    database.
    """
    return vendors.vendor_of(connection).is_pooled(connection)


def statement(model: type[models.Model], name: str, **expressions: Any) -> str:
    """Returns the SQL statement called `name`, with the model's table and these SQL expressions.

    It is in the folder of the part that the model belongs to, or else in the core's.
    """
    connection = of(model)
    ops = connection.ops
    config = apps.get_app_config(model._meta.app_label)
    app = "readtrack"
    if isinstance(config, PartConfig):
        app = config.name
    return vendors.statement(connection, name, app=app).format(
        table=ops.quote_name(model._meta.db_table),
        # Start and end of an INSERT that leaves out rows whose key exists already.
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
    """Returns the values as a parameter that PostgreSQL takes for an array.

    Values of these types are written as text, `{1,2,3}`, which takes psycopg a fifth of the time.
    """
    only_type = _only_type(values)
    if only_type is str:
        return _array_of_texts(values)
    write = _WRITTEN_IN_ARRAYS.get(only_type)
    if write is None:
        return list(values)
    items = ",".join(map(write, values))
    return f"{{{items}}}"


def _array_of_texts(texts: Sequence[str]) -> str:
    """Returns the texts as a parameter that PostgreSQL takes for an array."""
    items = '","'.join(texts)
    # Looked for in all texts at once, because hardly any has one.
    has_quotes = items.count('"') > 2 * (len(texts) - 1)
    if has_quotes or "\\" in items:
        items = '","'.join(map(_escaped, texts))
    return f'{{"{items}"}}'


def _only_type(values: Iterable[Any]) -> type | None:
    """Returns the type that all the values have; None if they have several."""
    types = set(map(type, values))
    if len(types) != 1:
        return None
    return types.pop()


def _escaped(text: str) -> str:
    """Returns the text as it stands between the quotes of an array's item."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _in_hexadecimal(value: bytes) -> str:
    """Returns the bytes as an item of an array."""
    return f'"\\\\x{value.hex()}"'


# How each type of value is written in an array.
_WRITTEN_IN_ARRAYS: dict[type | None, Callable[[Any], str]] = {
    int: str,
    date: date.isoformat,
    bytes: _in_hexadecimal,
}


def upsert(
    model: type[models.Model], keys: Sequence[str], values: Sequence[str], *, rows: Iterable[Any]
) -> None:
    """Inserts rows. If a row with the same keys exists, replaces its values if the first of them is
    lower than the new one.

    `keys` and `values` are the names of fields. Each of the `rows` is a tuple of the keys and the
    values. Of rows with equal keys only the last one is written.
    """
    vendor = vendors.vendor_of(of(model))
    _insert(model, (*keys, *values), len(keys), vendor.raise_on_conflict, rows)


def add(model: type[models.Model], keys: Sequence[str], value: str, *, rows: Iterable[Any]) -> None:
    """Inserts rows. If a row with the same keys exists, adds the new value to its value.

    `keys` and `value` are the names of fields. Each of the `rows` is a tuple of the keys and the
    value. No two of them may have the same keys. The caller has to open a transaction.
    """
    vendor = vendors.vendor_of(of(model))
    _insert(model, (*keys, value), len(keys), vendor.add_on_conflict, rows)


def _insert(
    model: type[models.Model],
    names: Sequence[str],
    number_of_keys: int,
    on_conflict: Callable[[str, Sequence[str], Sequence[str]], str],
    rows: Iterable[Any],
) -> None:
    """Inserts rows, or changes those that exist as the end of the statement says, which
    `on_conflict` returns.

    `names` are those of the fields, those of the key first. Of rows with equal keys only the last
    one is written.
    """
    keys_of_row = itemgetter(slice(number_of_keys))
    # Sorted, so that two flushers lock rows in the same order and cannot deadlock.
    row_by_keys = {keys_of_row(row): row for row in sorted(rows, key=keys_of_row)}
    different_rows = list(row_by_keys.values())
    if not different_rows or absent.is_absent(model):
        return
    connection = of(model)
    quote = connection.ops.quote_name
    table = quote(model._meta.db_table)
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    columns = [quote(field.column) for field in fields]
    insert = f"INSERT INTO {table} ({', '.join(columns)})"
    conflict = on_conflict(table, columns[:number_of_keys], columns[number_of_keys:])
    if vendors.vendor_of(connection).has_arrays:
        types = ", ".join(f"%s::{field.rel_db_type(connection)}[]" for field in fields)
        sql = f"{insert} SELECT * FROM unnest({types}) {conflict}"
        arrays = [array(column) for column in zip(*different_rows, strict=True)]
        write = partial(_execute, connection, sql, arrays)
    else:
        sql = f"{insert} VALUES ({', '.join('%s' for _ in fields)}) {conflict}"
        parameters = _adapted(connection, fields, different_rows)
        write = partial(_execute_many, connection, sql, parameters)
    retried(connection, write)


def replace(
    model: type[models.Model], keys: Sequence[str], values: Sequence[str], *, rows: Sequence[Any]
) -> None:
    """Inserts rows. If a row with the same keys exists, replaces its values, even by lower ones.

    `keys` and `values` are the names of fields, `rows` are instances of the model.
    """
    if absent.is_absent(model):
        return
    connection = of(model)
    unique_fields: Sequence[str] | None = keys
    if not connection.features.supports_update_conflicts_with_target:
        # MySQL knows by itself which columns are unique, and Django refuses to be given them.
        unique_fields = None
    every_row(model, using=connection.alias).bulk_create(
        rows,
        update_conflicts=True,
        update_fields=values,
        unique_fields=unique_fields,
    )


def locked(
    model: type[models.Model],
    primary_keys: Collection[Any],
    new_row: Callable[[Any], models.Model],
) -> "models.QuerySet[Any]":
    """Inserts a row for each of the primary keys that has none. Returns a queryset of all rows with
    these keys, in their order, which locks them.

    `new_row` returns the row to insert for a key. The caller has to open a transaction. Only rows
    that exist can be locked, so the missing ones are inserted first. The order keeps two callers
    from waiting for each other.
    """
    existing_rows = rows(model).filter(pk__in=primary_keys)
    existing = set(existing_rows.values_list("pk", flat=True))
    missing = [new_row(key) for key in sorted(primary_keys) if key not in existing]
    rows(model).bulk_create(missing, ignore_conflicts=True)
    return existing_rows.order_by("pk").select_for_update()


def in_portions(all_rows: "models.QuerySet[Any]", column: str, size: int) -> Iterator[list[Any]]:
    """Yields the rows in lists of that size, by a column whose values are all different.

    Each list is a query of its own, so the rows may be changed or deleted meanwhile.
    """
    in_order = all_rows.order_by(column)
    portion = list(in_order[:size])
    while portion:
        yield portion
        following = {f"{column}__gt": getattr(portion[-1], column)}
        portion = list(in_order.filter(**following)[:size])


def execute_many(model: type[models.Model], sql: str, parameters: Sequence[Sequence[Any]]) -> None:
    """Executes a statement on the model's table for each of the parameters, in one transaction."""
    if parameters and not absent.is_absent(model):
        connection = of(model)
        retried(connection, partial(_execute_many, connection, sql, parameters))


def _execute(connection: BaseDatabaseWrapper, sql: str, parameters: Sequence[Any]) -> None:
    """Executes one statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)


def _execute_many(
    connection: BaseDatabaseWrapper, sql: str, parameters: Sequence[Sequence[Any]]
) -> None:
    """Executes the statement once for each of the parameters, in one transaction."""
    # Without a transaction SQLite makes one of each row, and waits for the disk and for other
    # writers each time.
    with own_transaction(connection), connection.cursor() as cursor:
        cursor.executemany(sql, parameters)


def _adapted(
    connection: BaseDatabaseWrapper, fields: Sequence[Any], rows: Iterable[Sequence[Any]]
) -> list[list[Any]]:
    """Returns the rows with their values converted to what the database stores."""
    adapters = [partial(field.get_db_prep_value, connection=connection) for field in fields]
    return [[adapt(value) for adapt, value in zip(adapters, row, strict=True)] for row in rows]
