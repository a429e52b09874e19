"""`manage.py readtrack flush`"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error
from tqdm import tqdm

from readtrack import flush as flushing
from readtrack import tracker
from readtrack.store.connection import RedisError

SECONDS_BEFORE_BAR = 1  # a progress bar is for work that lasts

help = "write the live counts from Redis into the database"  # noqa: A001
description = """Writes the live counts from Redis into the database.

Safe at any time and beside any other flush, for counts only ever rise. Celery beat does the same with the
tasks readtrack.flush_changed and readtrack.flush_views; use this from cron where there is no Celery:
every minute with --changed, every hour without."""


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--changed", action="store_true", help="look only at what was viewed since the last flush")


def run(command: BaseCommand, *, verbosity: int, changed: bool, **options: Any) -> None:
    """Flushes and prints what was done."""
    hidden = None if verbosity else True  # None: hidden where the output is no terminal
    try:
        tracker.resend()
        with tqdm(desc="Flushing", unit=" totals", delay=SECONDS_BEFORE_BAR, disable=hidden, leave=False) as bar:
            done = flushing.flush(only_changed=changed, progress=bar.update)
    except RedisError as error:
        raise CommandError(f"Redis failed: {error}\nIs it running, and does CACHES point at it?") from error
    except Error as error:
        raise CommandError(f"The database failed: {error}\nWhat was written stays; flush again.") from error
    if not verbosity:
        return
    for name in ("read", "written", "settled", "lifted", "orphans"):
        command.stdout.write(f"{name:8} {getattr(done, name):>12,}")
    command.stdout.write(f"{'seconds':8} {done.took.total_seconds() if done.took else 0:>12.2f}")
