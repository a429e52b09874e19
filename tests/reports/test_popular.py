"""The most viewed of a period are those that adding up the whole history finds."""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.template import Context, Template
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import History, Popular
from readtrack.numbers.sql import history, popular
from readtrack.numbers.sql.period_numbers import period_of_hour
from readtrack.sql import raising
from readtrack.sql.faults import Faults
from readtrack.sql.row_counts import RowCounts
from readtrack.sql.vendors import Vendor
from readtrack.subjects import subject_of
from tests.site.models import Manual, Post, Review
from tests.support import counts, factories
from tests.support.depth import examples
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
HOURS_AGO = buckets.hour_index(buckets.now()) - 3
POSTS = 6
# Of a post in an hour: views, visitors, and whether it was reset before.
ROW = st.tuples(
    st.integers(0, POSTS - 1),
    st.integers(1, 45 * 24),
    st.integers(1, 30),
    st.integers(0, 4),
    st.integers(0, 15),
)


def written(
    posts: Sequence[Any], rows: list[tuple[int, int, int, int, int]], *, present: int
) -> None:
    """Writes rows of history as flushes would have, oldest first, and the posts' counts."""
    totals = {subject_of(post): RowCounts(0, 0) for post in posts}
    found: dict[tuple[str, int], RowCounts] = {}
    for number, back, views, visitors, reset in sorted(rows, key=lambda row: -row[1]):
        subject = subject_of(posts[number])
        old = totals[subject] if reset else RowCounts(0, 0)
        found[subject, present - back] = totals[subject] = RowCounts(
            old.views + views, old.visitors + visitors
        )
    History.objects.all().delete()
    History.objects.bulk_create(
        [
            History(subject=one, hour=hour, **counts._asdict())
            for (one, hour), counts in found.items()
        ]
    )
    raising.zero(Post, [post.pk for post in posts])
    raising.write(Post, {post.pk: totals[subject_of(post)] for post in posts})


def added_up(posts: Sequence[Any], *, since: int, until: int) -> list[tuple[Any, int]]:
    rows = history.sums([*map(subject_of, posts)], since=since, until=until)
    found = [
        (post, views) for post in posts if (views := sum(rows[subject_of(post)].by_hour().values()))
    ]
    return sorted(found, key=lambda pair: (pair[1], pair[0].pk), reverse=True)


