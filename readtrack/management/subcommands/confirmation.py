"""Asking before a subcommand changes what nobody can bring back."""

import sys
from collections.abc import Callable

from django.core.management.base import CommandError, CommandParser


def add_arguments(parser: CommandParser) -> None:
    """Adds --dry-run and, under both of Django's names, --no-input."""
    parser.add_argument(
        "--dry-run", action="store_true", help="only print what would change, and change nothing"
    )
    parser.add_argument(
        "--noinput",
        "--no-input",
        action="store_false",
        dest="interactive",
        help="do not ask, also on a terminal",
    )


def confirm(consequences: Callable[[], str], *, interactive: bool) -> None:
    """Prints the consequences, and asks whether to go on, if the input is a terminal.

    Does nothing without a terminal, and unless `interactive`; then `consequences` is not called,
    because it may take long. Raises CommandError for any answer but "yes".
    """
    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    if not interactive or not is_terminal:
        return
    question = f"{consequences()}\n\nType 'yes' to go on, anything else to cancel: "
    try:
        answer = input(question)
    except (EOFError, KeyboardInterrupt):
        answer = ""
    if answer != "yes":
        raise CommandError("Cancelled. Nothing was changed.")
