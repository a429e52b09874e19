"""The check of the tables in SQL, which only `migrate` and `check --database` run."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db import Error, router

from readtrack import layouts, migrated
from readtrack.models import FlushRun


def check_tables(
    app_configs: Sequence[AppConfig] | None,
    *,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[checks.CheckMessage]:
    """Checks that this version knows the tables, if their database is among `databases`.

    Only warns: what would change the tables refuses by itself.
    """
    alias = router.db_for_write(FlushRun)
    if alias not in (databases or ()):
        return []
    try:
        layout = migrated.layout_of(migrated.applied(alias))
    except Error:  # the command that follows says what is wrong with the database
        return []
    if layout <= layouts.KNOWN:
        return []
    return [
        checks.Warning(
            f"SQL has tables of layout {layout}, which a newer version of readtrack made, and this"
            f" version knows layouts up to {layouts.KNOWN}.",
            hint="Upgrade readtrack here, or restore the database from before that upgrade.",
            id="readtrack.W080",
        )
    ]
