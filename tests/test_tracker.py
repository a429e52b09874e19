"""The tracker: recording of views, reads and steps."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser, User
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.hits.hit import Outcome
from readtrack.hits.visitors import Visitor
from readtrack.store import keys
from tests.site.models import Category
from tests.support import factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db


def test_the_same_hit_from_eight_threads_at_once_counts_once(redis: Redis) -> None:
    hit, start = factories.hit("site.post:1"), Barrier(8)

    def record(_: int) -> Outcome:
        start.wait()
        return tracker.record(hit)

    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(record, range(8)))
    assert sum(outcome.counted == ("site.post:1",) for outcome in outcomes) == 1
    assert redis.get("views:total:site.post:1") == "1"
    assert redis.zscore(redis.keys("trending:bucket:*")[0], "site.post:1") == 1


def test_hits_of_eight_threads_on_one_post_are_all_counted(redis: Redis) -> None:
    def record(_: int) -> None:
        for _ in range(25):
            tracker.record(factories.hit("site.post:1"))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(record, range(8)))
    assert redis.get("views:total:site.post:1") == "200"


def test_a_hit_says_what_became_of_it(settings: Settings) -> None:
    settings.READTRACK = {"RATE": (2, 10)}
    visitor = Visitor("someone")
    assert tracker.record(factories.hit("a.b:1", visitor=visitor)) == Outcome(counted=("a.b:1",))
    second = tracker.record(factories.hit("a.b:1", "a.b:2", visitor=visitor))
    assert (second.counted, second.skipped) == (("a.b:2",), {"a.b:1": "repeat"})
    assert tracker.record(factories.hit("a.b:3", visitor=visitor)).skipped == {"a.b:3": "rate"}


def test_a_view_that_is_no_page_counts_once_in_its_window(redis: Redis) -> None:
    post, visitor = factories.post(), Visitor("someone")
    assert tracker.view(post, visitor=visitor) is True
    assert tracker.view(post, visitor=visitor) is False
    assert async_to_sync(tracker.aview)(post, visitor=Visitor("another")) is True
    assert reports.views([post]) == {post: 2}
    with pytest.raises(TypeError, match="Category has no counts"):
        tracker.view(factories.category(), visitor=visitor)


def test_a_limit_of_nothing_is_no_limit(settings: Settings) -> None:
    settings.READTRACK = {"RATE": (0, 10)}
    for number in range(20):
        assert tracker.record(factories.hit(f"a.b:{number}", visitor=Visitor("someone"))).counted


@pytest.mark.parametrize("options", [{}, {"NUMBERS": {"history": False}}])
def test_windows_of_nothing_are_a_second_and_nothing_fails(
    settings: Settings, options: dict[str, Any]
) -> None:
    settings.READTRACK = {"WINDOW": 0, "RATE": (5, 0), **options}
    hit = factories.hit("site.post:1")
    assert [tracker.record(hit).counted, tracker.record(hit).counted] == [("site.post:1",), ()]


def test_the_rate_is_counted_from_the_first_hit_and_never_extended(redis: Redis) -> None:
    visitor = Visitor("someone")
    tracker.record(factories.hit("a.b:1", visitor=visitor))
    redis.expire("rate:someone", 3)
    tracker.record(factories.hit("a.b:2", visitor=visitor))
    assert redis.ttl("rate:someone") <= 3


def test_an_empty_hit_does_not_ask_redis(wire: Wire) -> None:
    with wire.counted() as trips:
        assert tracker.record(factories.hit()) == Outcome()
    assert trips == [0]


def test_views_and_reads_are_recorded_in_one_round_trip(wire: Wire, redis: Redis) -> None:
    tracker.record(factories.hit("a.b:0"))
    with wire.counted() as trips:
        outcome = tracker.record(
            factories.hit("a.b:1", "a.b:2", reads=("a.c:1", "a.c:2"), reader=7)
        )
    assert trips == [1]
    assert outcome == Outcome(counted=("a.b:1", "a.b:2"), read=("a.c:1", "a.c:2"))
    assert redis.getbit("category:a.c:2:read", 7) == 1


def test_categories_can_be_marked_read_and_unread_by_hand(wire: Wire) -> None:
    user, categories = factories.user(), [factories.category() for _ in range(3)]
    tracker.mark_read(user, categories)
    assert reports.unread(user, categories) == set()
    with wire.counted() as trips:
        tracker.mark_read(user, categories)
    assert trips == [1]
    tracker.mark_unread(categories[:1])
    assert reports.unread(user, categories) == {categories[0]}


@pytest.mark.parametrize(
    "options", [{}, {"DOTS": {"readers": "ordinal"}}, {"DOTS": {"form": "sequence"}}], ids=str
)
@pytest.mark.parametrize("nobody", [None, AnonymousUser()], ids=str)
@pytest.mark.usefixtures("new_redis")
def test_nobody_becomes_a_reader(
    settings: Settings, redis: Redis, options: dict[str, Any], nobody: Any
) -> None:
    settings.READTRACK = options
    category = factories.category()
    tracker.mark_read(nobody, [category])
    tracker.mark_all_read(nobody, Category)
    assert redis.keys("*") == []
    assert reports.unread(nobody, [category]) == set()


@pytest.mark.parametrize("options", [{}, {"DOTS": {"readers": "ordinal"}}], ids=str)
@pytest.mark.usefixtures("new_redis")
def test_an_unsaved_user_is_no_reader(
    settings: Settings, redis: Redis, options: dict[str, Any]
) -> None:
    settings.READTRACK = options
    for call in (tracker.mark_read, reports.unread, reports.unread_counts):
        with pytest.raises(ValueError, match="save the user"):
            call(User(username="new"), [factories.category()])
    assert redis.keys("*") == []


@pytest.mark.usefixtures("new_redis")
def test_what_is_no_user_or_has_no_read_state_is_refused(redis: Redis) -> None:
    category, user = factories.category(), factories.user()
    for call in (tracker.mark_read, reports.unread, reports.unread_counts):
        for wrong in (category, "ann", 7):
            with pytest.raises(TypeError, match="no User, the user model"):
                call(wrong, [category])
    without: Any
    for without in ([user], ["news"], [category, factories.post()]):
        with pytest.raises(TypeError, match="has no read state"):
            tracker.mark_read(user, without)
        with pytest.raises(TypeError, match="has no read state"):
            tracker.mark_unread(without)
    for models in (User, User.objects.all()):
        with pytest.raises(TypeError, match="has no read state"):
            tracker.mark_all_read(user, models)
    assert redis.keys("*") == []


@pytest.mark.usefixtures("new_redis")
def test_marking_nothing_does_nothing(redis: Redis) -> None:
    tracker.mark_unread([])
    tracker.mark_read(factories.user(), [])
    assert redis.keys("*") == []


def test_the_trending_list_can_be_computed_ahead(redis: Redis) -> None:
    first, second = factories.subjects("a.b", 2)
    for subject in (first, second, first):
        tracker.record(factories.hit(subject))
    assert tracker.refresh_trending() == 2
    assert redis.zrange(keys.trending_list(keys.tag(first)), 0, 1, desc=True) == [first, second]


@pytest.mark.parametrize(
    "visitor",
    ["x", None, 7, ("x", ""), AnonymousUser()],
    ids=["text", "none", "number", "tuple", "user"],
)
def test_a_visitor_of_another_type_is_named(visitor: Any, redis: Redis) -> None:
    post = factories.post()
    named = f"visitor is .*{type(visitor).__name__}. Pass tracker.visitor"
    with pytest.raises(TypeError, match=named):
        tracker.view(post, visitor=visitor)
    with pytest.raises(TypeError, match=named):
        tracker.step(post, "click", visitor=visitor)
    assert redis.keys("*views*") == []
