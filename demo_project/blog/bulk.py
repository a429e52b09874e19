"""Many rows at once: COPY takes PostgreSQL a fraction of the time of INSERTs of model instances."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from readtrack.sql import databases

ESCAPED = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
#: How COPY reads a value of each type. Other values are read as Python writes them.
TEXTS: Mapping[type, Callable[[Any], str]] = {
    str: lambda value: value.translate(ESCAPED),
    bytes: lambda value: rf"\\x{value.hex()}",
}
LINES_AT_ONCE = 2_000


def insert(model: type[models.Model], fields: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Inserts rows of texts, bytes, numbers and dates, which have the values of these fields."""
    connection = databases.of(model)
    quote = connection.ops.quote_name
    table = quote(model._meta.db_table)
    found: list[Any] = [model._meta.get_field(name) for name in fields]
    columns = [quote(field.column) for field in found]
    if connection.vendor == "postgresql":
        _copy(connection, f"COPY {table} ({', '.join(columns)}) FROM STDIN", rows)
        return
    places = ", ".join("%s" for _ in columns)
    statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"
    databases.execute_many(model, statement, [_adapted(row, connection) for row in rows])


def store_uncompressed(model: type[models.Model], field: str) -> None:
    """Lets PostgreSQL store what the field gets from now on as it is.

    To compress a year of sketches takes it three seconds, and the demo's disk has room.
    """
    connection = databases.of(model)
    if connection.vendor != "postgresql":
        return
    quote = connection.ops.quote_name
    found: Any = model._meta.get_field(field)
    with connection.cursor() as cursor:
        cursor.execute(
            f"ALTER TABLE {quote(model._meta.db_table)}"
            f" ALTER COLUMN {quote(found.column)} SET STORAGE EXTERNAL"
        )


def _copy(connection: BaseDatabaseWrapper, statement: str, rows: Iterable[Sequence[Any]]) -> None:
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        lines = []
        for row in rows:
            lines.append("\t".join([TEXTS.get(type(value), str)(value) for value in row]))
            if len(lines) == LINES_AT_ONCE:
                copy.write("\n".join([*lines, ""]))
                lines.clear()
        copy.write("\n".join([*lines, ""]) if lines else "")


def _adapted(row: Sequence[Any], connection: BaseDatabaseWrapper) -> list[Any]:
    """Returns the row with its dates as the database stores them."""
    adapt = connection.ops.adapt_datefield_value
    return [adapt(value) if hasattr(value, "isoformat") else value for value in row]
