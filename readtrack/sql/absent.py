"""Tables of readtrack that the database lacks, because it was not migrated.

A flush that meets one begins again without it, so that the table costs what it would store, and
nothing else.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.db import connections, router
from django.db.models import Model

from readtrack import parts
from readtrack.sql import vendors

Tables = frozenset[type[Model]]

_left_out: ContextVar[Tables] = ContextVar("left_out", default=frozenset())


def is_absent(model: type[Model]) -> bool:
    """Returns True if the present work goes on without the model's table."""
    return model in _left_out.get()


@contextmanager
def leaving_out(tables: Tables) -> Iterator[None]:
    """Lets the work in the `with` block go on without these tables: it reads nothing from them, and
    writes nothing to them.
    """
    token = _left_out.set(tables)
    try:
        yield
    finally:
        _left_out.reset(token)


def is_newly_absent(error: Exception) -> bool:
    """Returns True if the error is that of a table of the app which is absent, and which the
    present work does not leave out.
    """
    return vendors.is_missing_table(error) and bool(absent_tables() - _left_out.get())


def absent_tables() -> Tables:
    """Returns the tables of the app that the databases lack. Makes a query for each database."""
    models_by_alias: defaultdict[str, list[type[Model]]] = defaultdict(list)
    for model in parts.models():
        models_by_alias[router.db_for_write(model)].append(model)
    absent: set[type[Model]] = set()
    for alias, models in models_by_alias.items():
        existing_names = {*connections[alias].introspection.table_names()}
        absent.update(model for model in models if model._meta.db_table not in existing_names)
    return frozenset(absent)
