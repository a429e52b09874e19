"""The schedule for Celery beat."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from pytest_django import Settings

from readtrack import parts, scheduled, tracker
from readtrack.parts import Job
from readtrack.schedule import readtrack_schedule
from readtrack.sql import runs
from readtrack.store import scripts
from readtrack.store.connection import RedisError
from tests.support import factories
from tests.support.forks import Forks

SITE = """
from django.conf import settings
from readtrack.schedule import readtrack_schedule

print(sorted(readtrack_schedule({})), settings.configured)
"""


def test_a_tick_that_is_late_expires_before_the_next() -> None:
    schedule = readtrack_schedule()
    assert len(schedule) >= 2
    for entry in schedule.values():
        assert entry["options"]["expires"] <= entry["schedule"]


@pytest.mark.parametrize("options", [{}, {"FLUSH_INTERVAL": 300}], ids=str)
def test_a_flush_is_late_after_three_ticks_of_the_schedule(
    options: dict[str, Any], settings: Settings
) -> None:
    settings.READTRACK = options
    entry = readtrack_schedule(options)["readtrack-flush-changed"]
    assert runs.late_after() == timedelta(seconds=3 * entry["schedule"])


def test_a_settings_module_may_make_it_before_there_are_settings(bare_forks: Forks) -> None:
    output = bare_forks.run(SITE).output
    assert "readtrack-flush-changed" in output
    assert output.endswith("False\n")


@pytest.fixture
def names_of_runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the names of jobs that ran; the site has a part with two of them."""
    names: list[str] = []
    jobs = (
        Job("each-minute", 60.0, partial(names.append, "each-minute")),
        Job("each-hour", 3600.0, partial(names.append, "each-hour")),
    )
    monkeypatch.setattr(parts, "jobs", lambda: list(jobs))
    return names


def run_due() -> None:
    for job in scheduled.due_jobs():
        job.run()


def test_jobs_of_parts_run_once_in_their_interval(names_of_runs: list[str], redis: Any) -> None:
    for _ in range(2):  # two processes, or one that begins anew
        run_due()
    assert names_of_runs == ["each-minute", "each-hour"]
    # Half a minute later the job of each minute is due with the next tick.
    [name] = redis.keys("*job:each-minute")
    assert 25_000 < redis.pttl(name) <= 30_000
    redis.delete(name)
    run_due()
    assert names_of_runs == ["each-minute", "each-hour", "each-minute"]


def test_without_redis_each_job_is_due(
    names_of_runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise RedisError

    monkeypatch.setattr(scripts, "run", fail)
    run_due()
    assert names_of_runs == ["each-minute", "each-hour"]


@pytest.mark.django_db
def test_a_queue_that_refuses_a_job_keeps_no_counts_from_sql(
    names_of_runs: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    post = factories.post()
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    refusals = iter([OSError("no broker"), None, None])

    def send(job: Job) -> None:
        if refusal := next(refusals):
            raise refusal
        job.run()

    scheduled.flush_changed(send_job=send)
    assert "The job each-minute of a part could not be started." in caplog.messages
    post.refresh_from_db()
    assert post.view_count == 1
    scheduled.flush_changed(send_job=send)
    assert names_of_runs == ["each-hour", "each-minute"]


def test_a_job_of_no_part_is_refused() -> None:
    with pytest.raises(LookupError, match="has a job 'tea'"):
        scheduled.run_job("tea")
