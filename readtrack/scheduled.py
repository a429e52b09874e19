"""The work that has to run by a schedule, whatever starts it: Celery's tasks, Django's tasks, or
`manage.py readtrack schedule`.

It holds no lock, because a flush needs none.
"""

from collections.abc import Callable

from readtrack import renames, tracker
from readtrack.conf import conf
from readtrack.digest import sending
from readtrack.flush.run import flush


def flush_views(
    *, only_changed: bool = False, send_part: Callable[[str], object] | None = None
) -> None:
    """Follows renames, sends the publications in the outbox, and writes the live counts to SQL.

    With FLUSH_TASKS above 1, `send_part` gets the name of each part of the partitions, such as
    "2/8", and starts a task that flushes this part. Without `send_part`, all are flushed here.
    """
    renames.follow(has_late=not only_changed)
    try:
        tracker.resend()
    finally:  # a publication that cannot be sent does not keep counts from SQL
        if send_part is None or conf.FLUSH_TASKS == 1:
            flush(only_changed=only_changed)
        else:
            for number in range(1, conf.FLUSH_TASKS + 1):
                send_part(f"{number}/{conf.FLUSH_TASKS}")


def flush_changed() -> None:
    """Sends the publications in the outbox, and writes the counts that changed to SQL."""
    flush_views(only_changed=True)


def flush_part(part: str, *, only_changed: bool) -> None:
    """Writes the counts of some partitions to SQL: "2/8" is every eighth from the second one on."""
    flush(only_changed=only_changed, part=part)


def refresh_trending() -> None:
    """Computes the trending lists."""
    tracker.refresh_trending()


def digest() -> None:
    """Sends the digests that are due."""
    sending.send_due()
