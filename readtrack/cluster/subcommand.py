"""`manage.py readtrack repartition`."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from readtrack.cluster import repartitioning
from readtrack.cluster.dividing import divided_as_before
from readtrack.doctor.wording import counted
from readtrack.flush import run
from readtrack.management.subcommands import confirmation
from readtrack.management.subcommands.base import Subcommand, progress_bar
from readtrack.store import flush_notes, keys


class Repartition(Subcommand):
    """Moves keys to other partitions."""

    name = "repartition"
    help = """\
Moves the keys to their partitions after their number, in CLUSTER, was changed to a multiple of what it was.

Run it once no process has the old number any more. Until then flushes with the new number do nothing, and say so.

The number can only rise, so it cannot be undone. On a terminal the command says how many keys it will move, and asks;
--no-input does not ask, --dry-run only says it.
"""

    def add_arguments(self, parser: CommandParser) -> None:
        confirmation.add_arguments(parser)

    def handle(self, *, dry_run: bool, interactive: bool, verbosity: int, **options: Any) -> str:
        after = len(keys.tags())
        before = flush_notes.known_layout().partitions or after
        if after % before:
            raise CommandError(
                f"The number of partitions in Redis is {before}."
                " Set READTRACK['CLUSTER']['partitions'] to a multiple of that."
            )
        if dry_run:
            return _consequences(before)
        confirmation.confirm(lambda: _consequences(before), interactive=interactive)
        if before != after:
            _flush(before)
        with progress_bar("Moving", unit=" keys", verbosity=verbosity) as bar:
            copied = repartitioning.move(before, progress=bar.update)
        return f"Moved {counted(copied, 'key')} from {before} to {counted(after, 'partition')}."


def _consequences(before: int) -> str:
    """Returns what a move does, in numbers. `before` is the earlier number of partitions."""
    key_count = repartitioning.keys_to_move(before)
    return (
        f"This moves {counted(key_count, 'key')} from {before} to"
        f" {counted(len(keys.tags()), 'partition')}, and cannot be undone.\nWhat a process that still"
        f" has the number {before} counts from then on is lost, and so are dots that it lights."
    )


def _flush(before: int) -> None:
    """Writes all counts by the earlier number of partitions. Raises CommandError if any is left."""
    with divided_as_before(before):
        flush_run = run.flush(must_archive=True)
    # A locked row was not written. Its views would be lost if a process with the new number of
    # partitions has already begun the total anew.
    if flush_run.faults:
        raise CommandError(f"Not everything was stored. Start again.\n{flush_run.faults}")
    if flush_run.locked:
        raise CommandError(
            f"{counted(flush_run.locked, 'row')} locked by another transaction. Start again."
        )
