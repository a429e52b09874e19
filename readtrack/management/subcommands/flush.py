"""`manage.py readtrack flush`"""

from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from readtrack import tracker
from readtrack.conf import conf
from readtrack.flush.run import flush

after_failure = "What was written stays. Flush again."

FIGURES = ("read", "written", "settled", "lifted", "orphans", "locked")


def _part(text: str) -> str:
    number, parts = map(int, text.split("/"))
    if not 1 <= number <= parts:
        raise ValueError(text)
    return f"{number}/{parts}" if parts > 1 else ""


_part.__name__ = "part"  # in the message of argparse
arguments: dict[str, dict[str, Any]] = {
    "--changed": {"action": "store_true", "help": "look only at what was viewed since the last flush"},
    "--partition": {
        "metavar": "NUMBER/PARTS",
        "type": _part,
        "default": "1/1",
        "help": "flush some partitions: with 2/4 every fourth, from the second on",
    },
}


def run(
    command: BaseCommand, *, bar: Callable[..., Any], verbosity: int, changed: bool, partition: str, **options: Any
) -> None:
    """Flushes, and prints how much was done."""
    if partition and int(partition.partition("/")[2]) > conf.PARTITIONS:
        raise CommandError(f"READTRACK['PARTITIONS'] is {conf.PARTITIONS}, so there is no part {partition}.")
    tracker.resend()
    with bar(desc="Flushing", unit=" totals") as shown:
        done = flush(only_changed=changed, part=partition, progress=shown.update)
    if changed:
        tracker.refresh_trending()
    if not verbosity:
        return
    for name in FIGURES:
        command.stdout.write(f"{name:8} {getattr(done, name):>12,}")
    command.stdout.write(f"{'seconds':8} {done.took.total_seconds() if done.took else 0:>12.2f}")
