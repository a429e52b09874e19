"""What the project lacks is named."""

from typing import Any

import pytest
from pytest_django import Settings

from tests.checks.findings import found

OURS = "readtrack.middleware.ReadTrackMiddleware"
THEIRS = "django.contrib.auth.middleware.AuthenticationMiddleware"
DUMMY = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}


@pytest.mark.parametrize(
    ("name", "value", "ids"),
    [
        ("READTRACK", {"CACHE": "missing"}, ["readtrack.E004"]),
        ("CACHES", DUMMY, ["readtrack.E005"]),
        ("CACHES", {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache"}}, ["readtrack.E005"]),
        ("MIDDLEWARE", [THEIRS], ["readtrack.W006"]),
        ("MIDDLEWARE", [OURS, THEIRS], ["readtrack.E007"]),
        ("MIDDLEWARE", [OURS], []),
        ("MIDDLEWARE", (THEIRS, OURS), []),
        ("MIDDLEWARE", ["django.middleware.gzip.GZipMiddleware", THEIRS, OURS], []),
        ("MIDDLEWARE", [THEIRS, OURS, "django.middleware.gzip.GZipMiddleware"], ["readtrack.W012"]),
        ("MIDDLEWARE", [THEIRS, OURS, "django.middleware.http.ConditionalGetMiddleware"], ["readtrack.W012"]),
    ],
)
def test_a_wrong_setting_is_found(settings: Settings, name: str, value: Any, ids: list[str]) -> None:
    setattr(settings, name, value)
    assert found() == ids
