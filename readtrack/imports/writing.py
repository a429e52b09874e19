"""Writing the totals of the subjects that a batch of an import has raised in Redis."""

from collections.abc import Iterable

from django.utils import timezone

from readtrack.flush.run import chunks, leave_to_next_flush
from readtrack.flush.settling import settle
from readtrack.flush.steps import steps_of_parts
from readtrack.flush.totals import Extent, Work, write_chunk
from readtrack.models import FlushRun
from readtrack.sql import databases
from readtrack.sql.epochs import SqlEpoch
from readtrack.sql.faults import Faults
from readtrack.store.connection import server_time


def write_subjects(subjects: Iterable[str]) -> None:
    """Writes the totals of the subjects as a flush does.

    It saves no record of a flush, and parts keep nothing of the subjects' hours. Raises
    redis.RedisError or django.db.Error, as `flush` does. What cannot be written is logged, and
    later flushes try it again.
    """
    now = server_time(patient=True)
    subjects = [*subjects]
    record = FlushRun(
        started=timezone.now(), redis_time=now, flushed_until=now, kind=FlushRun.Kind.CHANGED
    )
    faults = Faults()
    epoch = SqlEpoch()
    work = Work(record, epoch, faults, steps_of_parts(record, epoch, faults), changed={})
    with databases.retrying():
        settle(epoch, faults)
        for chunk in chunks(subjects):
            write_chunk(chunk, work, extent=Extent())
        for step in work.steps:
            step.finish(has_changes=True)
    leave_to_next_flush(record, faults, changed=frozenset(subjects))
