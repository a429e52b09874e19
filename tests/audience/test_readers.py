"""Which users have read an object."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries, Settings
from redis import Redis

from readtrack import tracker
from readtrack.audience import readers
from readtrack.audience.reports import readers_of, unread_by
from readtrack.sql.read_states import NotRestoredError
from readtrack.store import keys
from tests.site.models import Category
from tests.support import factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"DOTS": {"form": "sequence"}},
        {"DOTS": {"readers": "ordinal"}},
        {"DOTS": {"form": "sequence", "readers": "ordinal"}},
        pytest.param(
            {"MODELS": {"site.Category": {"read_state": "positions"}}},
            marks=pytest.mark.needs_parts("threads"),
        ),
    ],
    ids=["bitmap", "sequence", "bitmap by ordinals", "sequence by ordinals", "positions"],
)
def test_who_has_read_it_and_who_has_not_are_all_users_together(
    settings: Settings, redis: Redis, options: dict[str, Any]
) -> None:
    settings.READTRACK = options
    category = factories.category()
    users = [factories.user() for _ in range(5)]
    tracker.mark_unread([category])
    for user in users[1:3]:
        tracker.mark_read(user, [category])
    assert [*readers_of(category)] == users[1:3]
    assert [*unread_by(category)] == [users[0], *users[3:]]
    team = User.objects.filter(pk__in=[users[0].pk, users[1].pk])
    assert [*readers_of(category, team)] == [users[1]]
    assert [*unread_by(category, team)] == [users[0]]
    tracker.mark_unread([category])
    assert [*readers_of(category)] == []


def test_users_are_asked_for_in_pages_of_one_query_and_one_round_trip(
    wire: Wire,
    redis: Redis,
    monkeypatch: pytest.MonkeyPatch,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    monkeypatch.setattr(readers, "USERS_AT_ONCE", 2)
    category = factories.category()
    users = [factories.user() for _ in range(5)]
    tracker.mark_unread([category])
    assert [*unread_by(category)] == users
    found = unread_by(category)
    with django_assert_num_queries(1), wire.counted() as trips:
        assert next(found) == users[0]
    assert trips == [1]


def test_nobody_is_said_to_have_read_what_redis_has_lost(redis: Redis) -> None:
    category = factories.category()
    factories.user()
    for tag in keys.tags():
        redis.delete(keys.reads_began(tag))
    with pytest.raises(NotRestoredError):
        [*readers_of(category)]


def test_an_object_without_read_state_and_one_that_is_not_saved_are_refused() -> None:
    with pytest.raises(TypeError, match="has no read state"):
        readers_of(factories.post())
    with pytest.raises(ValueError, match="has no primary key yet"):
        unread_by(Category())
