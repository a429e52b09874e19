"""`manage.py readtrack convert-reads`"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from readtrack import conversion, readers
from readtrack.store.connection import RedisError

help = "carry read state over to another READ_STATE or READERS"  # noqa: A001
description = """Carries read state over to today's READ_STATE and READERS.

After changing either setting, run this before the web servers restart, so that no dot lights up, and once
more when all have restarted, for what was read in between. It may run at any time and as often as one
likes: what was published meanwhile stays unread."""


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--state", choices=sorted(readers.FAMILIES), required=True, help="READ_STATE until now")
    parser.add_argument("--readers", choices=("id", "ordinal"), required=True, help="READERS until now")


def run(command: BaseCommand, *, verbosity: int, state: str, **options: Any) -> None:
    """Converts and prints how much."""
    hidden = None if verbosity else True  # None: hidden where the output is no terminal
    try:
        with tqdm(desc="Converting", unit=" reads", delay=1, disable=hidden, leave=False) as bar:
            done = conversion.convert(state, has_ordinals=options["readers"] == "ordinal", progress=bar.update)
    except RedisError as error:
        raise CommandError(f"Redis failed: {error}\nIs it running, and does CACHES point at it?") from error
    except conversion.SameStateError as error:
        raise CommandError(str(error)) from error
    if verbosity:
        command.stdout.write(f"{done.categories:,} categories, {done.reads:,} reads, {done.left_out:,} left out.")
