"""A process that is killed at any step of saving a post loses no news, and lights no dot without a
post.
"""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from pytest_django import Settings

from readtrack import reports, tracker
from readtrack.models import PendingPublication
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.addresses import database_url
from tests.support.depth import DEEP, some

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        connection.vendor != "postgresql", reason="another process sees no database in memory"
    ),
]


@pytest.fixture(params=some(["bitmap"], deep=["sequence"]))
def victim(request: pytest.FixtureRequest, redis_url: str, settings: Settings) -> Iterator[Any]:
    settings.READTRACK = {"DOTS": {"form": request.param}}
    environment = {
        "DATABASE_URL": database_url(),
        "READTRACK_TEST_REDIS_URL": redis_url,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }
    command = [sys.executable, "-m", "tests.unread.victim", request.param]
    with subprocess.Popen(
        command,
        env={**os.environ, **environment},
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.communicate()


def save(victim: Any, *, step: int, category: Any, count: int) -> int:
    """Lets another process save posts and die at that step. Returns its exit code, negative for a
    signal.
    """
    victim.stdin.write(f"{step} {category.pk} {count}\n")
    victim.stdin.flush()
    return int(victim.stdout.readline())


def test_a_process_that_is_killed_at_every_step_of_a_save_loses_no_news(victim: Any) -> None:
    user = factories.user()
    for count in (1, 3):
        _check_each_step(victim, user, count=count)


def _check_each_step(victim: Any, user: User, *, count: int) -> None:
    lost = 0
    # With other distances than these none might fall between the commit and Redis.
    for step in itertools.count(1, 1 if DEEP else 7):
        category = factories.category()
        tracker.mark_read(user, [category])
        code = save(victim, step=step, category=category, count=count)
        is_saved, is_lit = (
            Post.objects.filter(category=category).exists(),
            bool(reports.unread(user, [category])),
        )
        lost += is_saved and not is_lit
        rows = PendingPublication.objects.filter(subject=subject_of(category))
        assert is_saved or not (is_lit or rows.exists())
        tracker.resend()
        assert bool(reports.unread(user, [category])) is is_saved
        assert (
            reports.unread_counts(user, [category])[category]
            <= Post.objects.filter(category=category).count()
        )
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert step > 10
    assert lost > 0, "no kill fell between the commit and Redis"
    assert not PendingPublication.objects.filter(sent=None).exists()
