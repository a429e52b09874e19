"""`manage.py readtrack`: everything there is to do outside of a request. Each subcommand is a function."""

import json
from argparse import SUPPRESS, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping
from copy import copy
from datetime import datetime
from functools import partial
from importlib.resources import files
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error
from django.utils import timezone
from tqdm import tqdm

from readtrack.doctor.findings import failure
from readtrack.imports.logs import FIELDS
from readtrack.management.subcommands import actions
from readtrack.store.connection import RedisError, check_configuration

SUBCOMMANDS: Mapping[str, Callable[..., str | None]] = {
    "flush": actions.flush,
    "doctor": actions.doctor,
    "budget": actions.budget,
    "import": actions.import_,
    "reset": actions.reset,
    "repartition": actions.repartition,
    "start-as-read": actions.start_as_read,
    "erase": actions.erase,
    "daily-view": actions.daily_view,
}
TEXTS = files("readtrack.management.subcommands")


def _number(text: str, *, kind: type[float], highest: int) -> float:
    try:
        number = kind(text)
    except ValueError:
        number = -1
    if not 0 <= number <= highest:
        raise ArgumentTypeError(f"{text!r} is no number from 0 to {highest:,}")
    return number


def _field(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if name not in FIELDS or not path:
        raise ArgumentTypeError(f"{text!r} is not one of {', '.join(FIELDS)}, then = and its path in the JSON")
    return name, path


def _part(text: str) -> str:
    number, parts = map(int, text.split("/"))
    if not 1 <= number <= parts:
        raise ValueError(text)
    return f"{number}/{parts}" if parts > 1 else ""


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else timezone.make_aware(at)


TYPES: Mapping[str, Callable[[str], Any]] = {  # of the arguments in arguments.json
    "int": int,
    "count": partial(_number, kind=int, highest=10**12),
    "share": partial(_number, kind=float, highest=1),
    "field": _field,
    "part": _part,
    "time": _time,
}


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
