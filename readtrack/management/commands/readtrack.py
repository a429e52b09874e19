"""`manage.py readtrack`: what there is to do outside a request. Each word is a module of `management.words`."""

from argparse import RawDescriptionHelpFormatter
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from readtrack.management.words import budget, convert_reads, doctor, flush, forget, import_

WORDS = {
    "flush": flush,
    "doctor": doctor,
    "budget": budget,
    "import": import_,
    "forget": forget,
    "convert-reads": convert_reads,
}


class Command(BaseCommand):
    """One word for each thing it does; each has a --help of its own."""

    help = "Work on view counts and read state."

    def add_arguments(self, parser: CommandParser) -> None:
        words = parser.add_subparsers(dest="word", required=True, metavar="COMMAND")
        for name, word in WORDS.items():
            word.add_arguments(
                words.add_parser(
                    name,
                    help=word.help,
                    description=word.description,
                    formatter_class=RawDescriptionHelpFormatter,
                )
            )

    def handle(self, *args: Any, word: str, **options: Any) -> None:
        WORDS[word].run(self, **options)
