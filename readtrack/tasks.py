"""Celery tasks, which `readtrack.schedule` runs."""

from celery import shared_task

from readtrack import scheduled
from readtrack.conf import conf
from readtrack.store import keys


@shared_task(name="readtrack.flush_views", ignore_result=True)
def flush_views(only_changed: bool = False) -> None:  # noqa: FBT001, FBT002 - as Celery sends it
    """Follows renames, sends the publications in the outbox, and writes the live counts to SQL.

    With FLUSH_TASKS above 1 it starts so many tasks, each of which flushes some of the partitions.
    """
    expires = conf.FLUSH_INTERVAL if only_changed else keys.HOUR  # seconds, until the next tick

    def send_part(part: str) -> None:
        flush_part.apply_async((part, only_changed), expires=expires)

    scheduled.flush_views(only_changed=only_changed, send_part=send_part)


@shared_task(name="readtrack.flush_changed", ignore_result=True)
def flush_changed() -> None:
    """Sends the publications in the outbox, and writes the counts that changed to SQL."""
    flush_views(only_changed=True)


@shared_task(name="readtrack.flush_part", ignore_result=True)
def flush_part(part: str, only_changed: bool) -> None:  # noqa: FBT001 - as Celery sends it
    """Writes the counts of some partitions to SQL: "2/8" is every eighth from the second one on."""
    scheduled.flush_part(part, only_changed=only_changed)


@shared_task(name="readtrack.refresh_trending", ignore_result=True)
def refresh_trending() -> None:
    """Computes the trending lists."""
    scheduled.refresh_trending()


@shared_task(name="readtrack.digest", ignore_result=True)
def digest() -> None:
    """Sends the digests that are due."""
    scheduled.digest()
