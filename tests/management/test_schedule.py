"""`manage.py readtrack schedule`, as a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

import django
import pytest
from django.core.management import CommandError, call_command
from redis import Redis

from readtrack import reports, scheduled, tracker
from readtrack.hits.visitors import Visitor
from readtrack.models import FlushRun
from readtrack.parts import Job
from tests.conftest import Start
from tests.site.models import Post
from tests.support import factories
from tests.support.addresses import database_url
from tests.support.waiting import comes_true

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.one_server("starts a process of its own"),
]
ROOT = Path(__file__).parents[2]


@contextmanager
def schedule(
    redis_url: str, database: str, *, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Runs the command, and kills it at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "django", "readtrack", "schedule"],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "DATABASE_URL": database,
            "READTRACK_TEST_REDIS_URL": redis_url,
            **(environment or {}),
        },
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def stored(post: Post) -> int:
    views: int = Post.objects.values_list("view_count", flat=True).get(pk=post.pk)
    return views


def test_it_flushes_at_once_refreshes_trending_and_ends_with_sigterm(redis_url: str) -> None:
    post = factories.post()
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    with schedule(redis_url, database_url()) as process:
        assert comes_true(lambda: FlushRun.objects.count() >= 2 and bool(reports.trending()))
        assert stored(post) == 1
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors


def test_it_logs_an_error_and_goes_on(redis_url: str) -> None:
    missing = f"{database_url()}_missing"
    with schedule(redis_url, missing) as process:
        lines = iter(process.stderr or [])
        failed = list(islice(_failures(lines), 2))
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    assert "flush-changed" in failed[0]
    assert "flush-views" in failed[1]


SITE_SETTINGS = """
from tests.settings import *


def tenant():
    from tests.site.models import Post

    return Post.objects.count()


READTRACK = {**READTRACK, "PREFIX": "site_settings.tenant"}
"""


def test_a_prefix_that_fails_does_not_end_it(tmp_path: Path, redis_url: str) -> None:
    (tmp_path / "site_settings.py").write_text(SITE_SETTINGS)
    environment = {
        "DJANGO_SETTINGS_MODULE": "site_settings",
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
    }
    missing = f"{database_url()}_missing"
    with schedule(redis_url, missing, environment=environment) as process:
        assert any("does not know which jobs are due" in line for line in process.stderr or [])
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors


def _failures(lines: Iterator[str]) -> Iterator[str]:
    return (line for line in lines if "The scheduled " in line)


def test_once_for_cron_runs_what_is_due_and_no_more(redis_url: str) -> None:
    post = factories.post()
    for visitor in ("first", "second"):
        tracker.record(factories.hit(f"site.post:{post.pk}", visitor=Visitor(visitor)))
        call_command("readtrack", "schedule", "--once", verbosity=0)
        assert stored(post) == 1, visitor
    assert FlushRun.objects.count() == 2


def test_once_fails_if_a_job_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ValueError

    ran: list[str] = []
    jobs = [Job("bad", 60.0, fail), Job("good", 60.0, lambda: ran.append("good"))]
    monkeypatch.setattr(scheduled, "jobs", lambda: jobs)
    with pytest.raises(CommandError, match="Failed: bad"):
        call_command("readtrack", "schedule", "--once", verbosity=0)
    assert ran == ["good"]


def test_once_leaves_the_full_flush_out_where_redis_refuses_claims(
    start_redis: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Redis.from_url(start_redis().url) as client:
        client.config_set("min-replicas-to-write", 1)
    ran: list[str] = []
    jobs = [Job(name, 60.0, partial(ran.append, name)) for name in ("flush-changed", "flush-views")]
    monkeypatch.setattr(scheduled, "jobs", lambda: jobs)
    call_command("readtrack", "schedule", "--once", verbosity=0)
    assert ran == ["flush-changed"]


@pytest.mark.skipif(django.VERSION >= (6, 0), reason="Django has tasks")
def test_without_tasks_of_django_enqueue_is_refused() -> None:
    with pytest.raises(CommandError, match=r"needs Django 6\.0"):
        call_command("readtrack", "schedule", "--enqueue")
