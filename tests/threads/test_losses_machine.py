"""The state machine of reads, news and losses, with threads for categories."""

from typing import Any

import pytest
from pytest_django import Settings

from readtrack import tracker
from readtrack.flush import read_state as keeping
from readtrack.sql import read_states
from readtrack.store.read_state import copies
from readtrack.threads import read_times, times
from readtrack.threads.models import ReadTimes
from tests.site.models import Thread
from tests.support import forum
from tests.support.depth import some
from tests.support.machines import needs_threads, run_machine
from tests.unread import test_machine
from tests.unread.test_machine import CATEGORIES, STEPS, TABLES

OPTIONS: dict[str, Any] = {"MODELS": forum.MODELS}


class ThreadsMachine(test_machine.ReadStateMachine):
    """Events at a forum, each followed by a check of the dots."""

    tables = [*TABLES, ReadTimes]

    def new_categories(self) -> list[Any]:
        return [Thread.objects.create() for _ in range(CATEGORIES)]

    def make_unread(self) -> None:
        tracker.mark_unread(self.categories)  # a thread without a publication is read


@pytest.mark.django_db(transaction=True)
@needs_threads
@pytest.mark.parametrize(
    "options", some([OPTIONS], deep=[{**OPTIONS, "CLUSTER": {"partitions": 4}}]), ids=str
)
def test_no_dot_of_a_thread_that_should_be_on_is_off_whatever_is_lost(
    options: dict[str, Any],
    redis_url: str,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(read_states, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(read_times, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(times, "KEYS_AT_ONCE", 2)
    monkeypatch.setattr(copies, "CHANGES_AT_ONCE", 2)
    monkeypatch.setattr(keeping, "COPYING_SECONDS", 600)
    ThreadsMachine.options = options
    run_machine(ThreadsMachine, redis_url, settings, monkeypatch, steps=STEPS)
