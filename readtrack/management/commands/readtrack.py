"""`manage.py readtrack`: everything there is to do outside of a request. Each subcommand is a module."""

import json
from argparse import SUPPRESS, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from importlib.resources import files
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error
from tqdm import tqdm

from readtrack.doctor.findings import failure
from readtrack.management.subcommands import budget, doctor, import_, upkeep
from readtrack.management.subcommands.arguments import TYPES
from readtrack.store.connection import RedisError, check_configuration

SUBCOMMANDS: Mapping[str, Callable[..., str | None]] = {
    "flush": upkeep.flush,
    "doctor": doctor.run,
    "budget": budget.run,
    "import": import_.run,
    "reset": upkeep.reset,
    "repartition": upkeep.repartition,
    "start-as-read": upkeep.start_as_read,
    "erase": upkeep.erase,
    "daily-view": upkeep.daily_view,
}
TEXTS = files("readtrack.management.subcommands")


class Command(BaseCommand):
    """One subcommand for each thing to do, with a --help of its own."""

    help = "Flush, examine, import, reset, erase or show counts and read state. `readtrack COMMAND --help` tells more."

    def add_arguments(self, parser: CommandParser) -> None:
        common = [copy(action) for action in parser._actions if action.dest != "help"]
        for action in common:
            action.default, action.help = SUPPRESS, SUPPRESS  # a default would undo an option before the subcommand
        subparsers = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")
        arguments = json.loads(TEXTS.joinpath("arguments.json").read_text(encoding="utf-8"))
        for name in SUBCOMMANDS:
            text = TEXTS.joinpath("help", f"{name}.txt").read_text(encoding="utf-8")
            subparser = subparsers.add_parser(name, help=text.partition(".")[0], description=text)
            subparser.formatter_class = RawDescriptionHelpFormatter
            for kind, parse in TYPES.items():
                subparser.register("type", kind, parse)
            for argument, meaning in arguments[name].items():
                subparser.add_argument(argument, **meaning)
            for action in common:
                subparser._add_action(action)

    def handle(self, *args: Any, subcommand: str, verbosity: int, **options: Any) -> str | None:
        # Hidden for the first second, with verbosity 0, and where the output is no terminal.
        bar = partial(tqdm, delay=1, leave=False, disable=None if verbosity else True)
        try:
            if subcommand != "doctor":  # which reports that among its findings
                check_configuration()
            said = SUBCOMMANDS[subcommand](command=self, bar=bar, verbosity=verbosity, **options)
        except (RedisError, Error) as error:
            finding = failure(error)
            raise CommandError(f"{finding.message}\n{finding.hint}\nWhat was done stays. Run it again.") from error
        return said if verbosity or options.get("as_json") else None
