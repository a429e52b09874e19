"""`manage.py readtrack`: what there is to do outside a request. Each word is a module of `management.words`."""

from argparse import SUPPRESS, Action, RawDescriptionHelpFormatter
from collections.abc import Iterable
from copy import copy
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from readtrack.management.errors import check_settings
from readtrack.management.subcommands import budget, doctor, flush, forget, import_

WORDS = {
    "flush": flush,
    "doctor": doctor,
    "budget": budget,
    "import": import_,
    "forget": forget,
}


class Command(BaseCommand):
    """One word for each thing it does; each has a --help of its own."""

    help = "Work on view counts and read state."

    def add_arguments(self, parser: CommandParser) -> None:
        common = [action for action in parser._actions if action.dest != "help"]
        words = parser.add_subparsers(dest="word", required=True, metavar="COMMAND")
        for name, word in WORDS.items():
            each = words.add_parser(
                name, help=word.help, description=word.description, formatter_class=RawDescriptionHelpFormatter
            )
            word.add_arguments(each)
            _add_common(each, common)

    def handle(self, *args: Any, word: str, **options: Any) -> None:
        if word != "doctor":  # which says it among its findings
            check_settings()
        WORDS[word].run(self, **options)


def _add_common(parser: CommandParser, actions: Iterable[Action]) -> None:
    """Lets Django's own options stand behind the word, too."""
    group = parser.add_argument_group("Django's own options")
    for action in map(copy, actions):
        action.default = SUPPRESS  # or it would undo what stands before the word
        group._add_action(action)
