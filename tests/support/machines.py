"""What the state machines of flushes share: flushers that go one round trip at a time, kills, and a
database that goes back to a backup.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model
from hypothesis import HealthCheck, Phase
from hypothesis import settings as hypothesis_settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from pytest_django import Settings
from redis import Redis

from readtrack.store import scripts
from tests.support.depth import DEEP, examples
from tests.support.stepping import SteppedConnection, Stepper

Backup = Mapping[Any, Sequence[Any]]  # rows by model

needs_threads = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="threads need a database that they share"
)


class FlusherMachine(RuleBasedStateMachine):
    """A state machine with flushers that interleave, and are killed at any step."""

    redis: Redis  # of bytes; set by `run_machine`, as the site is
    site: Settings

    def __init__(self) -> None:
        super().__init__()
        self.flushers: list[Stepper] = []

    def step_flusher(self, index: int, times: int, work: Callable[[], object]) -> None:
        """Lets a flusher make some round trips. Starts it with that work if it does not run."""
        if index >= len(self.flushers):
            self.flushers.append(Stepper(work))
        self.flusher(index).step(times)
        self.sweep()

    def flusher(self, index: int) -> Stepper:
        """Returns one of the flushers that run: the last one if there are not so many."""
        return self.flushers[min(index, len(self.flushers) - 1)]

    def finish_flushers(self) -> None:
        """Lets all flushers end."""
        for flusher in self.flushers:
            flusher.finish()
        self.sweep()

    def sweep(self) -> None:
        """Forgets the flushers that are over."""
        self.flushers = [flusher for flusher in self.flushers if not flusher.is_over]

    def teardown(self) -> None:
        for flusher in self.flushers:
            flusher.kill()


def empty(tables: Sequence[type[Model]]) -> None:
    """Deletes all rows without signals, so the app does not notice."""
    with connection.cursor() as cursor:
        for model in tables:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(model._meta.db_table)}")


def back_up(tables: Sequence[type[Model]]) -> Backup:
    """Returns all rows of the tables."""
    return {model: list(model._base_manager.all()) for model in tables}


def restore(backup: Backup) -> None:
    """Replaces all rows of the tables by those of the backup."""
    empty([*backup])
    for model, rows in backup.items():
        model._base_manager.bulk_create(rows)


@contextmanager
def made_ready(
    machine: type[FlusherMachine],
    redis_url: str,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """Lets the machine work with that Redis while it is open."""
    options = {"CONNECTION_POOL_KWARGS": {"connection_class": SteppedConnection}}
    settings.CACHES = {"default": {**settings.CACHES["default"], "OPTIONS": options}}
    monkeypatch.setattr(scripts, "SLICE", 2)  # so that what flushes read takes several turns
    with Redis.from_url(redis_url) as client:
        machine.redis = client
        machine.site = settings
        yield


def run_machine(
    machine: type[FlusherMachine],
    redis_url: str,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    *,
    steps: int,
) -> None:
    """Runs the machine on that Redis, with that many steps in each example."""
    with made_ready(machine, redis_url, settings, monkeypatch):
        run_state_machine_as_test(
            machine,
            settings=hypothesis_settings(
                max_examples=examples(5) if DEEP else 3,
                stateful_step_count=steps,
                phases=[Phase.generate],  # to shrink a case takes thousands of round trips
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
