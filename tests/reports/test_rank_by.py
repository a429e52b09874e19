"""The key 'rank_by' of NUMBERS: rankings and trending by seen views."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.checks import setting_types
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.store import scripts
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories

pytestmark = pytest.mark.django_db


def viewed(post: Post, *, views: int, seen: int) -> None:
    for number in range(views):
        visitor = Visitor(f"{post.pk} {number}")
        tracker.record(factories.hit(subject_of(post), visitor=visitor))
        if number < seen:
            hit = factories.hit(subject_of(post), visitor=visitor, is_report=True, is_seen=True)
            tracker.record(hit)


@pytest.fixture
def posts() -> list[Post]:
    """Returns posts that robots view more often than people."""
    category = factories.category()
    return [factories.post(category=category) for _ in range(3)]


def fill(posts: list[Post]) -> None:
    for post, (views, seen) in zip(posts, [(9, 1), (4, 3), (6, 0)], strict=True):
        viewed(post, views=views, seen=seen)


@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize("period", [{}, {"days": 7}, {"days": 2}])
def test_rankings_go_by_seen_views_where_the_site_says_so(
    settings: Settings, posts: list[Post], period: dict[str, Any]
) -> None:
    from readtrack.numbers import reports as numbers_reports

    settings.READTRACK = {"NUMBERS": {"rank_by": "seen"}, "RATE": (0, 10)}
    fill(posts)
    flush()
    assert [*numbers_reports.most_viewed(Post, **period)] == [posts[1], posts[0]]
    # What nobody saw is in no list before the hour of its views is over.
    assert numbers_reports.most_viewed(Post, by="views", **period)[0] == posts[0]
    assert [*numbers_reports.most_viewed(Post.objects.exclude(pk=posts[1].pk), 1, **period)] == [
        posts[0]
    ]


@pytest.mark.needs_parts("numbers")
def test_rankings_go_by_views_by_default_and_by_seen_where_asked(posts: list[Post]) -> None:
    from readtrack.numbers import reports as numbers_reports

    fill(posts)
    flush()
    assert [*numbers_reports.most_viewed(Post, days=7)] == [posts[0], posts[2], posts[1]]
    assert [*numbers_reports.most_viewed(Post, days=7, by="seen")] == [posts[1], posts[0]]


@pytest.mark.needs_parts("numbers")
def test_the_most_seen_of_all_time_are_read_in_portions(
    posts: list[Post], monkeypatch: pytest.MonkeyPatch
) -> None:
    from readtrack.numbers import reports as numbers_reports
    from readtrack.numbers.models import Breakdown
    from readtrack.numbers.reports import rankings

    for post, seen in zip(posts, (1, 3, 2), strict=True):
        Breakdown.objects.create(subject=subject_of(post), kind="reading", field="seen", count=seen)
    in_order = [posts[1], posts[2], posts[0]]
    without_best = Post.objects.exclude(pk=posts[1].pk)
    assert numbers_reports.most_viewed(Post, by="seen") == in_order
    monkeypatch.setattr(scripts, "SLICE", 1)  # so that three rows are many
    monkeypatch.setattr(rankings, "AT_ONCE", 1)
    monkeypatch.setattr(rankings, "PORTION", 1)
    with CaptureQueriesContext(connection) as queries:
        assert numbers_reports.most_viewed(Post, 1, by="seen") == in_order[:1]
    of_seen = [query["sql"] for query in queries if "readtrack_numbers_breakdown" in query["sql"]]
    assert len(of_seen) == 1
    assert "LIMIT 1" in of_seen[0]
    assert numbers_reports.most_viewed(Post, by="seen") == in_order
    assert numbers_reports.most_viewed(without_best, 1, by="seen") == in_order[1:2]


@pytest.mark.needs_parts("numbers")
def test_the_most_seen_of_few_rows_are_looked_up_among_these_rows(posts: list[Post]) -> None:
    from readtrack.numbers import reports as numbers_reports
    from readtrack.numbers.models import Breakdown

    many = [factories.post() for _ in range(60)]
    Breakdown.objects.bulk_create(
        Breakdown(subject=subject_of(post), kind="reading", field="seen", count=number + 1)
        for number, post in enumerate([*posts, *many])
    )
    few = Post.objects.filter(category=posts[0].category_id)
    with CaptureQueriesContext(connection) as queries:
        assert numbers_reports.most_viewed(few, by="seen") == [posts[2], posts[1], posts[0]]
    assert len(queries) == 3  # for the keys, for the counts and for the rows


@pytest.mark.needs_parts("script")
@pytest.mark.parametrize("rank_by", ["views", "seen"])
@pytest.mark.needs_parts("numbers")
def test_trending_goes_by_what_rankings_go_by(
    settings: Settings, posts: list[Post], rank_by: str
) -> None:
    settings.READTRACK = {"NUMBERS": {"rank_by": rank_by}, "RATE": (0, 10)}
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
    settings.READTRACK = {"NUMBERS": {"rank_by": "seen"}}
    flush()
    viewed(posts[0], views=1, seen=0)
    flush(only_changed=True)
    posts[0].refresh_from_db()
    assert posts[0].view_count == 1
    [bucket] = redis.keys("trending:bucket:*")
    assert redis.ttl(bucket) > 0


@pytest.mark.needs_parts("numbers")
def test_another_value_is_an_error(settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"rank_by": "clicks"}}
    [error] = setting_types.check_types()
    assert "READTRACK['NUMBERS']['rank_by'] is 'clicks'" in error.msg
