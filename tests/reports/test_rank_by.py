"""RANK_BY: rankings and trending by seen views."""

from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.checks import setting_types
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories

pytestmark = pytest.mark.django_db


def viewed(post: Post, *, views: int, seen: int) -> None:
    for number in range(views):
        visitor = Visitor(f"{post.pk} {number}")
        tracker.record(factories.hit(subject_of(post), visitor=visitor))
        if number < seen:
            hit = factories.hit(subject_of(post), visitor=visitor, by_script=True, is_seen=True)
            tracker.record(hit)


@pytest.fixture
def posts() -> list[Post]:
    """Returns posts that robots view more often than people."""
    category = factories.category()
    return [factories.post(category=category) for _ in range(3)]


def fill(posts: list[Post]) -> None:
    for post, (views, seen) in zip(posts, [(9, 1), (4, 3), (6, 0)], strict=True):
        viewed(post, views=views, seen=seen)


@pytest.mark.parametrize("period", [{}, {"days": 7}, {"days": 2}])
def test_rankings_go_by_seen_views_where_the_site_says_so(
    settings: Settings, posts: list[Post], period: dict[str, Any]
) -> None:
    settings.READTRACK = {"RANK_BY": "seen", "RATE": (0, 10)}
    fill(posts)
    flush()
    assert [*reports.most_viewed(Post, **period)] == [posts[1], posts[0]]
    # What nobody saw is in no list before the hour of its views is over.
    assert reports.most_viewed(Post, by="views", **period)[0] == posts[0]
    assert [*reports.most_viewed(Post.objects.exclude(pk=posts[1].pk), 1, **period)] == [posts[0]]


def test_rankings_go_by_views_by_default_and_by_seen_where_asked(posts: list[Post]) -> None:
    fill(posts)
    flush()
    assert [*reports.most_viewed(Post, days=7)] == [posts[0], posts[2], posts[1]]
    assert [*reports.most_viewed(Post, days=7, by="seen")] == [posts[1], posts[0]]


@pytest.mark.parametrize("rank_by", ["views", "seen"])
def test_trending_goes_by_what_rankings_go_by(
    settings: Settings, posts: list[Post], rank_by: str
) -> None:
    settings.READTRACK = {"RANK_BY": rank_by, "RATE": (0, 10)}
    fill(posts)
    tracker.refresh_trending()
    found = [(trend.obj, trend.views) for trend in reports.trending() if trend.views]
    if rank_by == "seen":
        assert found == [(posts[1], 3), (posts[0], 1)]
    else:
        assert found == [(posts[0], 9), (posts[2], 6), (posts[1], 4)]


def test_a_flush_of_what_changed_finds_views_that_nobody_saw(
    settings: Settings, posts: list[Post], redis: Redis
) -> None:
    settings.READTRACK = {"RANK_BY": "seen"}
    flush()
    viewed(posts[0], views=1, seen=0)
    flush(only_changed=True)
    posts[0].refresh_from_db()
    assert posts[0].view_count == 1
    [bucket] = redis.keys("trending:bucket:*")
    assert redis.ttl(bucket) > 0


def test_another_value_is_an_error(settings: Settings) -> None:
    settings.READTRACK = {"RANK_BY": "clicks"}
    [error] = setting_types.check_types()
    assert "RANK_BY" in error.msg