@given(
    rows=st.lists(ROW, max_size=40),
    renewed=st.lists(st.integers(0, 100), max_size=3),
    live=st.lists(st.integers(0, POSTS - 1), max_size=8),
    limit=st.integers(1, POSTS),
    days=st.sampled_from([1, 2, 7, 30]),
    at_once=st.integers(1, 3),
    is_flushed=st.booleans(),
)
@settings(max_examples=examples(8))
def test_the_most_viewed_are_those_that_the_whole_history_adds_up_to(
    rows: Any,
    renewed: list[int],
    live: list[int],
    limit: int,
    days: int,
    at_once: int,
    is_flushed: bool,
    redis: Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for model in (History, Popular, Post):
        model.objects.all().delete()
    redis.flushdb()
    monkeypatch.setattr("readtrack.numbers.reports.rankings.AT_ONCE", at_once)
    now = buckets.now()
    present = buckets.hour_index(now)
    posts = [factories.post() for _ in range(POSTS)]
    for back in [*sorted(renewed, reverse=True), 0]:
        written(posts, [row for row in rows if row[1] >= back], present=present)
        popular.renew(at=now - back * HOUR, faults=Faults())
    written(posts, rows, present=present)
    counts.view(*(posts[number] for number in live))
    expected = dict(added_up(posts, since=present + 1 - days * 24, until=present + 1))
    for number in live:
        expected[posts[number]] = expected.get(posts[number], 0) + 1
    if is_flushed:
        flush(only_changed=True)
        assert dict(added_up(posts, since=present + 1 - days * 24, until=present + 1)) == expected
    best = sorted(expected.items(), key=lambda pair: (pair[1], pair[0].pk), reverse=True)
    tracker.refresh_trending()
    found: Any = numbers_reports.most_viewed(Post, limit, days=days)
    assert [(post, post.in_period) for post in found] == best[:limit]
    assert numbers_reports.views_in(posts, days=days) == {
        post: expected.get(post, 0) for post in posts
    }


def listed(posts: Sequence[Any], *views: int) -> None:
    """Writes views of three hours ago, and has them listed."""
    present = buckets.hour_index(buckets.now())
    written(
        posts, [(number, 3, count, count, 1) for number, count in enumerate(views)], present=present
    )
    popular.renew(at=buckets.now(), faults=Faults())


def test_the_most_viewed_of_a_child_model_are_its_own_rows() -> None:
    post, review = factories.post(), Review.objects.create(title="Review")
    listed([post, review], 9, 2)
    found: Any = numbers_reports.most_viewed(Review, 1, days=7)
    assert [(row, row.in_period) for row in found] == [(review, 2)]


def shown(found: Any) -> list[tuple[Any, int]]:
    return [(row, row.in_period) for row in found]


def test_a_full_flush_lists_the_most_viewed_and_later_views_are_added() -> None:
    first, second = factories.post(), factories.post()
    counts.view(first, second, second)
    flush()
    assert set(Popular.objects.values_list("days", flat=True)) <= {1, 7, 30, 90, popular.EVER}
    counts.view(first, first)
    tracker.refresh_trending()
    assert shown(numbers_reports.most_viewed(Post, days=7)) == [(first, 3), (second, 2)]


def test_a_category_has_its_own_and_its_queryset_can_be_filtered_further() -> None:
    category = factories.category()
    posts = [factories.post(category=category if number else None) for number in range(3)]
    listed(posts, 9, 3, 5)
    found: Any = numbers_reports.most_viewed(Post.objects.filter(category=category), days=30)
    assert shown(found) == [(posts[2], 5), (posts[1], 3)]
    assert shown(found.filter(in_period__gt=4)) == [(posts[2], 5)]
    assert shown(numbers_reports.most_viewed(Post.objects.none(), days=30)) == []


def test_models_without_columns_of_ours_have_theirs_too(settings: Settings) -> None:
    settings.READTRACK = {**settings.READTRACK, "MODELS": {"site.manual": {"counted": True}}}
    first, second = Manual.objects.create(title="A"), Manual.objects.create(title="B")
    history.store(
        {subject_of(first): RowCounts(2, 1), subject_of(second): RowCounts(5, 1)}, hour=HOURS_AGO
    )
    popular.renew(at=buckets.now(), faults=Faults())
    assert shown(numbers_reports.most_viewed(Manual, days=1)) == [(second, 5), (first, 2)]
    assert [(trend.obj, trend.views) for trend in numbers_reports.trending(1, hours=24)] == [
        (second, 5)
    ]
    assert numbers_reports.trending(1, hours=24, model=Post) == []


@pytest.mark.parametrize("starts", [[5], [5, 7], [1, 4, 5, 9, 30]])
def test_the_period_of_an_hour_is_found_by_halves(starts: list[int]) -> None:
    with connection.cursor() as cursor:
        for hour in (*starts, 6, 8, 40):
            cursor.execute(
                f"SELECT {period_of_hour(starts, Vendor())} FROM (SELECT %s AS hour) AS hours",
                [hour],
            )
            assert cursor.fetchone()[0] == max(0, bisect_right(starts, hour) - 1)


def test_visitors_have_an_order_of_their_own(redis: Redis) -> None:
    posts = [factories.post() for _ in range(2)]
    present = buckets.hour_index(buckets.now())
    written(posts, [(0, 3, 9, 2, 1), (1, 3, 5, 4, 1), (1, 2, 1, 1, 1)], present=present)
    popular.renew(at=buckets.now(), faults=Faults())
    for post, people in zip(posts, ("ab", "abcde"), strict=True):
        day = buckets.local_day_bucket(buckets.now())
        redis.pfadd(f"views:hll:day:{day}:{subject_of(post)}", *people)
    assert shown(numbers_reports.most_viewed(Post, days=7, by="visitors")) == [
        (posts[1], 5),
        (posts[0], 2),
    ]


@pytest.mark.parametrize("size", [1, 1000])
def test_a_range_of_hours_is_added_up_for_few_rows_and_for_many(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.store.scripts.SLICE", size)
    posts = [factories.post() for _ in range(3)]
    now = buckets.now()
    written(
        posts,
        [(0, 5, 4, 1, 1), (1, 5, 6, 1, 1), (1, 2, 20, 1, 1), (2, 9, 7, 1, 1)],
        present=buckets.hour_index(now),
    )
    found = numbers_reports.most_viewed(Post, since=now - 6 * HOUR, until=now - 3 * HOUR)
    assert shown(found) == [(posts[1], 6), (posts[0], 4)]
    assert shown(numbers_reports.most_viewed(Post, 1, days=2)) == [(posts[1], 26)]
    assert numbers_reports.views_in(posts[1:], since=now - 3 * HOUR) == {posts[1]: 20, posts[2]: 0}


@pytest.mark.parametrize(("size", "expected"), [(1000, [0, 1]), (1, [])])
def test_rows_that_no_list_has_are_added_up_unless_they_are_many(
    size: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("numbers.sql.popular", "numbers.reports.rankings"):
        monkeypatch.setattr(f"readtrack.{module}.LISTED", 2)
    posts = [factories.post() for _ in range(4)]
    listed(posts, 5, 4, 8, 9)
    monkeypatch.setattr("readtrack.store.scripts.SLICE", size)
    found = numbers_reports.most_viewed(Post.objects.filter(pk__lt=posts[2].pk), days=7)
    assert list(found) == [posts[number] for number in expected]


def test_a_reset_post_leaves_the_lists() -> None:
    post = factories.post()
    listed([post], 7)
    tracker.reset_views(post)
    assert shown(numbers_reports.most_viewed(Post, days=7)) == []


def test_a_list_takes_few_queries_and_trips(wire: Wire, django_assert_max_num_queries: Any) -> None:
    posts = [factories.post() for _ in range(20)]
    listed(posts, *range(1, 21))
    counts.view(*posts)
    tracker.refresh_trending()
    numbers_reports.most_viewed(Post, days=7)
    with wire.counted() as trips, django_assert_max_num_queries(6):
        assert len(numbers_reports.most_viewed(Post, days=7)) == 10
    assert trips[0] <= 3


def test_a_category_that_few_of_the_first_are_in_takes_few_queries_and_trips(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    monkeypatch.setattr(
        "readtrack.numbers.reports.rankings.AT_ONCE", 5
    )  # so that twenty are looked at first
    posts = [factories.post() for _ in range(24)]
    listed(posts, *range(1, 25))
    of = Post.objects.filter(pk__in=[post.pk for post in posts[:5]])
    numbers_reports.most_viewed(of, 3, days=7)
    with wire.counted() as trips, django_assert_max_num_queries(7):
        assert [row for row, _ in shown(numbers_reports.most_viewed(of, 3, days=7))] == posts[
            4:1:-1
        ]
    assert trips[0] <= 4


def test_while_redis_is_down_the_lists_are_those_of_sql(wire: Wire) -> None:
    post = factories.post()
    listed([post], 7)
    wire.cut()
    assert shown(numbers_reports.most_viewed(Post, days=7)) == [(post, 7)]


@pytest.mark.parametrize(
    "period",
    [
        {"until": buckets.now()},
        {"days": 0},
        {"days": 7, "since": buckets.now()},
        {"by": "visitors"},
    ],
)
def test_a_period_that_is_none_is_an_error(period: Any) -> None:
    with pytest.raises(ValueError, match="A period is days=7"):
        numbers_reports.most_viewed(Post, **period)


def test_an_unknown_order_or_number_of_hours_is_an_error() -> None:
    with pytest.raises(ValueError, match="not by 'likes'"):
        numbers_reports.most_viewed(Post, days=7, by="likes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="24, 168, 720, 2160 hours, not 12"):
        numbers_reports.trending(hours=12)


def test_tags_set_lists_and_show_numbers() -> None:
    first, second = factories.post(title="First"), factories.post(title="Second")
    listed([first, second], 3, 5)
    counts.view(first)
    tracker.refresh_trending()

    def render(source: str) -> str:
        return Template("{% load readtrack %}" + source).render(
            Context({"post": Post.objects.get(pk=second.pk), "all": Post.objects.all()})
        )

    each = "{% for post in posts %}{{ post }} {{ post.in_period }} {% endfor %}"
    assert (
        render('{% most_viewed "site.Post" days=7 limit=5 as posts %}' + each)
        == "Second 5 First 4 "
    )
    assert (
        render('{% most_viewed all days=7 limit=1 by="visitors" as posts %}' + each) == "First 1 "
    )
    trends = "{% for trend in trends %}{{ trend.obj }} {{ trend.views }} {% endfor %}"
    assert render("{% trending as trends %}" + trends) == "First 1 "
    assert (
        render('{% trending hours=24 of="site.Post" as trends %}' + trends) == "Second 5 First 4 "
    )
    assert render("{% visitor_count post %} {% views_in post days=7 %}") == "5 5"
    assert render("{% visitor_count missing %}{% views_in missing %}") == ""
    with pytest.raises(ValueError, match="not of 3"):
        render('{% most_viewed "site.Post" days=3 as posts %}')


def test_a_site_without_counted_models_has_no_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readtrack.numbers.sql.popular.counted_models", list)
    popular.renew(at=buckets.now(), faults=Faults())
    assert not Popular.objects.exists()


def test_hours_that_are_over_since_the_list_was_made_are_taken_off_its_numbers() -> None:
    now = buckets.now()
    present = buckets.hour_index(now)
    post = factories.post()
    week = 7 * 24
    written([post], [(0, week + 2, 10, 0, 0), (0, 10, 3, 0, 0)], present=present)
    popular.renew(at=now - 5 * HOUR, faults=Faults())
    assert shown(numbers_reports.most_viewed(Post, days=7)) == [(post, 3)]
