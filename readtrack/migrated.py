"""The app's migrations: those that this version brings, and those that a database has had."""

import re
from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from readtrack.conf import cached_setting

NUMBERED = re.compile(r"\d{4}_")  # the beginning of a name
# In the name of a migration after which older versions cannot work: `0007_layout2_drop_names`.
LAYOUT = re.compile(r"\d{4}_layout(?P<layout>\d{1,4})_")


def own() -> list[str]:
    """Returns the names of the app's migrations in this version, or in the place that the site gave
    them by MIGRATION_MODULES. There are none if the site has switched them off.
    """
    path, _ = MigrationLoader.migrations_module("readtrack")
    if path is None:
        return []
    return [module.name for module in iter_modules(import_module(path).__path__)]


def applied(alias: str, *, containing: str = "") -> list[str]:
    """Returns the names of the app's migrations that the database has had, those of newer versions
    among them; only names that contain that text. Raises django.db.Error.
    """
    if not _has_records(alias):
        return []
    rows = MigrationRecorder.Migration.objects.using(alias)
    rows = rows.filter(app="readtrack", name__contains=containing)
    return list(rows.values_list("name", flat=True))


def apps_with_migrations(alias: str) -> set[str]:
    """Returns the labels of all apps of which the database has had a migration. Raises
    django.db.Error.
    """
    if not _has_records(alias):
        return set()
    rows = MigrationRecorder.Migration.objects.using(alias)
    return set(rows.values_list("app", flat=True).distinct())


@cached_setting("DATABASES", "DATABASE_ROUTERS", "MIGRATION_MODULES")
def _has_records(alias: str) -> bool:
    """Returns True if the database has the table of migrations; a site's tests may do without."""
    table = MigrationRecorder.Migration._meta.db_table
    return table in connections[alias].introspection.table_names()


def newest(names: Iterable[str]) -> str:
    """Returns the name with the highest number; "" without any."""
    return max(filter(NUMBERED.match, names), default="")


def layout_of(names: Iterable[str]) -> int:
    """Returns the layout of the tables after the migrations with these names: a number, which rises
    when older versions cannot work with the tables any more. Names of such migrations have it.
    """
    matches = [match for match in map(LAYOUT.match, names) if match]
    return max((int(match["layout"]) for match in matches), default=1)
