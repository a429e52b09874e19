"""The scheduled work as tasks of Django 6.0 and newer, for a site without Celery.

`manage.py readtrack schedule --enqueue` sends them, or a scheduler of the site does.
"""

from django.tasks import task

from readtrack import scheduled
from readtrack.parts import Job


@task
def run_job(name: str) -> None:
    """Runs a job of the core or of an installed part, such as "flush-changed" or "digest".

    Where a part divides the flush, a flush starts tasks, each of which flushes some of the
    partitions. "flush-changed" also starts the jobs of parts that are due.
    """
    scheduled.run_job(name, scheduled.Queue(flush_share.enqueue, _send_job))


def _send_job(job: Job) -> None:
    """Starts the task that runs a job."""
    run_job.enqueue(job.name)


@task
def flush_share(share: str, only_changed: bool) -> None:  # noqa: FBT001 - as a queue sends it
    """Writes the counts of some partitions to SQL: "2/8" is every eighth from the second one on."""
    scheduled.flush_share(share, only_changed=only_changed)
