"""Whatever is set up wrongly is named, with what to do about it."""

from typing import Any

import pytest
from django.core import checks
from django.core.management import call_command
from django.db import models
from django.test.utils import isolate_apps
from pytest_django import Settings

from readtrack.checks import CHECKS, check_setup
from readtrack.models import Tracked
from tests.site.models import Counted, Page

OURS = "readtrack.middleware.ReadTrackMiddleware"
THEIRS = "django.contrib.auth.middleware.AuthenticationMiddleware"
DUMMY = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}


def found() -> list[str | None]:
    """The ids of what is wrong."""
    return [message.id for message in check_setup(None)]


def the_message(check_id: str) -> checks.CheckMessage:
    [message] = [message for message in check_setup(None) if message.id == check_id]
    return message


def test_the_tests_own_site_is_set_up_well() -> None:
    assert check_setup(None) == []
    call_command("check")


def test_each_check_has_an_id_of_its_own_and_a_hint() -> None:
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    for check in CHECKS:
        assert check.hint
        assert check.id.startswith("readtrack.E" if check.level == checks.ERROR else "readtrack.W")


@pytest.mark.parametrize(
    ("name", "value", "ids"),
    [
        ("READTRACK", [], ["readtrack.E001"]),
        ("READTRACK", None, ["readtrack.E001"]),
        ("READTRACK", {"WINDWO": 60}, ["readtrack.W003"]),
        ("READTRACK", {1: 60}, ["readtrack.W003"]),
        ("READTRACK", {"CACHE": "missing"}, ["readtrack.E004"]),
        ("READTRACK", {"CATEGORIES": ["site.Nothing"]}, ["readtrack.E008"]),
        ("READTRACK", {"CATEGORIES": ["nonsense"]}, ["readtrack.E008"]),
        ("READTRACK", {"CATEGORIES": ["site.Manual"]}, []),
        ("READTRACK", {"UNIQUE": "guess"}, ["readtrack.E030"]),
        ("READTRACK", {"UNIQUE": "daily"}, []),
        ("READTRACK", {"WINDOW_STORE": "disk"}, ["readtrack.E031"]),
        ("READTRACK", {"WINDOW_STORE": "compact"}, []),
        ("READTRACK", {"FUNNEL": []}, ["readtrack.E032"]),
        ("READTRACK", {"FUNNEL": ["view", "click", "view"]}, ["readtrack.E032"]),
        ("READTRACK", {"FUNNEL": ["view"]}, []),
        ("READTRACK", {"DIMENSIONS": ["shoe"]}, ["readtrack.E033"]),
        ("READTRACK", {"DIMENSIONS": ["device", "tests.test_dimensions.plan"]}, []),
        ("READTRACK", {"DIMENSIONS": ["os", "os"]}, ["readtrack.E033", "readtrack.E033"]),
        ("READTRACK", {"DIMENSIONS": ["tests.test_dimensions.UNCALLABLE"]}, ["readtrack.E033"]),
        ("CACHES", DUMMY, ["readtrack.E005"]),
        ("CACHES", {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache"}}, ["readtrack.E005"]),
        ("MIDDLEWARE", [THEIRS], ["readtrack.W006"]),
        ("MIDDLEWARE", [OURS, THEIRS], ["readtrack.E007"]),
        ("MIDDLEWARE", [OURS], []),
        ("MIDDLEWARE", (THEIRS, OURS), []),
    ],
)
def test_a_wrong_setting_is_found(settings: Settings, name: str, value: Any, ids: list[str]) -> None:
    setattr(settings, name, value)
    assert found() == ids


@pytest.mark.parametrize(
    ("name", "value", "fits"),
    [
        ("WINDOW", 60, True),
        ("WINDOW", 0, True),
        ("WINDOW", "60", False),
        ("WINDOW", 60.0, False),
        ("WINDOW", True, False),
        ("WINDOW", -1, False),
        ("WINDOW", None, False),
        ("TIMEOUT", 1, True),
        ("TIMEOUT", 0.1, True),
        ("TIMEOUT", 0, False),
        ("TIMEOUT", "fast", False),
        ("PREFIX", "site:", True),
        ("PREFIX", b"site:", False),
        ("CATEGORIES", [], True),
        ("CATEGORIES", ("site.Manual",), True),
        ("CATEGORIES", "site.Manual", False),
        ("CATEGORIES", [7], False),
        ("CATEGORIES", 7, False),
        ("CACHE", ["default"], False),
    ],
)
def test_a_setting_has_to_fit_its_type(settings: Settings, name: str, value: Any, fits: bool) -> None:
    settings.READTRACK = {name: value}
    assert ("readtrack.E002" not in found()) == fits


def test_messages_name_the_culprit_and_hints_the_way_out(settings: Settings) -> None:
    settings.READTRACK = {"WINDWO": 60, "RATE_LIMIT": "5"}
    typo, kind = the_message("readtrack.W003"), the_message("readtrack.E002")
    assert "WINDWO" in typo.msg
    assert "WINDOW" in str(typo.hint)
    assert "RATE_LIMIT" in kind.msg
    assert "'5'" in kind.msg
    assert "int" in str(kind.hint)


def test_a_name_that_resembles_nothing_is_told_all_there_are(settings: Settings) -> None:
    settings.READTRACK = {"ZZZZZZZZ": 1}
    assert "FLUSH_CHUNK" in str(the_message("readtrack.W003").hint)


def test_news_for_something_that_the_model_lacks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Page, "news_for", ("section", "sektion"))
    assert found() == ["readtrack.E009"]
    assert "sektion" in the_message("readtrack.E009").msg


@isolate_apps("tests.site", attr_name="apps")
def test_a_composite_primary_key_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Chapter(Tracked):
        pk = models.CompositePrimaryKey("book", "number")
        book = models.IntegerField()
        number = models.IntegerField()

        class Meta:
            app_label = "site"

    monkeypatch.setattr("readtrack.subjects.tracked_models", lambda: [Chapter])
    assert "readtrack.E010" in found()


def test_a_model_without_its_migration_is_found(settings: Settings) -> None:
    settings.MIGRATION_MODULES = {"site": "tests.empty_migrations"}
    assert set(found()) == {"readtrack.W011"}
    assert "makemigrations site" in str(check_setup(None)[-1].hint)


def test_an_app_without_migrations_needs_none(settings: Settings) -> None:
    settings.MIGRATION_MODULES = {"site": None}
    assert found() == []


def test_a_site_without_tracked_models_has_nothing_to_migrate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readtrack.subjects.tracked_models", list)
    assert found() == []


def test_checking_touches_no_network(settings: Settings) -> None:
    nowhere = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://192.0.2.1:1/0"}
    settings.CACHES = {"default": nowhere}
    assert found() == []


def test_a_models_own_way_of_counting_visitors_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "unique_strategy", "guess")
    words = "site.Counted.unique_strategy is 'guess', which is no way of counting unique visitors."
    assert the_message("readtrack.E030").msg == words
