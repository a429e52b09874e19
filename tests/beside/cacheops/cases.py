"""The flush reads SQL past django-cacheops, which answers all other querysets of the site."""

from collections.abc import Iterator
from typing import Any

import pytest
from cacheops import invalidate_all
from pytest_django import Settings
from redis import Redis

from readtrack import reports
from readtrack.flush import day_visitors
from readtrack.flush.run import flush
from readtrack.models import DayVisitors, FlushRun
from tests.site.models import Page, Post
from tests.support import factories
from tests.support.counts import live, stored
from tests.support.counts import view_times as view

# cacheops caches nothing in a transaction that has written.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    invalidate_all()
    yield
    invalidate_all()


def cached(post: Post) -> int:
    """Returns the views of the post as a view of the site reads them, from the cache if it can."""
    return int(Post.objects.filter(pk=post.pk).get().view_count)


def test_each_flush_of_a_day_ends(redis: Redis) -> None:
    post: Any = factories.post()
    for number in range(1, 4):
        view(post, 2)
        assert not flush(only_changed=number > 1).failed
        assert cached(post) == 2  # the cache is at work: it keeps the first flush's count
        assert DayVisitors.objects.get(subject=f"site.post:{post.pk}").visitors == 2 * number
    assert reports.views([post]) == {post: 6}
    assert (live(redis, post), FlushRun.objects.count()) == (6, 3)


@pytest.mark.parametrize("make", [factories.post, lambda: Page.objects.create(slug="x")])
def test_a_loss_of_redis_loses_no_views(redis: Redis, make: Any) -> None:
    obj = make()
    view(obj, 5)
    flush()
    type(obj).objects.get(pk=obj.pk)
    view(obj, 2)
    flush(only_changed=True)
    redis.flushdb()
    view(obj, 2)
    flush()
    assert live(redis, obj) == 9
    assert type(obj).objects.nocache().get(pk=obj.pk).view_count == 9


def test_the_sites_own_models_alone_may_be_cached(redis: Redis, settings: Settings) -> None:
    post = factories.post()
    for number in (5, 4):
        cached(post)
        view(post, number)
        flush()
        redis.flushdb()
    view(post)
    flush()
    assert (live(redis, post), Post.objects.nocache().get().view_count) == (10, 10)


def test_rows_that_never_are_as_they_were_read_end_the_flush(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    post = factories.post()
    view(post)
    with monkeypatch.context() as patched:
        patched.setattr(day_visitors, "_unite", lambda live, *, tag: live)
        run = flush()
    assert "Is there a cache between Django and the database?" in run.faults
    assert stored(post) == 1
    assert not flush(only_changed=True).failed
