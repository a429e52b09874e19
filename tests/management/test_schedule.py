"""`manage.py readtrack schedule`, as a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import django
import pytest
from django.core.management import CommandError, call_command

from readtrack import reports, tracker
from readtrack.models import FlushRun
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
def schedule(redis_url: str, database: str) -> Iterator[subprocess.Popen[str]]:
    """Runs the command, and kills it at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "django", "readtrack", "schedule"],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "DATABASE_URL": database,
            "READTRACK_TEST_REDIS_URL": redis_url,
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
    assert "readtrack.flush_changed" in failed[0]
    assert "readtrack.flush_views" in failed[1]


def _failures(lines: Iterator[str]) -> Iterator[str]:
    return (line for line in lines if "The scheduled " in line)


@pytest.mark.skipif(django.VERSION >= (6, 0), reason="Django has tasks")
def test_without_tasks_of_django_enqueue_is_refused() -> None:
    with pytest.raises(CommandError, match=r"needs Django 6\.0"):
        call_command("readtrack", "schedule", "--enqueue")
