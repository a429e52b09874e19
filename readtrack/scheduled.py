"""The work that has to run by a schedule, whatever starts it: Celery's tasks, Django's tasks, cron,
or `manage.py readtrack schedule`.

It holds no lock, because a flush needs none.
"""

from collections.abc import Callable, Sequence
from functools import partial
from secrets import token_hex
from time import monotonic
from typing import NamedTuple

from readtrack import parts, renames, schedule, tracker
from readtrack.conf import conf, logger
from readtrack.flush.run import flush
from readtrack.sql.epochs import SqlEpoch
from readtrack.store import keys, scripts
from readtrack.store.circuit import ask_anyway
from readtrack.store.scripts import Call


class Queue(NamedTuple):
    """How a queue of tasks is given more work by the task that runs."""

    send_share: Callable[[str, bool], object]  # flushes a share such as "2/8"; True: what changed
    send_job: Callable[[parts.Job], object]  # runs a job


def jobs(queue: Queue | None = None) -> list[parts.Job]:
    """Returns all that has to run by the schedule: the jobs of the core and of installed parts.

    Without a queue a job does all its work here. With one, a flush may give the queue its shares,
    and "flush-changed" gives it the jobs of parts that are due.
    """
    runs: dict[str, Callable[[], object]] = {
        "flush-changed": partial(flush_changed, queue),
        "flush-views": partial(flush_views, queue),
        "refresh-trending": tracker.refresh_trending,
    }
    seconds_by_name = schedule.intervals(conf.FLUSH_INTERVAL)
    of_core = [parts.Job(name, seconds, runs[name]) for name, seconds in seconds_by_name.items()]
    return [*of_core, *parts.jobs()]


def run_job(name: str, queue: Queue | None = None) -> None:
    """Runs the job called `name`. Raises LookupError for an unknown one."""
    for job in jobs(queue):
        if job.name == name:
            job.run()
            return
    raise LookupError(f"Neither the core nor an installed part of readtrack has a job {name!r}.")


def flush_views(queue: Queue | None = None, *, only_changed: bool = False) -> None:
    """Follows renames, sends the publications in the outbox, and writes the live counts to SQL.

    Where a part divides the flush into tasks, the queue gets one for each share of the partitions.
    Without a queue all are flushed here.
    """
    renames.follow(again=not only_changed)
    try:
        tracker.resend()
    finally:  # a publication that cannot be sent does not keep counts from SQL
        flush_tasks = parts.division().flush_tasks
        if queue is None or flush_tasks == 1:
            flush(only_changed=only_changed)
        else:
            for number in range(1, flush_tasks + 1):
                queue.send_share(f"{number}/{flush_tasks}", only_changed)


def flush_changed(queue: Queue | None = None) -> None:
    """Sends the publications in the outbox, and writes the counts that changed to SQL.

    The schedule of a queue runs this job most often, and no jobs of parts. So before the flush,
    which may take long, the queue gets each job of a part that is due.
    """
    if queue is not None:
        _send_due_jobs(queue)
    flush_views(queue, only_changed=True)


def _send_due_jobs(queue: Queue) -> None:
    """Gives the queue the jobs of parts that are due. If it refuses one, the flush goes on, and the
    queue gets the job again with the next tick.
    """
    claims = Claims(conf.FLUSH_INTERVAL)  # the schedule of a queue looks no more often
    for job in claims.due(parts.jobs()):
        try:
            queue.send_job(job)
        except Exception:
            logger.exception("The job %s of a part could not be started.", job.name)
            claims.put_back(job)


def flush_share(share: str, *, only_changed: bool) -> None:
    """Writes the counts of some partitions to SQL: "2/8" is every eighth from the second one on.

    Does nothing for a share without partitions, which a check tells of: there are more
    tasks than partitions.
    """
    if not SqlEpoch(share).tags:
        return
    flush(only_changed=only_changed, share=share)


class Claims:
    """The claims of a process on jobs: in an interval each job is run by the process that claims
    it first.
    """

    def __init__(self, tick: float) -> None:
        """Takes the seconds after which the process looks again which jobs are due."""
        self._tick = tick
        # When this process claimed each job last, by its name (seconds of the monotonic clock).
        self._claimed: dict[str, float] = {}

    def due(self, scheduled_jobs: Sequence[parts.Job]) -> list[parts.Job]:
        """Claims those of the jobs whose interval has passed since any process claimed them.
        Returns them; the caller runs them.

        Where Redis refuses or is gone, this process's own claims count alone. So each job is due at
        first, because one of them may have to tell that.
        """
        calls = [self._call(job) for job in scheduled_jobs]
        ask_anyway(scripts.run_all, [], *calls, patient=True)
        due_jobs = []
        for job, call in zip(scheduled_jobs, calls, strict=True):
            is_due = self._is_over(job)
            if call.has_result:
                is_due = call.result
            if is_due:
                self.note(job.name)
                due_jobs.append(job)
        return due_jobs

    def note(self, name: str) -> None:
        """Notes that this process claims the job called `name` now."""
        self._claimed[name] = monotonic()

    def put_back(self, job: parts.Job) -> None:
        """Makes a job that was due, and does not run, due again."""
        self._claimed.pop(job.name, None)
        ask_anyway(scripts.run, None, Call("UNLINK", [_key_of(job)]), patient=True)

    def _is_over(self, job: parts.Job) -> bool:
        """Returns True if this process has no claim on the job, or its claim has ended."""
        claimed = self._claimed.get(job.name)
        return claimed is None or monotonic() - claimed >= self._lifetime(job)

    def _call(self, job: parts.Job) -> Call[bool]:
        """Returns the call that claims the job. Its result is True if the job is due."""
        interval = int(job.interval * 1000)  # ms, as the script takes it
        lifetime = int(self._lifetime(job) * 1000)
        return Call("claim", [_key_of(job)], (token_hex(8), interval, lifetime), bool)

    def _lifetime(self, job: parts.Job) -> float:
        """Returns the seconds for which a claim holds.

        It is half a tick less than the interval, because a tick may be early.
        """
        return max(0.001, job.interval - self._tick / 2)


def tick() -> float:
    """Returns the seconds after which `readtrack schedule` looks again which jobs are due."""
    return min(schedule.intervals(conf.FLUSH_INTERVAL).values())


def _key_of(job: parts.Job) -> str:
    """Returns the key that exists while the job is not due."""
    return keys.job(keys.tags()[0], job.name)
