"""Celery tasks; `readtrack.schedule` is their schedule for beat. A task holds no lock, because a flush needs none."""

from celery import shared_task

from readtrack import tracker
from readtrack.flush.run import flush


@shared_task(name="readtrack.flush_views", ignore_result=True)
def flush_views() -> None:
    """Sends the publications in the outbox, and writes the live counts into SQL."""
    tracker.resend()
    flush()


@shared_task(name="readtrack.flush_changed", ignore_result=True)
def flush_changed() -> None:
    """Sends the publications in the outbox, and writes the counts that changed since the last flush into SQL."""
    tracker.resend()
    flush(only_changed=True)


@shared_task(name="readtrack.refresh_trending", ignore_result=True)
def refresh_trending() -> None:
    """Computes the trending lists."""
    tracker.refresh_trending()
