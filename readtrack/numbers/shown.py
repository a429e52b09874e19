"""What `manage.py readtrack show` prints of an object: the numbers of history and of reading."""

from collections.abc import Iterator

from django.db.models import Model

from readtrack.hits.stages import STAGES
from readtrack.management.subcommands.base import Line
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.sql import hashes, history
from readtrack.subjects import has_read_state, is_counted, subject_column, subject_of


def lines(obj: Model, *, has_redis: bool) -> Iterator[Line]:
    """Yields the lines about the object."""
    if is_counted(type(obj)):
        yield from _lines_of_counts(obj, has_redis=has_redis)
    if has_read_state(type(obj)) and not has_redis:
        column = subject_column(subject_of(obj))
        readers = history.newest_readers([column])[column]
        yield Line("readers", f"{readers:,}", "SQL, by the last full flush")


def _lines_of_counts(obj: Model, *, has_redis: bool) -> Iterator[Line]:
    """Yields the views of the last day, and how many views reached each stage."""
    subject = subject_of(obj)
    last_day = sum(point.views for point in numbers_reports.series(obj, hours=24))
    reading = numbers_reports.reading(obj)
    stored = hashes.breakdowns([("reading", subject)])["reading", subject]
    live = "Redis" if has_redis else "SQL"
    yield Line("views, last 24 hours", f"{last_day:,}", "SQL and Redis" if has_redis else "SQL")
    if not reading.seen:  # as on a site without the page's script
        return
    for stage in STAGES:
        yield Line(stage, f"{getattr(reading, stage):,}", live)
        yield Line("  stored", f"{stored.get(stage, 0):,}", "SQL")
