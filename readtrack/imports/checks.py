"""Checks of imports."""

from django.core import checks
from django.db import router

from readtrack.imports.models import Import
from readtrack.imports.options import import_problems
from readtrack.numbers.models import History


def check_setting() -> list[checks.CheckMessage]:
    """Checks that IMPORTS can be used."""
    return [
        checks.Error(
            f"READTRACK['IMPORTS'] cannot be used: {problem}.",
            hint=(
                "Give it 'views': a dict with a function, 'app.Model', or ('app.Model', 'URL"
                " argument', 'field') for the name of a view."
            ),
            id="readtrack.E096",
        )
        for problem in import_problems()
    ]


def check_database() -> list[checks.CheckMessage]:
    """Checks that one transaction can write how far an import has come, and the history."""
    alias = router.db_for_write(Import)
    alias_of_history = router.db_for_write(History)
    if alias == alias_of_history:
        return []
    return [
        checks.Error(
            f"DATABASE_ROUTERS keeps imports in {alias!r} and history in {alias_of_history!r}, so"
            " an import that is killed may add views to history twice.",
            hint="Keep the apps 'readtrack' and 'readtrack_imports' in one database.",
            id="readtrack.E097",
        )
    ]
