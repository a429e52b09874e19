"""Empties the databases after a test that commits, by DELETE in place of Django's `flush`.

`flush` truncates every table, which makes new files, and then stores content types and permissions
anew: 0.1 s a test.
"""

from functools import cache
from typing import Any

from django.db import connections, transaction
from django.test import TransactionTestCase

KEPT = {
    "auth_permission",
    "django_content_type",
    "django_migrations",
}  # made by migrations, and the same in every test

_Case: Any = TransactionTestCase  # whose stubs leave out what is not public
_flush = _Case._fixture_teardown


def _empty(case: Any) -> None:
    names = case._databases_names(include_mirrors=False)
    if any(connections[alias].vendor == "mysql" for alias in names):
        _flush(case)  # because MySQL checks foreign keys at each statement
        return
    for alias in names:
        with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
            tables = [f'"{table}"' for table in _tables(alias)]
            cursor.execute(
                " UNION ALL ".join(
                    f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in tables
                )
            )
            for (name,) in cursor.fetchall():
                cursor.execute(f"DELETE FROM {name}")


@cache
def _tables(alias: str) -> list[str]:
    return sorted({*connections[alias].introspection.django_table_names(only_existing=True)} - KEPT)


_Case._fixture_teardown = _empty
