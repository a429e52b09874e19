"""The core with this part alone: views wait where the setting says so; else nothing is loaded."""

import json
from typing import Any

import pytest
from redis import Redis

from tests.support.forks import Forks

pytestmark = pytest.mark.one_server("starts sites of its own")

# A process of the site. It prints what it saw.
SITE = """
import json
import sys

import django
from django.conf import settings

setting, *parts = sys.argv[1:]
settings.INSTALLED_APPS = [
    name for name in settings.INSTALLED_APPS if not name.startswith("readtrack.")
]
settings.INSTALLED_APPS += parts
settings.READTRACK = {**settings.READTRACK, "DEBUG_HEADER": True, "BUFFER": json.loads(setting)}
django.setup()
from django.core.checks import run_checks
from django.core.management import call_command

call_command("migrate", verbosity=0, run_syncdb=True)

from readtrack import reports
from tests.support import factories

post = factories.post()
said = [factories.browser().get(f"/posts/{post.pk}/")["X-Readtrack"] for _ in range(2)]
at_once = reports.views([post])[post]
is_loaded = "readtrack.buffer.queue" in sys.modules
if said == ["queued", "queued"]:
    from readtrack.buffer.queue import hit_buffer

    hit_buffer.close()
print(json.dumps({
    "said": said,
    "views": [at_once, reports.views([post])[post]],
    "is loaded": is_loaded,
    "problems": [message.msg for message in run_checks() if "BUFFER" in message.msg],
}))
"""
ON = '{"seconds": 60}'
DIRECT = {"said": ["counted", "skipped; reason=repeat"], "views": [1, 1], "is loaded": False}


def site(bare_forks: Forks, redis_url: str, *words: str) -> Any:
    """Returns what a process of the site has seen."""
    done = bare_forks.run(
        SITE,
        *words,
        DJANGO_SETTINGS_MODULE="tests.settings",
        DATABASE_URL="sqlite:///:memory:",
        READTRACK_TEST_REDIS_URL=redis_url,
    )
    assert done.code == 0, done.output
    return json.loads(done.output)


def test_views_wait_with_the_setting(bare_forks: Forks, redis: Redis, redis_url: str) -> None:
    assert site(bare_forks, redis_url, ON, "readtrack.buffer") == {
        "said": ["queued", "queued"],
        "views": [0, 1],
        "is loaded": True,
        "problems": [],
    }
    assert redis.keys("views:skips:*")  # the repeat


def test_without_the_setting_nothing_waits(bare_forks: Forks, redis: Redis, redis_url: str) -> None:
    assert site(bare_forks, redis_url, "{}", "readtrack.buffer") == {**DIRECT, "problems": []}


def test_without_the_part_the_setting_has_no_effect_and_a_check_says_so(
    bare_forks: Forks, redis: Redis, redis_url: str
) -> None:
    assert site(bare_forks, redis_url, ON) == {
        **DIRECT,
        "problems": [
            "READTRACK['BUFFER'] has no effect: readtrack.buffer is not installed.",
        ],
    }
