"""`manage.py readtrack flush`."""

from argparse import ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from readtrack import renames, tracker
from readtrack.flush import run
from readtrack.management.subcommands.base import Subcommand, progress_bar
from readtrack.store import keys

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


def share(text: str) -> str:
    """Returns the share of the partitions in an argument, such as `2/4`; "" for all partitions.

    Raises ArgumentTypeError for other texts.
    """
    try:
        number, number_of_shares = map(int, text.split("/"))
    except ValueError:
        number = 0
        number_of_shares = 0
    if not 1 <= number <= number_of_shares:
        raise ArgumentTypeError(f"invalid 'share' value: {text!r}")
    if number_of_shares == 1:
        return ""
    return f"{number}/{number_of_shares}"


class Flush(Subcommand):
    """Writes counts from Redis into the database."""

    name = "flush"
    help = """\
Writes the live counts from Redis into the database. Run it at any time, even beside other flushes:
counts only rise.

Celery beat and the subcommand schedule do it by the jobs flush-changed and flush-views. By cron:

  * * * * *  manage.py readtrack flush --changed -v 0
  0 * * * *  manage.py readtrack flush -v 0

With several partitions, some can be flushed by one process and some by another, --share 1/4 to
--share 4/4.

It also brings the trending lists up to date.

It prints what it did, a number on each line.

Exit status: 0, or 1 if the database refused a row or a model. All others are stored then, and the
errors are named.
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
            "--share",
            type=share,
            metavar="NUMBER/SHARES",
            default="1/1",
            help="flush some partitions: with 2/4 every fourth, from the second on",
        )

    def handle(
        self,
        *,
        command: BaseCommand,
        changed: bool,
        share: str,
        verbosity: int,
        **options: Any,
    ) -> str:
        if share:
            _, _, number_of_shares = share.partition("/")
            number_of_partitions = len(keys.tags())
            if int(number_of_shares) > number_of_partitions:
                raise CommandError(
                    f"The number of partitions is {number_of_partitions},"
                    f" so there is no share {share}."
                )
        renames.follow(again=not changed)
        try:
            tracker.resend()
        finally:  # a publication that cannot be sent does not keep counts from SQL
            with progress_bar("Flushing", unit=" totals", verbosity=verbosity) as bar:
                flush_run = run.flush(only_changed=changed, share=share, progress=bar.update)
        tracker.refresh_trending()
        lines = [f"{getattr(flush_run, name):>9,} {text}" for name, text in FIGURES.items()]
        took = flush_run.took or timedelta()
        lines.append(f"{took.total_seconds():>9.2f} seconds")
        if flush_run.faults:
            if verbosity:
                command.stdout.write("\n".join(lines))
            raise CommandError(f"Not stored, unlike all others:\n{flush_run.faults}")
        return "\n".join(lines)
