"""Funnels and breakdowns after a loss of Redis never show less than SQL stores."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from pytest_django import DjangoAssertNumQueries, Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.flush.run import flush
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import Breakdown
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def dimensions(settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"], "funnels": True}}


@pytest.fixture
def post() -> Post:
    """Creates a post with three views on phones, of which one clicked, all stored in SQL."""
    flush()
    post = factories.post()
    view(post, 3)
    tracker.record(factories.hit(steps=((subject_of(post), "click"),)))
    flush(only_changed=True)
    assert shown(post) == ({"phone": 3}, [4, 1, 0])
    return post


def view(post: Post, times: int = 1) -> None:
    for _ in range(times):
        tracker.record(factories.hit(subject_of(post), dimensions=(("device", "phone"),)))


def shown(objs: Any) -> tuple[dict[str, int], list[int]]:
    return numbers_reports.breakdown(objs, "device"), [
        stage.count for stage in numbers_reports.funnel(objs)
    ]


def test_an_empty_redis_shows_what_sql_keeps_and_counts_on_from_there(
    post: Post, redis: Redis
) -> None:
    redis.flushdb()
    assert shown(post) == ({"phone": 3}, [4, 1, 0])
    view(post, 2)
    assert shown(post) == ({"phone": 5}, [6, 1, 0])
    flush(only_changed=True)
    assert shown(post) == ({"phone": 5}, [6, 1, 0])


def test_counts_of_one_object_in_redis_do_not_hide_those_of_another_in_sql(
    post: Post, redis: Redis
) -> None:
    redis.flushdb()
    other = factories.post()
    view(other)
    assert shown([post, other]) == ({"phone": 4}, [5, 1, 0])


def test_with_redis_gone_reports_show_what_sql_stores(post: Post, settings: Settings) -> None:
    settings.CACHES = {
        "default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}
    }
    assert shown(post) == ({"phone": 3}, [4, 1, 0])


@pytest.mark.parametrize(
    "report", [lambda post: numbers_reports.breakdown(post, "device"), numbers_reports.funnel]
)
def test_where_everything_has_its_base_no_query_is_asked(
    post: Post,
    wire: Wire,
    report: Callable[[Any], Any],
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    report(post)
    with django_assert_num_queries(0), wire.counted() as trips:
        report([post])
    assert trips == [1]


@pytest.mark.parametrize(
    "is_flushed", [False, True], ids=["as it is", "flushed between the two stores"]
)
def test_a_base_is_not_added_twice_if_it_is_settled_meanwhile(
    post: Post, redis: Redis, is_flushed: bool
) -> None:
    redis.flushdb()
    view(post, 2)

    def settle(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if is_flushed and Breakdown._meta.db_table in sql and not done:
            done.append(sql)
            flush(only_changed=True)
        return execute(sql, params, many, context)

    done: list[str] = []
    with connection.execute_wrapper(settle):
        assert numbers_reports.breakdown(post, "device") == {"phone": 5}
    assert bool(done) == is_flushed


def test_a_hash_that_is_behind_while_sql_is_asked_is_raised_to_it(post: Post, redis: Redis) -> None:
    name = f"views:device:{subject_of(post)}"
    redis.delete(name)

    def restore(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        redis.hset(name, mapping={"phone": 1, "tablet": 1})
        return execute(sql, params, many, context)

    with connection.execute_wrapper(restore):
        assert numbers_reports.breakdown(post, "device") == {"phone": 3, "tablet": 1}


def test_unique_visitors_are_never_less_than_sql_knows(post: Post, redis: Redis) -> None:
    post.refresh_from_db()
    redis.flushdb()
    view(post)
    assert reports.visitors([post])[post] == 3
    assert numbers_reports.visitors_together([post, factories.post()]) == 3
