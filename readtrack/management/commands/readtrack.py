"""`manage.py readtrack`: everything there is to do outside of a request. Each subcommand is a module."""

from argparse import SUPPRESS, RawDescriptionHelpFormatter
from copy import copy
from functools import partial
from importlib.resources import files
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error
from tqdm import tqdm

from readtrack.doctor.findings import failure
from readtrack.management.subcommands import (
    budget,
    daily_view,
    doctor,
    erase,
    flush,
    import_,
    repartition,
    reset,
    start_as_read,
)
from readtrack.store.connection import RedisError, check_configuration

SUBCOMMANDS = {
    module.__name__.rpartition(".")[2].strip("_").replace("_", "-"): module
    for module in (flush, doctor, budget, import_, reset, repartition, start_as_read, erase, daily_view)
}


class Command(BaseCommand):
    """One subcommand for each thing to do, with a --help of its own."""

    help = "Flush, examine, import, reset, erase or show counts and read state. `readtrack COMMAND --help` tells more."

    def add_arguments(self, parser: CommandParser) -> None:
        common = [copy(action) for action in parser._actions if action.dest != "help"]
        for action in common:
            action.default, action.help = SUPPRESS, SUPPRESS  # a default would undo an option before the subcommand
        subparsers = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")
        for name, module in SUBCOMMANDS.items():
            text = files("readtrack.management.subcommands").joinpath("help", f"{name}.txt").read_text(encoding="utf-8")
            subparser = subparsers.add_parser(name, help=text.partition(".")[0], description=text)
            subparser.formatter_class = RawDescriptionHelpFormatter
            for argument, meaning in module.arguments.items():
                subparser.add_argument(argument, **meaning)
            for action in common:
                subparser._add_action(action)

    def handle(self, *args: Any, subcommand: str, **options: Any) -> None:
        module = SUBCOMMANDS[subcommand]
        # Hidden for the first second, with verbosity 0, and where the output is no terminal.
        bar = partial(tqdm, delay=1, leave=False, disable=None if options["verbosity"] else True)
        try:
            if module is not doctor:  # which reports that among its findings
                check_configuration()
            module.run(self, bar=bar, **options)
        except (RedisError, Error) as error:
            finding = failure(error)
            lines = (finding.message, finding.hint, getattr(module, "after_failure", ""))
            raise CommandError("\n".join(filter(None, lines))) from error
