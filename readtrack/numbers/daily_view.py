"""`manage.py readtrack daily-view`."""

from typing import Any

from django.core.management.base import CommandParser

from readtrack.management.subcommands.base import Subcommand
from readtrack.numbers.models import History
from readtrack.numbers.sql import sql_view
from readtrack.sql import databases


class DailyView(Subcommand):
    """Creates or drops the SQL view."""

    name = "daily-view"
    help = """\
Creates the SQL view readtrack_daily, for tools that read SQL: model, primary_key, day, views, visitors
and reads.

  manage.py readtrack daily-view
  manage.py readtrack daily-view --drop

Days are those of TIME_ZONE. Run it again after a change of that setting, and after an upgrade of readtrack, whose
migrations may need it dropped before.
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--drop", action="store_true", help="drop the view")

    def handle(self, *, drop: bool, **options: Any) -> str:
        connection = databases.of(History)
        if drop:
            sql_view.drop_view(connection)
            return f"Dropped the view {sql_view.VIEW}."
        sql_view.create_view(connection)
        return f"Created the view {sql_view.VIEW}."
