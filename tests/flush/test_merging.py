"""Settling: a counter that Redis began anew gets the count of SQL, once."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from redis import Redis

from readtrack import reports
from readtrack.flush.run import flush
from tests.site.models import Post
from tests.support import factories
from tests.support.counts import live, stored, view
from tests.support.interference import dump, restore

pytestmark = pytest.mark.django_db(databases=["default", "lite"])


def test_an_emptied_redis_goes_on_from_what_sql_has(database: str, redis: Redis) -> None:
    post = factories.post()
    view(post, post, post)
    flush()
    redis.flushdb()
    assert flush().written == 0
    assert stored(post) == 3
    view(post)
    assert reports.views([Post.objects.get()]) == {post: 4}
    run = flush()
    assert (run.settled, run.written) == (2, 1)  # the total and the model's hour
    assert stored(post) == live(redis, post) == 4


def test_a_single_lost_total_goes_on_from_what_sql_has(database: str, redis: Redis) -> None:
    post = factories.post()
    view(post, post)
    flush()
    redis.delete(f"views:total:site.post:{post.pk}")
    view(post)
    flush()
    assert stored(post) == live(redis, post) == 3


@contextmanager
def restored(redis: Redis) -> Iterator[None]:
    """Undoes in Redis what happens inside, as a restart from a snapshot does."""
    snapshot = dump(redis)
    yield
    restore(redis, snapshot)


def test_an_old_snapshot_with_marks_is_not_given_its_base_a_second_time(database: str, redis: Redis) -> None:
    post = factories.post(view_count=100)
    with restored(redis):
        view(post)
        flush()
    assert stored(post) == 101
    view(post)  # begins at nothing again: its mark is new
    flush()
    assert stored(post) == 102

    redis.flushdb()
    view(post, post)
    with restored(redis):  # the snapshot holds two views and their mark
        flush()
        assert stored(post) == 104
    flush()
    assert stored(post) == live(redis, post) == 104


def test_a_view_between_an_old_snapshot_and_the_next_flush_is_not_counted_twice(database: str, redis: Redis) -> None:
    post, fresh = factories.post(view_count=100), factories.post(view_count=10)
    view(post)
    with restored(redis):
        flush()
    view(post, fresh)
    flush()
    assert stored(post) <= 102
    assert stored(post) >= 101
    assert stored(fresh) == 11
