"""While you were away: what is new to a reader, as data for the site's own mail."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser
from pytest_django import Settings
from pytest_django.fixtures import DjangoAssertNumQueries

from readtrack import buckets, reports, tracker
from readtrack.audience import while_away
from readtrack.audience.reports import aunread_digest, unread_digest
from tests.conftest import use_redis
from tests.site.models import Category, Shelf, Topic
from tests.support import factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db


def test_it_has_what_was_published_since_the_last_one_first(
    user: Any, categories: list[Category]
) -> None:
    began = buckets.now() - timedelta(seconds=1)
    for category in (categories[3], categories[1]):
        tracker.mark_unread([category])
    found = unread_digest(user)
    assert [one.category for one in found] == [categories[1], categories[3]]
    for one in found:
        assert one.items is None  # a bitmap does not know how many
        assert one.published is not None
        assert began < one.published < buckets.now() + timedelta(seconds=1)


def test_a_form_with_numbers_tells_how_many_are_new(
    categories: list[Category], settings: Settings
) -> None:
    settings.READTRACK = {"DOTS": {"form": "sequence"}}
    user = factories.user()
    tracker.mark_read(user, categories)
    tracker.mark_unread(categories[:2])
    tracker.mark_unread(categories[:1])
    numbers = {one.category: one.items for one in unread_digest(user)}
    assert numbers == {categories[0]: 2, categories[1]: 1}


@pytest.mark.needs_parts("threads")
def test_positions_tell_how_many_are_new_too(settings: Settings) -> None:
    settings.READTRACK = {"MODELS": {"site.Topic": {"read_state": "positions"}}}
    user = factories.user()
    topics = [Topic.objects.create(name=f"Topic {number}") for number in range(3)]
    tracker.mark_read(user, topics)
    tracker.mark_unread(topics[:2])
    numbers = {one.category: one.items for one in unread_digest(user, models=[Topic])}
    assert numbers == {topics[0]: 1, topics[1]: 1}


def test_nothing_is_marked_read(user: Any, categories: list[Category]) -> None:
    tracker.mark_unread(categories[:1])
    for _ in range(2):
        assert len(unread_digest(user)) == 1
    assert reports.unread(user, categories) == {categories[0]}


def test_it_is_limited_to_those_that_were_published_last(
    user: Any, categories: list[Category]
) -> None:
    for category in categories:
        tracker.mark_unread([category])
    found = [one.category for one in unread_digest(user, limit=2)]
    assert found == [categories[4], categories[3]]


def test_it_is_of_all_models_or_of_those_and_the_rows_that_are_named(
    user: Any, categories: list[Category]
) -> None:
    shelf = Shelf.objects.create(code="a")
    tracker.mark_unread([categories[0], categories[1], shelf])
    everything = {one.category for one in unread_digest(user)}
    assert everything == {categories[0], categories[1], shelf}
    assert [one.category for one in unread_digest(user, models=[Shelf])] == [shelf]
    rows = Category.objects.filter(pk=categories[1].pk)
    assert [one.category for one in unread_digest(user, models=[rows])] == [categories[1]]


def test_of_a_large_model_the_newest_rows_are_looked_at(
    user: Any, categories: list[Category], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(while_away, "MOST_IN_TOTAL", 2)
    tracker.mark_unread(categories)
    found = {one.category for one in unread_digest(user, models=[Category])}
    assert found == {*categories[3:]}
    rows = Category.objects.order_by("pk")
    found = {one.category for one in unread_digest(user, models=[rows])}
    assert found == {*categories[:2]}


def test_nobody_and_a_site_without_redis_have_nothing_new(
    user: Any, categories: list[Category], settings: Settings
) -> None:
    tracker.mark_unread(categories)
    assert unread_digest(AnonymousUser()) == []
    with pytest.raises(TypeError):
        unread_digest("ann")
    use_redis(settings, "redis://127.0.0.1:1/0")
    assert unread_digest(user) == []


def test_it_costs_a_query_a_model_and_two_round_trips(
    user: Any,
    categories: list[Category],
    wire: Wire,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    tracker.mark_unread(categories[:2])
    before = wire.trips
    with django_assert_num_queries(1):
        assert len(unread_digest(user, models=[Category])) == 2
    assert wire.trips - before <= 2


def test_the_event_loop_can_wait_for_it(user: Any, categories: list[Category]) -> None:
    tracker.mark_unread(categories[:1])
    [one] = async_to_sync(aunread_digest)(user)
    assert one.category == categories[0]
