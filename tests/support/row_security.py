"""Row-level security of PostgreSQL on a model's table, seen by a role that is neither its owner nor a
superuser.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.db.models import Model


@contextmanager
def row_security(model: type[Model], *, shown: str, changed: str = "true") -> Iterator[str]:
    """Makes the connection one of a role for which two policies hold: it sees the rows for which
    `shown` is true, and may change those for which `changed` is true. Returns the role's name.
    """
    table = model._meta.db_table
    role = f"{connection.settings_dict['NAME']}_role"  # roles belong to all databases of the server
    _execute(
        f"CREATE ROLE {role}",
        f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}",
        f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}",
        f"GRANT CREATE ON SCHEMA public TO {role}",  # flushes add partitions of the history
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY shown ON {table} FOR SELECT USING ({shown})",
        f"CREATE POLICY changed ON {table} FOR UPDATE USING ({changed})",
        f"SET ROLE {role}",
    )
    try:
        yield role
    finally:
        _execute(
            "RESET ROLE",
            f"DROP POLICY shown ON {table}",
            f"DROP POLICY changed ON {table}",
            f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",
            f"DROP OWNED BY {role}",
            f"DROP ROLE {role}",
        )


@contextmanager
def all_rows(role: str) -> Iterator[None]:
    """Lets the connection see everything for a while, as a superuser does."""
    _execute("RESET ROLE")
    try:
        yield
    finally:
        _execute(f"SET ROLE {role}")


def _execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
