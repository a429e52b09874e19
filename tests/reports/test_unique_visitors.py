"""Unique visitors in reports."""

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings
from redis import Redis

from readtrack import buckets, reports, tracker
from readtrack.hits.visitors import Visitor, user_id
from readtrack.store.uniques import UniquesError
from readtrack.subjects import subject_of
from tests.site.models import Counted, Post, Product
from tests.support import factories
from tests.support.bounds import set_most_bits

pytestmark = pytest.mark.django_db


def view(obj: Any, *visitors: str, **values: Any) -> None:
    for visitor in visitors:
        tracker.record(factories.hit(subject_of(obj), visitor=Visitor(visitor), **values))


def test_visitors_of_one_object_or_of_many() -> None:
    one, two = factories.post(), factories.post()
    view(one, "a", "b")
    assert reports.visitors([one])[one] == 2
    assert reports.visitors([one, two]) == {one: 2, two: 0}
    assert reports.visitors([]) == {}


def test_never_less_than_sql_stores_and_that_with_redis_gone(settings: Settings) -> None:
    post = factories.post(visitor_count=5)
    view(post, "a")
    assert reports.visitors([post])[post] == 5
    settings.CACHES = {
        "default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}
    }
    assert reports.visitors([post])[post] == 5


def test_many_kinds_at_once_cost_no_query(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    objs = [factories.post(), Product.objects.create(name="x"), Counted.objects.create()]
    for obj in objs:
        view(obj, "a", reader=1)
    with django_assert_num_queries(0):
        assert list(reports.visitors(objs).values()) == [1, 1, 1]


@pytest.mark.needs_parts("numbers")
def test_visitors_of_several_objects_together() -> None:
    from readtrack.numbers import reports as numbers_reports

    one, two = factories.post(), factories.post()
    view(one, "a", "b")
    view(two, "b", "c")
    assert numbers_reports.visitors_together([one, two]) == 3
    assert numbers_reports.visitors_together([]) == 0


@pytest.mark.parametrize("strategy", ["set", "bitmap"])
def test_exact_strategies_know_which_objects_a_visitor_has_seen(
    settings: Settings, strategy: str
) -> None:
    settings.READTRACK = {"UNIQUE": strategy}
    post, user, other = factories.post(), factories.user(), factories.user()
    view(post, user_id(user.pk), reader=user.pk)
    assert reports.has_seen(user, post) is True
    assert reports.has_seen(other, post) is False
    assert reports.has_seen(AnonymousUser(), post) is False
    assert reports.has_seen(user, factories.post()) is False


def test_a_user_without_a_reader_number_has_seen_nothing_in_a_bitmap(settings: Settings) -> None:
    settings.READTRACK = {"UNIQUE": "bitmap"}
    set_most_bits(0)
    assert reports.has_seen(factories.user(), factories.post()) is False


@pytest.mark.needs_parts("numbers")
def test_daily_sets_know_who_came_today_and_yesterday(settings: Settings) -> None:
    from readtrack.numbers import reports as numbers_reports

    settings.READTRACK = {"UNIQUE": "daily"}
    post, early, late, now = factories.post(), factories.user(), factories.user(), buckets.now()
    view(post, user_id(early.pk), "a", at=now - buckets.DAY)
    view(post, user_id(late.pk), "b", "c", at=now)
    for user, yesterday, today in ((early, True, False), (late, False, True)):
        assert reports.has_seen(user, post, at=now - buckets.DAY) is yesterday
        assert reports.has_seen(user, post, at=now) is reports.has_seen(user, post) is today
    this_day = timezone.localdate()
    assert numbers_reports.visitors([post], since=this_day - buckets.DAY, until=this_day)[post] == 2
    assert (
        numbers_reports.visitors([post], days=1)[post],
        numbers_reports.visitors([post], days=2)[post],
    ) == (
        3,
        5,
    )
    with pytest.raises(UniquesError, match="'daily' does not know who viewed what on"):
        reports.has_seen(late, post, at=now - 2 * buckets.DAY)


@pytest.mark.parametrize("strategy", ["hll", "set", "bitmap", "none"])
def test_other_strategies_know_nothing_of_a_day(settings: Settings, strategy: str) -> None:
    settings.READTRACK = {"UNIQUE": strategy}
    with pytest.raises(UniquesError, match=f"'{strategy}' does not know who viewed what on"):
        reports.has_seen(factories.user(), factories.post(), at=buckets.now())


@pytest.mark.parametrize("strategy", ["hll", "none"])
def test_asking_for_seen_objects_is_an_error_where_visitors_are_only_sketched(
    settings: Settings, strategy: str
) -> None:
    settings.READTRACK = {"UNIQUE": strategy}
    with pytest.raises(
        UniquesError, match=f"'{strategy}' does not know who viewed what; 'set' and 'bitmap' do"
    ):
        reports.has_seen(factories.user(), factories.post())


@pytest.mark.parametrize(
    "options", [{}, {"DOTS": {"readers": "ordinal"}}, {"DOTS": {"anonymous": 1_000_000}}]
)
def test_a_page_counts_the_signed_in_user_in_the_bitmap(
    settings: Settings, client: Any, redis: Redis, options: dict[str, Any]
) -> None:
    settings.READTRACK = {"UNIQUE": "bitmap", **options}
    post, user = factories.post(), factories.user()
    client.force_login(user)
    client.get(f"/posts/{post.pk}/", headers={"User-Agent": factories.BROWSER})
    assert redis.getbit(f"views:bitmap:site.post:{post.pk}", user.pk) == 1
    assert reports.has_seen(user, Post.objects.get()) is True
