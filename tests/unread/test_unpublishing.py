"""News that is deleted, hidden or moved away is taken back, if the numbers of news are known."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from pytest_django import Settings
from redis import Redis

from readtrack import receivers, reports, tracker
from readtrack.models import PendingPublication
from readtrack.store.circuit import circuit
from tests.conftest import Start
from tests.site.models import Article, Category, Gadget, Page, Post, Shelf, Topic
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _numbers(settings: Settings) -> None:
    settings.READTRACK = {"DOTS": {"form": "sequence"}}


@pytest.fixture
def category() -> Category:
    return factories.category()


@pytest.fixture
def users(category: Category) -> list[Any]:
    """Returns three users who have read the category."""
    users = [factories.user() for _ in range(3)]
    for user in users:
        tracker.mark_read(user, [category])
    return users


def unread(user: Any, category: Any) -> int:
    return reports.unread_counts(user, [category]).get(category, 0)


def test_a_deleted_post_leaves_no_dot(category: Category, users: list[Any]) -> None:
    post = factories.post(category=category)
    assert unread(users[0], category) == 1
    post.delete()
    assert unread(users[0], category) == 0
    factories.post(category=category)
    assert unread(users[0], category) == 1


def test_each_reader_loses_what_the_reader_had_not_seen(
    category: Category, users: list[Any]
) -> None:
    early, between, late = users
    first = factories.post(category=category)
    tracker.mark_read(early, [category])  # one of four
    second = factories.post(category=category)
    third = factories.post(category=category)
    tracker.mark_read(between, [category])  # three of four
    fourth = factories.post(category=category)
    tracker.mark_read(late, [category])
    assert [unread(user, category) for user in users] == [3, 1, 0]
    second.delete()
    assert [unread(user, category) for user in users] == [2, 1, 0]
    fourth.delete()
    assert [unread(user, category) for user in users] == [1, 0, 0]
    first.delete()
    assert [unread(user, category) for user in users] == [1, 0, 0]
    third.delete()
    assert [unread(user, category) for user in users] == [0, 0, 0]
    factories.post(category=category)
    assert [unread(user, category) for user in users] == [1, 1, 1]


@pytest.mark.parametrize("more", [lambda one: tracker.mark_unread([one]), lambda one: None])
def test_what_came_later_without_a_post_is_known(
    category: Category, users: list[Any], more: Callable[[Category], Any]
) -> None:
    post = factories.post(category=category)
    tracker.mark_read(users[0], [category])
    more(category)
    tracker.publish(Post.objects.bulk_create([Post(title="x", category=category)]))
    together = Post.objects.bulk_create([Post(title=str(n), category=category) for n in range(3)])
    tracker.publish(together)
    before = [unread(user, category) for user in users]
    post.delete()
    after = [unread(user, category) for user in users]
    assert after == [before[0], before[1] - 1, before[2] - 1]


def test_the_author_of_a_deleted_post_misses_nothing_afterwards(category: Category) -> None:
    author, reader = factories.user(), factories.user()
    for user in (author, reader):
        tracker.mark_read(user, [category])
    own = Article.objects.create(category=category, author=author)
    assert [unread(user, category) for user in (author, reader)] == [0, 1]
    own.delete()
    assert [unread(user, category) for user in (author, reader)] == [0, 0]
    Article.objects.create(category=category)
    assert [unread(user, category) for user in (author, reader)] == [1, 1]


def test_a_post_that_moves_is_news_in_its_new_category_alone(
    category: Category, users: list[Any]
) -> None:
    other = factories.category()
    tracker.mark_read(users[0], [other])
    article = Article.objects.create(category=category)
    article.category = other
    article.save()
    assert (unread(users[0], category), unread(users[0], other)) == (0, 1)
    topics = [Topic.objects.create(name="x") for _ in range(2)]
    tracker.mark_read(users[0], topics)
    article.topics.add(*topics)
    assert [unread(users[0], topic) for topic in topics] == [1, 1]
    article.topics.remove(topics[0])
    assert [unread(users[0], topic) for topic in topics] == [0, 1]
    topics[1].articles.remove(article)
    assert [unread(users[0], topic) for topic in topics] == [0, 0]


def test_a_category_that_is_referred_to_by_another_field_is_found(users: list[Any]) -> None:
    shelves = [Shelf.objects.create(code=code) for code in "AB"]
    tracker.mark_read(users[0], shelves)
    page = Page.objects.create(slug="x", shelf=shelves[0])
    page.shelf = shelves[1]
    page.save()
    assert [unread(users[0], shelf) for shelf in shelves] == [0, 1]
    page.delete()
    assert [unread(users[0], shelf) for shelf in shelves] == [0, 0]


def test_a_model_that_is_not_the_sites_own_takes_its_news_back(
    settings: Settings, category: Category, users: list[Any]
) -> None:
    settings.READTRACK = {
        "DOTS": {"form": "sequence"},
        "MODELS": {"site.Gadget": {"news_for": ["category", "shelves"]}},
    }
    receivers.connect()
    shelf = Shelf.objects.create(code="A")
    tracker.mark_read(users[0], [shelf])
    gadget = Gadget.objects.create(name="x", category=category)
    gadget.shelves.add(shelf)
    assert (unread(users[0], category), unread(users[0], shelf)) == (1, 1)
    gadget.delete()
    assert (unread(users[0], category), unread(users[0], shelf)) == (0, 0)


def test_a_hidden_post_is_taken_back_by_a_call(category: Category, users: list[Any]) -> None:
    post = factories.post(category=category)
    with transaction.atomic():
        tracker.unpublish([post])
        assert unread(users[0], category) == 1
    assert unread(users[0], category) == 0
    tracker.unpublish([post])
    assert unread(users[0], category) == 0
    tracker.publish([post])
    assert unread(users[0], category) == 1


def test_what_was_published_to_another_category_is_taken_back_from_it(users: list[Any]) -> None:
    board = factories.category()
    tracker.mark_read(users[0], [board])
    reply = factories.post()
    other = factories.post()
    tracker.publish_to([board], [reply])
    tracker.publish_to([board], [other])
    tracker.unpublish_from([board], [reply])
    assert unread(users[0], board) == 1
    with pytest.raises(TypeError):
        tracker.unpublish_from([reply], [reply])


def test_a_deletion_that_is_rolled_back_takes_nothing_back(
    category: Category, users: list[Any]
) -> None:
    post = factories.post(category=category)
    with transaction.atomic():
        post.delete()
        transaction.set_rollback(True)
    assert unread(users[0], category) == 1


def test_a_post_that_is_deleted_in_its_own_transaction_was_no_news(
    category: Category, users: list[Any]
) -> None:
    with transaction.atomic():
        factories.post(category=category).delete()
    assert unread(users[0], category) == 0
    assert not PendingPublication.objects.exists()


def test_news_that_never_reached_redis_is_taken_out_of_the_outbox(
    category: Category, users: list[Any], start_redis: Start
) -> None:
    start_redis().stop()
    post, other = factories.post(category=category), factories.post(category=category)
    assert PendingPublication.objects.count() == 2
    post.delete()
    assert PendingPublication.objects.count() == 1
    other.delete()
    assert not PendingPublication.objects.exists()


def test_more_readers_than_a_script_looks_through_keep_the_number(
    category: Category, users: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.store.read_state.forms.TAKEN_BACK_IN", 4)
    factories.post(category=category).delete()
    assert unread(users[0], category) == 1


def test_a_number_that_redis_lost_does_not_fall_below_nothing(
    redis: Redis, category: Category, users: list[Any]
) -> None:
    post = factories.post(category=category)
    redis.delete(f"category:site.category:{category.pk}:seen")
    post.delete()
    assert circuit.opened is None
    tracker.mark_read(users[0], [category])
    assert unread(users[0], category) == 0


def test_a_bitmap_keeps_the_dot(
    settings: Settings, category: Category, users: list[Any], redis: Redis
) -> None:
    settings.READTRACK = {"DOTS": {"form": "bitmap"}}
    tracker.mark_read(users[0], [category])
    post = factories.post(category=category)
    with transaction.atomic():
        tracker.unpublish([post])
    post.delete()
    assert reports.unread(users[0], [category]) == {category}
