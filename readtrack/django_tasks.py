"""The scheduled work as tasks of Django 6.0 and newer, for a site without Celery.

`manage.py readtrack schedule --enqueue` sends them, or a scheduler of the site does.
"""

from django.tasks import task

from readtrack import scheduled


@task
def flush_views(only_changed: bool = False) -> None:  # noqa: FBT001, FBT002 - as a queue sends it
    """Follows renames, sends the publications in the outbox, and writes the live counts to SQL.

    With FLUSH_TASKS above 1 it starts so many tasks, each of which flushes some of the partitions.
    """

    def send_part(part: str) -> None:
        flush_part.enqueue(part, only_changed)

    scheduled.flush_views(only_changed=only_changed, send_part=send_part)


@task
def flush_changed() -> None:
    """Sends the publications in the outbox, and writes the counts that changed to SQL."""
    flush_views.call(only_changed=True)


@task
def flush_part(part: str, only_changed: bool) -> None:  # noqa: FBT001 - as a queue sends it
    """Writes the counts of some partitions to SQL: "2/8" is every eighth from the second one on."""
    scheduled.flush_part(part, only_changed=only_changed)


@task
def refresh_trending() -> None:
    """Computes the trending lists."""
    scheduled.refresh_trending()


@task
def run_job(name: str) -> None:
    """Runs a job of an installed part, such as "digest"."""
    scheduled.run_job(name)
