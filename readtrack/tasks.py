"""The Celery tasks; `readtrack.schedule` has them for beat. Correctness is the flush's, so no lock is held."""

from celery import shared_task

from readtrack import tracker
from readtrack.flush.run import flush


@shared_task(name="readtrack.flush_views", ignore_result=True)
def flush_views() -> None:
    """Writes the live counts into SQL."""
    flush()


@shared_task(name="readtrack.flush_changed", ignore_result=True)
def flush_changed() -> None:
    """Writes the counts that changed since the last flush into SQL, and sends the news kept while Redis was gone."""
    tracker.resend()
    flush(only_changed=True)


@shared_task(name="readtrack.refresh_trending", ignore_result=True)
def refresh_trending() -> None:
    """Computes anew what is trending."""
    tracker.refresh_trending()
