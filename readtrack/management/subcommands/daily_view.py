"""`manage.py readtrack daily-view`"""

from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand

from readtrack.models import History
from readtrack.sql import daily, databases

description = f"""Creates the SQL view {daily.VIEW}, for tools that read SQL: model, primary_key, day, views, visitors
and reads.

  manage.py readtrack daily-view
  manage.py readtrack daily-view --drop

Days are those of TIME_ZONE. Run it again after a change of that setting, and after an upgrade of readtrack, whose
migrations may need it dropped before."""

arguments = {"--drop": {"action": "store_true", "help": "drop the view"}}


def run(command: BaseCommand, *, bar: Callable[..., Any], drop: bool, verbosity: int, **options: Any) -> None:
    """Creates or drops the view, and says so."""
    change = daily.drop if drop else daily.create
    change(databases.of(History))
    if verbosity:
        command.stdout.write(f"{'Dropped' if drop else 'Created'} the view {daily.VIEW}.")
