"""All checks together."""

import inspect
import re

from django.core.management import call_command
from pytest_django import Settings

from readtrack.checks import setup
from readtrack.checks.setup import CHECKS, check_setup, texts
from tests.checks.findings import found


def test_the_tests_own_site_is_set_up_well() -> None:
    assert check_setup(None) == []
    call_command("check")


def test_each_check_has_an_id_of_its_own_and_a_hint() -> None:
    assert len(CHECKS) == len(
        re.findall(r'^    "readtrack\.', inspect.getsource(setup), re.MULTILINE)
    )
    for name in CHECKS:
        assert all(texts(name).values())
        assert re.fullmatch(r"readtrack\.[EW]\d{3}", name)


def test_checking_touches_no_network(settings: Settings) -> None:
    nowhere = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://192.0.2.1:1/0"}
    settings.CACHES = {"default": nowhere}
    assert found() == []
