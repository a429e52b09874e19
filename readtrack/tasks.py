"""Celery tasks, which `readtrack.schedule` runs. They hold no lock, because a flush needs none."""

from celery import shared_task

from readtrack import renames, tracker
from readtrack.conf import conf
from readtrack.flush.run import flush
from readtrack.store import keys


@shared_task(name="readtrack.flush_views", ignore_result=True)
def flush_views(only_changed: bool = False) -> None:  # noqa: FBT001, FBT002 - as Celery sends it
    """Follows renames, sends the publications in the outbox, and writes the live counts to SQL.

    With FLUSH_TASKS above 1 it starts so many tasks, each of which flushes some of the partitions.
    """
    renames.follow(has_late=not only_changed)
    try:
        tracker.resend()
    finally:  # a publication that cannot be sent does not keep counts from SQL
        _flush(only_changed=only_changed)


def _flush(*, only_changed: bool) -> None:
    if conf.FLUSH_TASKS == 1:
        flush(only_changed=only_changed)
        return
    expires = conf.FLUSH_INTERVAL if only_changed else keys.HOUR  # seconds, until the next tick
    for number in range(1, conf.FLUSH_TASKS + 1):
        flush_part.apply_async((f"{number}/{conf.FLUSH_TASKS}", only_changed), expires=expires)


@shared_task(name="readtrack.flush_changed", ignore_result=True)
def flush_changed() -> None:
    """Sends the publications in the outbox, and writes the counts that changed to SQL."""
    flush_views(only_changed=True)


@shared_task(name="readtrack.flush_part", ignore_result=True)
def flush_part(part: str, only_changed: bool) -> None:  # noqa: FBT001 - as Celery sends it
    """Writes the counts of some partitions to SQL: "2/8" is every eighth from the second one on."""
    flush(only_changed=only_changed, part=part)


@shared_task(name="readtrack.refresh_trending", ignore_result=True)
def refresh_trending() -> None:
    """Computes the trending lists."""
    tracker.refresh_trending()
