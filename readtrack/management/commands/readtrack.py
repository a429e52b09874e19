"""`manage.py readtrack`: the work that is done outside of requests, by subcommands."""

from argparse import REMAINDER, SUPPRESS, Action, RawDescriptionHelpFormatter
from collections.abc import Mapping
from copy import copy
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error

from readtrack import parts, shipped
from readtrack.doctor.findings import failure
from readtrack.management.subcommands import (
    doctor,
    erase,
    flush,
    reset,
    schedule,
    show,
    start_as_read,
)
from readtrack.management.subcommands.base import Missing, Subcommand
from readtrack.sql import layouts
from readtrack.store import connection
from readtrack.store.flush_notes import NewerLayoutError

# In the order of --help. Those of parts follow.
SUBCOMMANDS: Mapping[str, Subcommand] = {
    subcommand.name: subcommand
    for subcommand in (
        flush.Flush(),
        schedule.Schedule(),
        doctor.Doctor(),
        show.Show(),
        reset.Reset(),
        start_as_read.StartAsRead(),
        erase.Erase(),
    )
}


class Command(BaseCommand):
    """Runs a subcommand. Each subcommand has a --help of its own."""

    help = (
        "Flush, examine, show, reset or erase counts and read state."
        " `readtrack COMMAND --help` tells more."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        common_options = _common_options(parser)
        subparsers = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")
        for name, subcommand in subcommands().items():
            if isinstance(subcommand, Missing):
                # Without `help` it is not in --help; without prefixes it takes any arguments.
                missing = subparsers.add_parser(name, add_help=False, prefix_chars="\0")
                missing.add_argument("ignored", nargs=REMAINDER)
                continue
            first_sentence, _, _ = subcommand.help.partition(".")
            subparser = subparsers.add_parser(
                name,
                help=first_sentence,
                description=subcommand.help,
                formatter_class=RawDescriptionHelpFormatter,
            )
            subcommand.add_arguments(subparser)
            for option in common_options:
                subparser._add_action(option)

    def handle(self, *args: Any, subcommand: str, verbosity: int, **options: Any) -> str | None:
        chosen = subcommands()[subcommand]
        try:
            if chosen.needs_redis:
                _check_redis(needs_known_layout=chosen.needs_known_layout)
            text = chosen.handle(command=self, verbosity=verbosity, **options)
        except NewerLayoutError as error:
            finding = failure(error)
            raise CommandError(f"{finding.message}\n{finding.hint}") from error
        except (connection.RedisError, Error) as error:
            finding = failure(error)
            raise CommandError(
                f"{finding.message}\n{finding.hint}\nWhat was done stays. Run it again."
            ) from error
        is_quiet = verbosity == 0 and not options.get("as_json")
        if is_quiet:
            return None
        return text


def subcommands() -> dict[str, Subcommand]:
    """Returns the subcommands of the core and of the installed parts, by name.

    That of a part which comes with readtrack and is not installed says so.
    """
    by_name = dict(SUBCOMMANDS)
    for part in parts.installed():
        by_name.update({subcommand.name: subcommand for subcommand in part.subcommands()})
    for part_name, shipped_part in shipped.PARTS.items():
        for name in shipped_part.subcommands:
            by_name.setdefault(name, Missing(name, part_name))
    return by_name


def _check_redis(*, needs_known_layout: bool) -> None:
    """Raises UnusableError without a usable cache, and NewerLayoutError if keys or tables have a
    newer layout and `needs_known_layout` is true. Also raises redis.RedisError and django.db.Error.
    """
    problem = connection.misconfiguration()
    if problem:
        raise connection.UnusableError(problem)
    if needs_known_layout:
        layouts.check()


def _common_options(parser: CommandParser) -> list[Action]:
    """Returns Django's own options, such as --verbosity, for subcommands.

    They are hidden from --help, and have no defaults, because a default would replace the value of
    an option that stands before the subcommand.
    """
    options = []
    for action in parser._actions:
        if action.dest == "help":
            continue
        option = copy(action)
        option.default = SUPPRESS
        option.help = SUPPRESS
        options.append(option)
    return options
