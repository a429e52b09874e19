"""`manage.py readtrack flush`"""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import Error
from django.utils.formats import number_format
from django.utils.translation import gettext

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.management.errors import database_failed, redis_failed
from readtrack.management.progress import bar
from readtrack.models import FlushRun
from readtrack.numerals import exact
from readtrack.store.connection import RedisError

FIGURES = ("read", "written", "settled", "lifted", "orphans")

help = "write the live counts from Redis into the database"  # noqa: A001
description = """Writes the live counts from Redis into the database.

Safe at any time and beside any other flush, for counts only ever rise. Celery beat does the same with the
tasks readtrack.flush_changed and readtrack.flush_views; use this from cron where there is no Celery:
every minute with --changed, every hour without."""


def add_arguments(parser: CommandParser) -> None:
    """How much to look at."""
    parser.add_argument("--changed", action="store_true", help="look only at what was viewed since the last flush")


def run(command: BaseCommand, *, verbosity: int, changed: bool, **options: Any) -> None:
    """Flushes and prints what was done."""
    try:
        tracker.resend()
        with bar(gettext("Flushing"), gettext(" totals"), verbosity=verbosity) as shown:
            done = flush(only_changed=changed, progress=shown.update)
    except RedisError as error:
        raise redis_failed(error) from error
    except Error as error:
        raise database_failed(error, gettext("What was written stays; flush again.")) from error
    if not verbosity:
        return
    model: Any = FlushRun
    lines = {str(model._meta.get_field(name).verbose_name): exact(getattr(done, name)) for name in FIGURES}
    lines[gettext("seconds")] = number_format(done.took.total_seconds() if done.took else 0, 2)
    for name, figure in lines.items():
        command.stdout.write(f"{name:8} {figure:>12}")
