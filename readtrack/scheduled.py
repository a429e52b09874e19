"""The work that has to run by a schedule, whatever starts it: Celery's tasks, Django's tasks, or
`manage.py readtrack schedule`.

It holds no lock, because a flush needs none.
"""

from collections.abc import Callable

from readtrack import parts, renames, tracker
from readtrack.conf import conf, logger
from readtrack.flush.run import flush
from readtrack.sql.epochs import SqlEpoch
from readtrack.store import keys, scripts
from readtrack.store.circuit import ask_anyway
from readtrack.store.scripts import Call


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


def flush_changed(
    *,
    send_part: Callable[[str], object] | None = None,
    send_job: Callable[[parts.Job], object] | None = None,
) -> None:
    """Sends the publications in the outbox, and writes the counts that changed to SQL.

    This is the task that the schedule runs most often. So before the flush, which may take long,
    `send_job` starts each job of a part that is due. `send_part` is as in `flush_views`.
    """
    if send_job is not None:
        _send_due_jobs(send_job)
    flush_views(only_changed=True, send_part=send_part)


def _send_due_jobs(send_job: Callable[[parts.Job], object]) -> None:
    """Starts the jobs that are due. A queue that refuses one keeps no counts from SQL, and gets it
    again with the next tick.
    """
    for job in due_jobs():
        try:
            send_job(job)
        except Exception:
            logger.exception("The job %s of a part could not be started.", job.name)
            ask_anyway(scripts.run, None, Call("UNLINK", [_key_of(job)]), patient=True)


def flush_part(part: str, *, only_changed: bool) -> None:
    """Writes the counts of some partitions to SQL: "2/8" is every eighth from the second one on.

    Does nothing for a part without partitions, which a check warns of: FLUSH_TASKS is above
    PARTITIONS.
    """
    if not SqlEpoch(part).tags:
        return
    flush(only_changed=only_changed, part=part)


def refresh_trending() -> None:
    """Computes the trending lists."""
    tracker.refresh_trending()


def due_jobs() -> list[parts.Job]:
    """Returns the jobs of parts whose interval has passed since they were returned last, by any
    process.

    Without Redis each job is due, because one of them may have to tell that.
    """
    return [job for job in parts.jobs() if ask_anyway(_claim, True, job)]  # noqa: FBT003 - the default result


def _claim(job: parts.Job) -> bool:
    """Returns True for one process in each interval of the job. Raises redis.RedisError."""
    # Half a tick less than the interval, because a tick of the schedule may be early.
    seconds = min(job.interval, keys.DAY) - conf.FLUSH_INTERVAL / 2
    arguments = ("1", "NX", "PX", max(1, int(seconds * 1000)))
    return scripts.run(Call("SET", [_key_of(job)], arguments, bool), patient=True)


def _key_of(job: parts.Job) -> str:
    """Returns the key that exists while the job is not due."""
    return keys.job(keys.tags()[0], job.name)


def run_job(name: str) -> None:
    """Runs the job of an installed part with that name. Raises LookupError for an unknown one."""
    for job in parts.jobs():
        if job.name == name:
            job.run()
            return
    raise LookupError(f"No installed part of readtrack has a job {name!r}.")
