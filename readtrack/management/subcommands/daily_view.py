"""`manage.py readtrack daily-view`"""

from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand

from readtrack.models import History
from readtrack.sql import daily, databases

arguments = {"--drop": {"action": "store_true", "help": "drop the view"}}


def run(command: BaseCommand, *, bar: Callable[..., Any], drop: bool, verbosity: int, **options: Any) -> None:
    """Creates or drops the view, and says so."""
    change = daily.drop if drop else daily.create
    change(databases.of(History))
    if verbosity:
        command.stdout.write(f"{'Dropped' if drop else 'Created'} the view {daily.VIEW}.")
