"""Reports show live counts, and what SQL stores where Redis does not know."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from readtrack import reports, tracker
from readtrack.flush.run import flush
from readtrack.numbers import reports as numbers_reports
from readtrack.subjects import subject_of
from tests.site.models import Page, Post, Product
from tests.support import factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db


def view(*posts: Any, **values: Any) -> None:
    for post in posts:
        tracker.record(factories.hit(subject_of(post), **values))


def test_a_count_is_live() -> None:
    post = factories.post()
    view(post, post)
    assert reports.views([post]) == {post: 2}


def test_views_after_redis_was_lost_are_added_to_what_sql_stores() -> None:
    post = factories.post(view_count=100)
    assert reports.views([post]) == {post: 100}
    view(post)
    assert reports.views([post]) == {post: 101}
    flush()
    assert reports.views([post]) == {post: 101}


def test_an_old_redis_never_shows_less_than_sql(redis: Redis) -> None:
    post = factories.post(view_count=100)
    redis.set(f"views:total:site.post:{post.pk}", 60)
    assert reports.views([post]) == {post: 100}


def test_many_counts_of_all_kinds_are_one_round_trip_and_no_query(
    wire: Wire, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    objs = [
        *(factories.post() for _ in range(50)),
        Product.objects.create(name="x"),
        Page.objects.create(slug="* :"),
    ]
    view(*objs[-3:])
    reports.views(objs)
    with wire.counted() as trips, django_assert_num_queries(0):
        views = reports.views(objs)
    assert trips == [1]
    assert [views[obj] for obj in objs] == [0] * 49 + [1] * 3


@pytest.mark.parametrize(
    "take",
    [
        reports.views,
        numbers_reports.visitors_together,
        reports.reader_counts,
        partial(reports.unread, AnonymousUser()),
        partial(reports.unread_counts, None),
        lambda post: tracker.mark_read(factories.user(), post),
        tracker.mark_unread,
        tracker.publish,
        lambda post: tracker.publish_to(post, []),
        lambda post: tracker.publish_to([], post),
    ],
)
def test_one_object_in_place_of_a_list_is_an_error(take: Any) -> None:
    with pytest.raises(TypeError, match=r"pass a list, \[post\]"):
        take(factories.post())


def test_an_anonymous_user_has_no_dots_and_has_seen_nothing() -> None:
    category = factories.category()
    for nobody in (None, AnonymousUser()):
        assert reports.unread(nobody, [category]) == set()
        assert reports.unread_counts(nobody, [category]) == {category: 0}
        assert not reports.has_seen(nobody, factories.post())


def test_no_objects_are_no_round_trip(wire: Wire) -> None:
    with wire.counted() as trips:
        assert reports.views([]) == {}
        assert reports.unread(factories.user(), []) == set()
    assert trips == [0]


def test_unread_is_what_this_reader_has_not_read(wire: Wire) -> None:
    user, categories = factories.user(), [factories.category() for _ in range(50)]
    tracker.mark_read(user, categories[:20])
    reports.unread(user, categories)
    with wire.counted() as trips:
        assert reports.unread(user, categories) == set(categories[20:])
    assert trips == [1]
    assert reports.unread(factories.user(), categories) == set(categories)
    assert reports.unread(AnonymousUser(), categories) == set()


def test_trending_is_the_last_hour_most_viewed_first(noon: datetime) -> None:
    first, second, old = factories.post(), factories.post(), factories.post()
    view(first, first, second, at=noon - timedelta(minutes=30))
    view(old, old, old, at=noon - timedelta(minutes=61))
    found = reports.trending(at=noon)
    assert [(trend.obj, trend.views) for trend in found] == [(first, 2), (second, 1)]
    assert reports.trending(1, at=noon) == found[:1]


def test_trending_leaves_out_what_is_gone_or_foreign(noon: datetime) -> None:
    post, gone = factories.post(), factories.post()
    view(post, gone, at=noon)
    tracker.record(factories.hit("nowhere.thing:1", at=noon))
    Post.objects.filter(pk=gone.pk).delete()
    assert [trend.obj for trend in reports.trending(at=noon)] == [post]


def test_trending_is_computed_by_one_and_read_by_all(redis: Redis, noon: datetime) -> None:
    post, late = factories.post(), factories.post()
    view(post, at=noon)
    assert len(reports.trending(at=noon)) == 1
    view(late, at=noon)
    assert len(reports.trending(at=noon)) == 1
    redis.delete("trending:list")
    assert len(reports.trending(at=noon)) == 2


def test_hours_come_without_gaps_and_never_extend_their_life(redis: Redis, noon: datetime) -> None:
    post = factories.post()
    view(post, post, at=noon)
    view(post, at=noon - timedelta(hours=2))
    points = numbers_reports.series(hours=4, until=noon)
    assert [point.views for point in points] == [0, 1, 0, 2]
    assert points[-1].start == noon.replace(minute=0, second=0)
    redis.expire("views:hour:2026112012:site.post", 5)
    view(post, at=noon)
    assert redis.ttl("views:hour:2026112012:site.post") <= 5
