"""`manage.py readtrack flush`."""

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from readtrack import renames, tracker
from readtrack.conf import conf
from readtrack.flush import run
from readtrack.management.subcommands.base import Subcommand, progress_bar

# Of a FlushRun, with what is printed behind the number.
FIGURES = {
    "read": "counts read",
    "written": "rows written",
    "settled": "counters that began anew in Redis, and go on from SQL's count",
    "lifted": "counters raised to SQL's count, which was higher",
    "orphans": "counts of deleted rows",
    "locked": "rows that another transaction holds; the next flush writes them",
    "failed": "rows or tables not stored",
}


def part(text: str) -> str:
    """Returns the part of the partitions in an argument, such as `2/4`; "" for all partitions.

    Raises ArgumentTypeError for other texts.
    """
    try:
        number, number_of_parts = map(int, text.split("/"))
    except ValueError:
        number = 0
        number_of_parts = 0
    if not 1 <= number <= number_of_parts:
        raise ArgumentTypeError(f"invalid 'part' value: {text!r}")
    return f"{number}/{number_of_parts}" if number_of_parts > 1 else ""


class Flush(Subcommand):
    """Writes counts from Redis into the database."""

    name = "flush"
    help = """\
Writes the live counts from Redis into the database. Run it at any time, even beside other flushes:
counts only rise.

Celery beat does it by the tasks readtrack.flush_changed and readtrack.flush_views. Without Celery, use
the subcommand schedule, or cron:

  * * * * *  manage.py readtrack flush --changed -v 0
  0 * * * *  manage.py readtrack flush -v 0

With several PARTITIONS, some can be flushed by one process and some by another, --partition 1/4 to --partition 4/4.

It also brings the trending lists up to date.

It prints what it did, a number on each line.

Exit status: 0, or 1 if the database refused a row or a model. All others are stored then, and the errors are named.
"""
    needs_known_layout = False  # the flush itself refuses, and is recorded

    def add_arguments(self, parser: CommandParser) -> None:
        extent = parser.add_mutually_exclusive_group()
        extent.add_argument(
            "--changed",
            action="store_true",
            help="look only at what was viewed since the last flush",
        )
        extent.add_argument(
            "--full",
            action="store_true",
            help="look at all counts, as it does without --changed, too",
        )
        parser.add_argument(
            "--partition",
            type=part,
            metavar="NUMBER/PARTS",
            default="1/1",
            help="flush some partitions: with 2/4 every fourth, from the second on",
        )

    def handle(
        self,
        *,
        command: BaseCommand,
        changed: bool,
        partition: str,
        verbosity: int,
        **options: Any,
    ) -> str:
        if partition:
            _, _, number_of_parts = partition.partition("/")
            if int(number_of_parts) > conf.PARTITIONS:
                raise CommandError(
                    f"READTRACK['PARTITIONS'] is {conf.PARTITIONS},"
                    f" so there is no part {partition}."
                )
        renames.follow(has_late=not changed)
        try:
            tracker.resend()
        finally:  # a publication that cannot be sent does not keep counts from SQL
            with progress_bar("Flushing", unit=" totals", verbosity=verbosity) as bar:
                flush_run = run.flush(only_changed=changed, part=partition, progress=bar.update)
        tracker.refresh_trending()
        seconds = flush_run.took.total_seconds() if flush_run.took else 0
        lines = [f"{getattr(flush_run, name):>9,} {text}" for name, text in FIGURES.items()]
        lines.append(f"{seconds:>9.2f} seconds")
        if flush_run.faults:
            if verbosity:
                command.stdout.write("\n".join(lines))
            raise CommandError(f"Not stored, unlike all others:\n{flush_run.faults}")
        return "\n".join(lines)
