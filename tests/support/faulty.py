"""Rows and tables that a database refuses to write or to read."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections
from django.db.models import Model

REFUSALS = {
    "sqlite": (
        "CREATE TRIGGER refuse BEFORE UPDATE ON {table} WHEN {condition}"
        " BEGIN SELECT RAISE(ABORT, 'no more'); END",
        "DROP TRIGGER refuse",
    ),
    "postgresql": (
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql"
        " AS $$ BEGIN RAISE EXCEPTION 'no more'; END $$;"
        " CREATE TRIGGER refuse BEFORE UPDATE ON {table} FOR EACH ROW WHEN ({condition})"
        " EXECUTE FUNCTION refuse()",
        "DROP FUNCTION refuse CASCADE",
    ),
    "mysql": (
        "CREATE TRIGGER refuse BEFORE UPDATE ON {table} FOR EACH ROW IF {condition} THEN"
        " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no more'; END IF",
        "DROP TRIGGER refuse",
    ),
}


@contextmanager
def refused(model: type[Model], condition: str, *, alias: str = "default") -> Iterator[None]:
    """Lets the database refuse an UPDATE of rows for which the condition on OLD or NEW is true."""
    connection = connections[alias]
    begin, end = REFUSALS[connection.vendor]
    _execute(alias, begin.format(table=model._meta.db_table, condition=condition))
    try:
        yield
    finally:
        _execute(alias, end)


@contextmanager
def missing(model: type[Model], *, alias: str = "default") -> Iterator[None]:
    """Takes the model's table away."""
    table = model._meta.db_table
    _execute(alias, f"ALTER TABLE {table} RENAME TO away")
    try:
        yield
    finally:
        _execute(alias, f"ALTER TABLE away RENAME TO {table}")


@contextmanager
def counted_statements(alias: str = "default") -> Iterator[list[str]]:
    """Returns a list that the statements go into which are sent meanwhile."""
    statements: list[str] = []

    def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        statements.append(sql)
        return execute(sql, parameters, many, context)

    with connections[alias].execute_wrapper(note):
        yield statements


def _execute(alias: str, statement: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute(statement)
