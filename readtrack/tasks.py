"""Celery tasks; `readtrack.schedule` is their schedule for beat. A task holds no lock, because a flush needs none."""

from celery import shared_task

from readtrack import tracker
from readtrack.conf import conf
from readtrack.flush.run import flush
from readtrack.store import keys


@shared_task(name="readtrack.flush_views", ignore_result=True)
def flush_views() -> None:
    """Sends the publications in the outbox, and writes the live counts into SQL."""
    _flush(only_changed=False)


@shared_task(name="readtrack.flush_changed", ignore_result=True)
def flush_changed() -> None:
    """Sends the publications in the outbox, and writes the counts that changed since the last flush into SQL."""
    _flush(only_changed=True)


@shared_task(name="readtrack.flush_part", ignore_result=True)
def flush_part(part: str, only_changed: bool) -> None:  # noqa: FBT001 - as Celery sends it
    """Writes the counts of some partitions into SQL."""
    flush(only_changed=only_changed, part=part)


def _flush(*, only_changed: bool) -> None:
    """Flushes here, or by one task for each part of the partitions."""
    tracker.resend()
    if conf.FLUSH_TASKS == 1:
        flush(only_changed=only_changed)
        return
    for number in range(1, conf.FLUSH_TASKS + 1):
        expires = conf.FLUSH_INTERVAL if only_changed else keys.HOUR
        flush_part.apply_async((f"{number}/{conf.FLUSH_TASKS}", only_changed), expires=expires)


@shared_task(name="readtrack.refresh_trending", ignore_result=True)
def refresh_trending() -> None:
    """Computes the trending lists."""
    tracker.refresh_trending()
