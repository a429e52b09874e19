"""`manage.py readtrack schedule`."""

import signal
from collections.abc import Callable, Sequence
from threading import Event
from time import monotonic
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import close_old_connections

from readtrack import scheduled
from readtrack.conf import logger
from readtrack.management.subcommands.base import Subcommand
from readtrack.parts import Job
from readtrack.scheduled import Claims


class Enqueued:
    """A task of Django that is sent unless the one sent before is still waiting for a worker.

    Django's tasks do not expire. Without a worker they would become ever more.
    """

    def __init__(self, task: Any, job: Job, put_back: Callable[[Job], object]) -> None:
        """Takes the task of the job, and what makes the job due again if it cannot be sent."""
        self._task = task
        self._job = job
        self._put_back = put_back
        self._sent: Any = None  # the result of the task that was sent last

    def __call__(self) -> None:
        """Sends the task. Raises what the task's backend raises."""
        try:
            if not self._is_waiting():
                self._sent = self._task.enqueue(self._job.name)
        except Exception:
            self._put_back(self._job)
            raise

    def _is_waiting(self) -> bool:
        """Returns True if no worker has begun the task that was sent last."""
        from django.tasks import TaskResultStatus
        from django.tasks.exceptions import TaskResultDoesNotExist

        if self._sent is None or not self._task.get_backend().supports_get_result:
            return False
        try:
            self._sent.refresh()
        except TaskResultDoesNotExist:  # it ended, and was removed
            return False
        return bool(self._sent.status == TaskResultStatus.READY)


class Schedule(Subcommand):
    """Runs what has to run by a schedule, until it is stopped."""

    name = "schedule"
    help = """\
Runs the schedule: flushes, refreshes of the trending lists, and the jobs of all installed parts.
For a site without Celery's beat.

It runs until SIGTERM or Ctrl-C, which let the work that is under way end first. Let systemd,
supervisor or a container keep it running. Several may run at a time, and share the work. One that
begins anew runs only what is due.

With --once it runs what is due, and ends. So cron can do it:

  * * * * *  manage.py readtrack schedule --once -v 0

With --enqueue it does no work itself, and sends tasks to Django's tasks (Django 6.0 or newer),
whose workers do it. A task is not sent again while the one before it waits for a worker.

An error is logged, and the job runs again when it is due next. A task that could not be sent is due
with the next tick. With --once the exit status is 1 then.
"""
    needs_known_layout = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="run what is due, and end")
        parser.add_argument(
            "--enqueue",
            action="store_true",
            help="send the work to Django's tasks",
        )

    def handle(
        self, *, command: Any, verbosity: int, once: bool, enqueue: bool, **options: Any
    ) -> None:
        claims = Claims(scheduled.tick())
        jobs = scheduled.jobs()
        if enqueue:
            jobs = _enqueued_jobs(jobs, claims)
        if once:
            _run_once(jobs, claims)
            return
        if verbosity > 0:
            names = ", ".join(f"{job.name} every {job.interval:g} s" for job in jobs)
            command.stdout.write(f"Runs {names}. SIGTERM or Ctrl-C ends it.")
            command.stdout.flush()
        stop = Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        while not stop.is_set():
            next_tick = monotonic() + scheduled.tick()
            try:
                _run_due(jobs, claims, stop)
            except Exception:
                logger.exception("The schedule does not know which jobs are due.")
            stop.wait(max(0.0, next_tick - monotonic()))


def _enqueued_jobs(jobs: Sequence[Job], claims: Claims) -> list[Job]:
    """Returns jobs with the same names that send a task each. Raises CommandError without Django's
    tasks.
    """
    try:
        from readtrack import django_tasks
    except ModuleNotFoundError as error:
        raise CommandError("--enqueue needs Django 6.0 or newer.") from error
    run_job = django_tasks.run_job
    return [job._replace(run=Enqueued(run_job, job, claims.put_back)) for job in jobs]


def _run_once(jobs: Sequence[Job], claims: Claims) -> None:
    """Runs the jobs that are due. Raises CommandError if some of them fail."""
    # Cron starts a new process each minute. If Redis takes no claims, such a process has only its
    # own, so each would flush everything. It need not: after a long pause flush-changed does.
    claims.note("flush-views")
    failed = _run_due(jobs, claims, Event())
    if failed:
        raise CommandError(f"Failed: {', '.join(failed)}. The log has the errors.")


def _run_due(jobs: Sequence[Job], claims: Claims, stop: Event) -> list[str]:
    """Runs the jobs that are due, until it is stopped. Returns the names of those that failed.

    Raises what the function of PREFIX raises, which may ask a database.
    """
    close_old_connections()  # as between requests: the database may have restarted
    failed = []
    for job in claims.due(jobs):
        if stop.is_set():
            claims.put_back(job)
        elif not _run(job):
            failed.append(job.name)
    return failed


def _run(job: Job) -> bool:
    """Runs the job. Returns False after an error, which is logged."""
    try:
        job.run()
    except Exception:
        logger.exception("The scheduled job %s failed.", job.name)
        return False
    finally:
        close_old_connections()
    return True
