"""`manage.py readtrack schedule`."""

import signal
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from time import monotonic
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import close_old_connections

from readtrack import parts, scheduled
from readtrack.conf import conf, logger
from readtrack.management.subcommands.base import Subcommand
from readtrack.schedule import readtrack_schedule


@dataclass(slots=True)
class Tick:
    """One entry of the schedule."""

    task: str  # such as "readtrack.flush_changed"
    interval: float  # seconds
    run: Callable[[], object]
    due: float = 0.0  # when it runs next, by the monotonic clock


class Enqueued:
    """A task of Django that is sent unless the one sent before is still waiting for a worker.

    Django's tasks do not expire. Without a worker they would become ever more.
    """

    def __init__(self, task: Any, *arguments: Any) -> None:
        self._task = task
        self._arguments = arguments
        self._sent: Any = None  # the result of the task that was sent last

    def __call__(self) -> None:
        """Sends the task. Raises what the task's backend raises."""
        if not self._is_waiting():
            self._sent = self._task.enqueue(*self._arguments)

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
Runs the schedule: flushes, refreshes of the trending lists, and the jobs of all installed parts. For a site without Celery's beat and without
cron.

It runs until SIGTERM or Ctrl-C, which let the work that is under way end first. Let systemd, supervisor or a container
keep it running. Several may run at a time; the counts stay right.

With --enqueue it does no work itself, and sends tasks to Django's tasks (Django 6.0 or newer), whose workers do it. A
task is not sent again while the one before it waits for a worker.

An error is logged, and the next tick tries again.
"""
    needs_known_layout = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--enqueue",
            action="store_true",
            help="send the work to Django's tasks",
        )

    def handle(self, *, command: Any, verbosity: int, enqueue: bool, **options: Any) -> None:
        ticks = _ticks(enqueue=enqueue)
        if verbosity > 0:
            names = ", ".join(f"{tick.task} every {tick.interval:g} s" for tick in ticks)
            command.stdout.write(f"Runs {names}. SIGTERM or Ctrl-C ends it.")
            command.stdout.flush()
        stop = Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        while not stop.is_set():
            for tick in ticks:
                if tick.due <= monotonic() and not stop.is_set():
                    _run(tick)
            seconds = min(tick.due for tick in ticks) - monotonic()
            stop.wait(max(0.0, seconds))


def _ticks(*, enqueue: bool) -> list[Tick]:
    """Returns the entries, all of which are due. Raises CommandError without Django's tasks."""
    schedule = readtrack_schedule({"FLUSH_INTERVAL": conf.FLUSH_INTERVAL})
    ticks = []
    for entry in schedule.values():
        name = entry["task"].removeprefix("readtrack.")
        run = Enqueued(_django_task(name)) if enqueue else getattr(scheduled, name)
        ticks.append(Tick(entry["task"], entry["schedule"], run))
    for job in parts.jobs():
        run_job = Enqueued(_django_task("run_job"), job.name) if enqueue else job.run
        ticks.append(Tick(f"readtrack.{job.name}", job.interval, run_job))
    return ticks


def _django_task(name: str) -> Any:
    """Returns the task of Django with this name. Raises CommandError if Django has no tasks."""
    try:
        from readtrack import django_tasks
    except ModuleNotFoundError as error:
        raise CommandError("--enqueue needs Django 6.0 or newer.") from error
    return getattr(django_tasks, name)


def _run(tick: Tick) -> None:
    """Runs the entry, and logs its error. It is due again one interval after it began."""
    tick.due = monotonic() + tick.interval
    close_old_connections()  # as between requests: the database may have restarted
    try:
        tick.run()
    except Exception:
        logger.exception("The scheduled %s failed.", tick.task)
    finally:
        close_old_connections()
