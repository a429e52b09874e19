"""Unique visitors after a loss of Redis go on from what SQL has, whatever the strategy."""

from itertools import product
from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.models import Archive, FlushRun
from readtrack.store import counters
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.counts import live, stored
from tests.support.depth import some
from tests.support.interference import dump, restore

pytestmark = pytest.mark.django_db(transaction=True)

STRATEGIES = ["hll", "set", "daily", "bitmap"]
NUMBERED = ["set", "daily", "bitmap"]


@pytest.fixture
def post() -> Post:
    return factories.post()


def come(post: Post, visitors: range) -> None:
    for number in visitors:
        hit = factories.hit(subject_of(post), visitor=Visitor(f"v{number}"), reader=number)
        assert tracker.record(hit).counted


def come_after_a_loss(post: Post, visitors: range, *, before: range, redis: Redis) -> None:
    """Lets visitors come and be flushed, empties Redis, and lets others come."""
    come(post, before)
    flush()
    redis.flushdb()
    come(post, visitors)


def visitors(post: Post) -> int:
    post.refresh_from_db()
    assert reports.visitors([post])[post] == post.visitor_count
    return int(post.visitor_count)


@pytest.mark.parametrize(
    ("strategy", "only_changed"),
    some(
        [("hll", True), ("set", False), ("daily", True), ("bitmap", False)],
        deep=product(STRATEGIES, [True, False]),
    ),
)
def test_sixty_and_forty_are_a_hundred(
    post: Post, redis: Redis, settings: Settings, strategy: str, only_changed: bool
) -> None:
    settings.READTRACK = {"UNIQUE": strategy}
    come_after_a_loss(post, range(100, 140), before=range(60), redis=redis)
    flush(only_changed=only_changed)
    assert stored(post) == 100
    assert visitors(post) == pytest.approx(100, abs=2 if strategy == "hll" else 0)
    come(post, range(140, 150))
    flush()
    assert visitors(post) == pytest.approx(110, abs=2 if strategy == "hll" else 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_visitors_who_return_after_a_loss_count_again_but_in_a_sketch(
    post: Post, redis: Redis, settings: Settings, strategy: str
) -> None:
    settings.READTRACK = {"UNIQUE": strategy}
    come_after_a_loss(post, range(10), before=range(60), redis=redis)
    flush()
    assert visitors(post) == pytest.approx(60, abs=2) if strategy == "hll" else visitors(post) == 70


@pytest.mark.parametrize("strategy", NUMBERED)
def test_a_second_loss_adds_the_first_one_once(
    post: Post, redis: Redis, settings: Settings, strategy: str
) -> None:
    settings.READTRACK = {"UNIQUE": strategy}
    for start in (0, 100, 200):
        come(post, range(start, start + 10))
        flush()
        flush(only_changed=True)
        redis.flushdb()
    come(post, range(300, 301))
    flush()
    assert (stored(post), visitors(post)) == (31, 31)


@pytest.mark.parametrize("strategy", NUMBERED)
def test_visitors_whose_key_was_not_lost_with_the_total_count_once(
    post: Post, redis: Redis, settings: Settings, strategy: str
) -> None:
    settings.READTRACK = {"UNIQUE": strategy}
    come(post, range(10))
    flush()
    redis.delete(f"views:total:{subject_of(post)}")
    come(post, range(10, 13))
    flush()
    assert (stored(post), visitors(post)) == (13, 13)


@pytest.mark.parametrize("strategy", NUMBERED)
def test_an_old_snapshot_is_raised_to_what_sql_has(
    post: Post, redis: Redis, settings: Settings, strategy: str
) -> None:
    settings.READTRACK = {"UNIQUE": strategy}
    come(post, range(10))
    flush()
    snapshot = dump(redis)
    come(post, range(10, 20))
    flush()
    restore(redis, snapshot)
    flush()
    come(post, range(20, 25))
    flush()
    assert (stored(post), visitors(post)) == (25, 25)


@pytest.mark.parametrize("strategy", NUMBERED)
def test_visitors_who_come_during_a_lift_are_not_lost(
    post: Post, redis: Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    settings.READTRACK = {"UNIQUE": strategy}
    come_after_a_loss(post, range(6, 10), before=range(6), redis=redis)
    flush()
    snapshot = dump(redis)
    for _ in range(3):
        redis.delete(*redis.keys("viewed:*"))
        come(post, range(6, 10))
    flush()
    restore(redis, snapshot)
    lift = counters.lift

    def be_late(stored: Any) -> Any:
        monkeypatch.setattr(counters, "lift", lift)
        come(post, range(20, 25))
        return lift(stored)

    monkeypatch.setattr(counters, "lift", be_late)
    assert flush().lifted
    flush()
    assert (stored(post), visitors(post)) == (22, 15)


@pytest.mark.parametrize("strategy", NUMBERED)
def test_a_reset_begins_at_nothing_again(
    post: Post, redis: Redis, settings: Settings, strategy: str
) -> None:
    settings.READTRACK = {"UNIQUE": strategy}
    come_after_a_loss(post, range(10, 12), before=range(10), redis=redis)
    flush()
    assert visitors(post) == 12
    tracker.reset_views(post)
    come(post, range(20, 23))
    flush()
    assert (stored(post), visitors(post)) == (3, 3)
    assert redis.exists(f"views:earlier:{subject_of(post)}") == 0


def test_a_full_flush_stores_the_sketches_of_what_was_viewed_in_the_last_hour(
    post: Post, redis: Redis
) -> None:
    flush()
    other = factories.post()
    come(post, range(3))
    redis.delete(*redis.keys("trending:*"))
    come(other, range(3))
    flush(only_changed=True)
    assert flush().kind == FlushRun.Kind.FULL
    assert dict(Archive.objects.values_list("subject", "visitors")) == {subject_of(other): 3}
    come(other, range(3, 5))
    flush(only_changed=True)
    assert Archive.objects.get().visitors == 3
    flush()
    assert Archive.objects.get().visitors == 5


def test_a_corrupt_sketch_stops_no_flush(post: Post, redis: Redis) -> None:
    other: Any = factories.post()
    come(post, range(3))
    redis.set(f"views:hll:{subject_of(post)}", "no sketch")
    come(post, range(3, 5))
    come(other, range(2))
    flush()
    assert (live(redis, post), stored(post), stored(other)) == (5, 5, 2)
    assert (visitors(post), visitors(other)) == (0, 2)
