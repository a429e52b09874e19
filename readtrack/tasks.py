"""Celery tasks, which `readtrack.schedule` runs."""

from celery import shared_task

from readtrack import scheduled
from readtrack.conf import conf
from readtrack.parts import Job
from readtrack.store import keys


@shared_task(name="readtrack.run_job", ignore_result=True)
def run_job(name: str) -> None:
    """Runs a job of the core or of an installed part, such as "flush-changed" or "digest".

    Where a part divides the flush, a flush starts tasks, each of which flushes some of the
    partitions. "flush-changed" also starts the jobs of parts that are due.
    """
    scheduled.run_job(name, scheduled.Queue(_send_share, _send_job))


def _send_job(job: Job) -> None:
    """Starts the task that runs a job."""
    run_job.apply_async((job.name,), expires=job.interval)


def _send_share(share: str, only_changed: bool) -> None:  # noqa: FBT001 - as the task gets it
    """Starts the task that flushes some of the partitions."""
    expires = keys.HOUR  # seconds until the schedule starts the task again
    if only_changed:
        expires = conf.FLUSH_INTERVAL
    flush_share.apply_async((share, only_changed), expires=expires)


@shared_task(name="readtrack.flush_share", ignore_result=True)
def flush_share(share: str, only_changed: bool) -> None:  # noqa: FBT001 - as Celery sends it
    """Writes the counts of some partitions to SQL: "2/8" is every eighth from the second one on."""
    scheduled.flush_share(share, only_changed=only_changed)
