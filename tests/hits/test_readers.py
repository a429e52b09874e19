"""Numbers of readers, by each kind of user id and without one, and their upper bound."""

import logging
import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import models
from django.test import Client
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.hits import readers
from readtrack.hits.readers import ReaderError
from tests.site.models import Review
from tests.support import factories
from tests.support.bounds import set_most_bits


@pytest.mark.parametrize(
    ("field", "has_ordinals"),
    [
        (models.AutoField(), False),
        (models.BigAutoField(), False),
        (models.IntegerField(), False),
        (models.OneToOneField(User, on_delete=models.CASCADE), False),
        (models.UUIDField(), True),
        (models.CharField(), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_type_of_the_users_key_decides_how_readers_are_numbered(
    field: Any, settings: Settings, monkeypatch: pytest.MonkeyPatch, *, has_ordinals: bool
) -> None:
    model = SimpleNamespace(
        _meta=SimpleNamespace(pk=field if field.remote_field is None else _profile_key())
    )
    monkeypatch.setattr(readers, "get_user_model", lambda: model)
    settings.READTRACK = {}  # clears what was cached, now and at the end
    assert readers.has_ordinals() is has_ordinals


def _profile_key() -> Any:
    return Review._meta.pk


@pytest.mark.parametrize(
    ("options", "pk", "reader"),
    [
        ({}, 5, 5),
        ({"DOTS": {"readers": "id"}}, 5, 5),
        ({"DOTS": {"readers": "ordinal"}}, 5, "5"),
        ({"DOTS": {"readers": "ordinal"}}, 2**63, str(2**63)),
        (
            {"DOTS": {"readers": "ordinal"}},
            uuid.UUID(int=5),
            "00000000-0000-0000-0000-000000000005",
        ),
        ({"DOTS": {"readers": "ordinal"}}, "anon:é", "anon%3A%C3%A9"),
        ({"DOTS": {"anonymous": 1_000_000}}, 5, "5"),
    ],
)
def test_a_reader_is_a_number_or_a_name(
    options: dict[str, Any], pk: Any, reader: Any, settings: Any
) -> None:
    settings.READTRACK = options
    assert readers.reader_by_id(pk) == reader


@pytest.mark.parametrize("options", [{}, {"DOTS": {"readers": "ordinal"}}])
def test_a_user_without_an_id_is_no_reader(settings: Any, options: dict[str, Any]) -> None:
    settings.READTRACK = options
    assert readers.reader_or_none(None) is None


@pytest.mark.django_db
def test_anonymous_visitors_have_dots_by_their_cookie_if_the_site_wants(
    settings: Any, redis: Redis
) -> None:
    settings.READTRACK = {"DOTS": {"anonymous": 1_000_000}}
    post, category = factories.post(), factories.category()
    one, other = factories_browser(), factories_browser()
    assert "readtrack-dot" not in one.get("/list/").text
    assert redis.keys("readers") == []
    one.get(f"/posts/{post.pk}/")  # brings the cookie
    other.get(f"/categories/{category.pk}/")  # so does this
    assert "readtrack-dot" in one.get("/list/").text
    one.get(f"/categories/{category.pk}/")
    assert "readtrack-dot" not in one.get("/list/").text
    assert "readtrack-dot" in other.get("/list/").text
    [numbered] = redis.keys("readers:anonymous:*")
    assert [len(name) for name in redis.hgetall(numbered)] == [16]


@pytest.mark.django_db
def test_dots_of_anonymous_visitors_light_the_dots_of_all_users_once(settings: Any) -> None:
    client, category = factories_browser(), factories.category()
    client.force_login(factories.user())
    client.get(f"/categories/{category.pk}/")
    assert "readtrack-dot" not in client.get("/list/").text
    settings.READTRACK = {"DOTS": {"anonymous": 1_000_000}}
    assert "readtrack-dot" in client.get("/list/").text
    client.get(f"/categories/{category.pk}/")
    assert "readtrack-dot" not in client.get("/list/").text


@pytest.mark.django_db
def test_without_a_cookie_anonymous_visitors_have_no_dots(settings: Any, redis: Redis) -> None:
    settings.READTRACK = {"DOTS": {"anonymous": 1_000_000}, "COOKIE": {"name": ""}}
    category = factories.category()
    factories_browser().get(f"/categories/{category.pk}/")
    assert redis.keys("category:*") == []


def factories_browser() -> Any:
    return Client(headers={"User-Agent": factories.BROWSER})


@pytest.mark.django_db
def test_a_site_with_scattered_users_has_the_same_dots(settings: Any) -> None:
    settings.READTRACK = {"DOTS": {"readers": "ordinal"}}
    user, category = factories.user(pk=2**31 - 1), factories.category()
    client = factories_browser()
    client.force_login(user)
    assert "readtrack-dot" in client.get("/list/").text
    assert "readtrack-dot" not in client.get(f"/categories/{category.pk}/").text
    assert "readtrack-dot" not in client.get("/list/").text


@pytest.mark.parametrize("pk", [-1, 100_000_001, 2**63, "x", None])
def test_an_id_can_never_allocate_more_than_its_share(pk: Any) -> None:
    with pytest.raises(ReaderError, match="from 0 to 100000000"):
        readers.reader_by_id(pk)


def test_no_position_is_above_the_bound() -> None:
    set_most_bits(7)
    assert readers.reader_by_id(7) == 7
    with pytest.raises(ReaderError):
        readers.reader_by_id(8)


@pytest.mark.django_db
def test_a_reader_out_of_bounds_gets_pages_without_dots_and_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture, redis: Any
) -> None:
    set_most_bits(1000)
    category, user = factories.category(), factories.user(pk=5_000_001)
    browser = factories.browser(user)
    for _ in range(2):
        assert "readtrack-dot" not in browser.get("/list/").text
        assert browser.get(f"/categories/{category.pk}/").status_code == 200
    assert redis.keys("category:*") == []
    assert [record.levelno for record in caplog.records if record.name == "readtrack"] == [
        logging.WARNING
    ]
    with pytest.raises(ReaderError):
        tracker.mark_read(user, [category])
    assert reports.unread(user, [category]) == set()
    assert reports.unread_counts(user, [category]) == {category: 0}


@pytest.mark.parametrize(
    ("reader", "number"),
    [(7, 7), ("7", 7), (None, None), ("anon:7", None), ("100000001", None), ("a", None)],
)
def test_a_user_id_is_a_number_however_readers_are_numbered(
    reader: Any, number: int | None
) -> None:
    assert readers.number_of(reader) == number
