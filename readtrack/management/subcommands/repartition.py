"""`manage.py readtrack repartition`"""

from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from readtrack.conf import conf
from readtrack.doctor.findings import counted
from readtrack.flush.run import flush
from readtrack.store import moving

after_failure = "Nothing is lost. Start again."
arguments: dict[str, dict[str, Any]] = {}


def run(command: BaseCommand, *, bar: Callable[..., Any], verbosity: int, **options: Any) -> None:
    """Flushes by the old number, moves what SQL does not store, and prints how much that was."""
    before, after = moving.known_layout() or conf.PARTITIONS, conf.PARTITIONS
    if after % before:
        raise CommandError(f"Redis has {before} partitions. Set READTRACK['PARTITIONS'] to a multiple of that.")
    if before != after:
        with moving.layout(before):
            done = flush()
        if done.locked:  # their views would be lost where a process of the new number has begun the total anew
            raise CommandError(f"{counted(done.locked, 'row')} locked by another transaction. Start again.")
    with bar(desc="Moving", unit=" keys") as shown:
        copied = moving.move(before, progress=shown.update)
    if verbosity:
        command.stdout.write(f"Moved {counted(copied, 'key')} from {before} to {counted(after, 'partition')}.")
