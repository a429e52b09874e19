"""The schedule for Celery beat."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import parts, scheduled, tracker
from readtrack.parts import Job
from readtrack.schedule import readtrack_schedule
from readtrack.scheduled import Claims
from readtrack.sql import runs
from tests.conftest import Start
from tests.support import factories
from tests.support.forks import Forks
from tests.support.waiting import ENOUGH
from tests.support.wire import Wire

WEEK = 7 * 86_400.0

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
        Job("each-week", WEEK, partial(names.append, "each-week")),
    )
    monkeypatch.setattr(parts, "jobs", lambda: list(jobs))
    return names


def run_due() -> None:
    """Runs what is due as a process does that looks once, each half minute."""
    for job in Claims(30.0).due(parts.jobs()):
        job.run()


def test_jobs_of_parts_run_once_in_their_interval(names_of_runs: list[str], redis: Any) -> None:
    for _ in range(2):  # two processes, or one that begins anew
        run_due()
    assert names_of_runs == ["each-minute", "each-week"]
    [each_minute], [each_week] = redis.keys("*job:each-minute"), redis.keys("*job:each-week")
    # Half a tick, 15 s, less than the interval, because a tick may be early.
    assert 0 < redis.pttl(each_minute) <= 45_000
    assert WEEK - 15 - ENOUGH < redis.ttl(each_week) <= WEEK - 15
    redis.delete(each_minute)
    run_due()
    assert names_of_runs == ["each-minute", "each-week", "each-minute"]


def test_a_claim_from_before_the_clock_of_redis_was_set_back_does_not_hold(
    names_of_runs: list[str], redis: Any
) -> None:
    run_due()
    [each_minute] = redis.keys("*job:each-minute")
    redis.pexpire(each_minute, 61_000)  # what is left after the clock was set back
    run_due()
    run_due()
    assert names_of_runs == ["each-minute", "each-week", "each-minute"]
    assert redis.pttl(each_minute) <= 45_000


@pytest.mark.usefixtures("redis")
def test_a_claim_whose_answer_was_lost_is_known_again(names_of_runs: list[str], wire: Wire) -> None:
    def lose(moment: str, trip: int) -> None:
        if moment == "answer":
            wire.hook = None
            wire.drop()

    wire.hook = lose
    run_due()
    assert wire.hook is None
    assert names_of_runs == ["each-minute", "each-week"]


@pytest.mark.one_server("has a limit of memory of its own")
def test_a_full_redis_takes_claims(names_of_runs: list[str], start_redis: Start) -> None:
    with Redis.from_url(start_redis().url) as client:
        client.config_set("maxmemory", 1)
    for _ in range(2):
        run_due()
    assert names_of_runs == ["each-minute", "each-week"]


@pytest.mark.one_server("refuses writes")
@pytest.mark.usefixtures("names_of_runs")
def test_where_redis_refuses_claims_a_process_goes_by_its_own_clock(
    start_redis: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Redis.from_url(start_redis().url) as client:
        client.config_set("min-replicas-to-write", 1)
    now = 1000.0
    monkeypatch.setattr(scheduled, "monotonic", lambda: now)
    each_minute, each_week = parts.jobs()
    claims = Claims(30.0)
    assert claims.due(parts.jobs()) == [each_minute, each_week]  # one may have to tell it
    now += 30
    assert claims.due(parts.jobs()) == []
    now += 30
    assert claims.due(parts.jobs()) == [each_minute]
    claims.put_back(each_minute)
    assert claims.due(parts.jobs()) == [each_minute]
    now += WEEK
    assert claims.due(parts.jobs()) == [each_minute, each_week]


@pytest.mark.django_db
def test_a_queue_may_be_half_of_its_interval_early(names_of_runs: list[str], redis: Any) -> None:
    queue = scheduled.Queue(lambda share, only_changed: None, lambda job: job.run())
    scheduled.flush_changed(queue)
    assert names_of_runs == ["each-minute", "each-week"]
    [each_minute] = redis.keys("*job:each-minute")
    assert redis.pttl(each_minute) <= 30_000


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

    queue = scheduled.Queue(lambda share, only_changed: None, send)
    scheduled.flush_changed(queue)
    assert "The job each-minute of a part could not be started." in caplog.messages
    post.refresh_from_db()
    assert post.view_count == 1
    scheduled.flush_changed(queue)
    assert names_of_runs == ["each-week", "each-minute"]


@pytest.mark.django_db
def test_the_jobs_of_the_core_are_those_of_beat_and_are_due_as_those_of_parts_are(
    names_of_runs: list[str],
) -> None:
    jobs = scheduled.jobs()
    in_beat = {entry["args"][0]: entry["schedule"] for entry in readtrack_schedule().values()}
    assert {job.name: job.interval for job in jobs[:-2]} == in_beat
    claims = Claims(scheduled.tick())
    assert [job.name for job in claims.due(jobs)] == [*in_beat, "each-minute", "each-week"]
    assert claims.due(jobs) == []
    claims.put_back(jobs[0])
    assert claims.due(jobs) == [jobs[0]]
    for job in jobs:
        job.run()
    assert names_of_runs == ["each-minute", "each-week"]


def test_a_job_of_no_part_is_refused() -> None:
    with pytest.raises(LookupError, match="has a job 'tea'"):
        scheduled.run_job("tea")
