"""Celery tasks, which `readtrack.schedule` runs."""

from functools import partial

from celery import shared_task

from readtrack import scheduled
from readtrack.conf import conf
from readtrack.parts import Job
from readtrack.store import keys


@shared_task(name="readtrack.flush_views", ignore_result=True)
def flush_views(only_changed: bool = False) -> None:  # noqa: FBT001, FBT002 - as Celery sends it
    """Follows renames, sends the publications in the outbox, and writes the live counts to SQL.

    With FLUSH_TASKS above 1 it starts so many tasks, each of which flushes some of the partitions.
    """
    send_part = partial(_send_part, only_changed=only_changed)
    scheduled.flush_views(only_changed=only_changed, send_part=send_part)


def _send_part(part: str, *, only_changed: bool) -> None:
    """Starts the task that flushes some of the partitions."""
    expires = conf.FLUSH_INTERVAL if only_changed else keys.HOUR  # seconds, until the next tick
    flush_part.apply_async((part, only_changed), expires=expires)


@shared_task(name="readtrack.flush_changed", ignore_result=True)
def flush_changed() -> None:
    """Starts the jobs of parts that are due, sends the publications in the outbox, and writes the
    counts that changed to SQL.
    """

    def send_job(job: Job) -> None:
        run_job.apply_async((job.name,), expires=job.interval)

    scheduled.flush_changed(send_part=partial(_send_part, only_changed=True), send_job=send_job)


@shared_task(name="readtrack.flush_part", ignore_result=True)
def flush_part(part: str, only_changed: bool) -> None:  # noqa: FBT001 - as Celery sends it
    """Writes the counts of some partitions to SQL: "2/8" is every eighth from the second one on."""
    scheduled.flush_part(part, only_changed=only_changed)


@shared_task(name="readtrack.refresh_trending", ignore_result=True)
def refresh_trending() -> None:
    """Computes the trending lists."""
    scheduled.refresh_trending()


@shared_task(name="readtrack.run_job", ignore_result=True)
def run_job(name: str) -> None:
    """Runs a job of an installed part, such as "digest"."""
    scheduled.run_job(name)
