"""A site without Django's users gets a sentence."""

import pytest
from pytest_django import Settings

from readtrack.hits import readers
from tests.checks.findings import found, the_message
from tests.support.forks import Forks

SITE = """
import sys
from django.conf import settings
from django.core.management import execute_from_command_line

settings.configure(
    SECRET_KEY="x",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://one/0"}},
    INSTALLED_APPS=["readtrack"],
    MIDDLEWARE=["readtrack.middleware.ReadTrackMiddleware"],
    ROOT_URLCONF="readtrack.urls",
)
sys.stderr = sys.stdout
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""


@pytest.mark.parametrize("words", [["check"], ["migrate"], ["readtrack", "flush"]])
def test_a_site_without_users_is_told_to_add_them(bare_forks: Forks, words: list[str]) -> None:
    ended = bare_forks.run(SITE, *words)
    assert ended.code == 1
    assert "readtrack.E052" in ended.output
    assert "Add 'django.contrib.auth' and 'django.contrib.contenttypes'" in ended.output
    assert "Traceback" not in ended.output


def test_a_user_model_of_an_app_that_is_missing_is_found(settings: Settings) -> None:
    assert readers.user_model() is not None
    settings.AUTH_USER_MODEL = "accounts.User"
    assert readers.user_model() is None
    assert "readtrack.E052" in found()
    assert "no users" in the_message("readtrack.E052").msg
