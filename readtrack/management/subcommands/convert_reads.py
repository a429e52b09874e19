"""`manage.py readtrack convert-reads`"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext, ngettext

from readtrack.hits import readers
from readtrack.management.errors import redis_failed
from readtrack.management.progress import bar
from readtrack.numerals import exact
from readtrack.store.connection import RedisError
from readtrack.unread import conversion

help = "carry read state over to another READ_STATE or READERS"  # noqa: A001
description = """Carries read state over to today's READ_STATE and READERS.

After changing either setting, run this before the web servers restart, so that no dot lights up, and once
more when all have restarted, for what was read in between. It may run at any time and as often as one
likes: what was published meanwhile stays unread."""


def add_arguments(parser: CommandParser) -> None:
    """What the two settings were."""
    parser.add_argument("--state", choices=sorted(readers.FAMILIES), required=True, help="READ_STATE until now")
    parser.add_argument("--readers", choices=("id", "ordinal"), required=True, help="READERS until now")


def run(command: BaseCommand, *, verbosity: int, state: str, **options: Any) -> None:
    """Converts and prints how much."""
    try:
        with bar(gettext("Converting"), gettext(" reads"), verbosity=verbosity) as shown:
            done = conversion.convert(state, has_ordinals=options["readers"] == "ordinal", progress=shown.update)
    except RedisError as error:
        raise redis_failed(error) from error
    except conversion.SameStateError as error:
        raise CommandError(str(error)) from error
    if verbosity:
        command.stdout.write(_report(done))


def _report(done: conversion.Converted) -> str:
    figures = (
        (ngettext("%(count)s category", "%(count)s categories", done.categories), done.categories),
        (ngettext("%(count)s read", "%(count)s reads", done.reads), done.reads),
        (ngettext("%(count)s left out", "%(count)s left out", done.left_out), done.left_out),
    )
    return ", ".join(words % {"count": exact(count)} for words, count in figures) + "."
