"""`manage.py readtrack note`."""

from argparse import ArgumentTypeError
from datetime import date
from typing import Any

from django.core.management.base import CommandError, CommandParser

from readtrack.management.subcommands.base import Subcommand
from readtrack.numbers import notes


class Note(Subcommand):
    """Adds a note to the charts."""

    name = "note"
    needs_redis = False
    help = """\
Adds a note to the charts of the dashboard, such as a deployment.

  manage.py readtrack note "deployed 1.2"
  manage.py readtrack note "newsletter sent" --day 2026-11-20

The same note twice on a day is one note.
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("text", help="the text of the note, 200 characters at most")
        parser.add_argument("--day", type=_day, help="the day of the note; today by default")

    def handle(self, *, text: str, day: date | None, **options: Any) -> str:
        try:
            is_new = notes.note(text, at=day)
        except ValueError as error:
            raise CommandError(str(error)) from error
        return "Added the note." if is_new else "The day has this note already."


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is no day such as 2026-11-20") from error
