"""Read state: a bit a reader, gone for everybody when there is news."""

import pytest
from redis import Redis

from readtrack import tracker
from readtrack.store import reads, scripts
from tests import factories


def read(token: str, *, reader: int, built_in: float = 0.0) -> bool:
    """Whether a page that took so long to build has marked the category read."""
    hit = factories.hit(reads=(token,), reader=reader, built_in=built_in)
    return tracker.record(hit).read == (token,)


def has_read(token: str, *, reader: int) -> bool:
    return scripts.run(reads.has_read(reader, [token]))[token]


def test_a_reader_is_a_bit(redis: Redis) -> None:
    assert read("a.c:1", reader=1000)
    assert has_read("a.c:1", reader=1000)
    assert not has_read("a.c:1", reader=999)
    assert redis.strlen("category:a.c:1:read") == 126


def test_news_makes_a_category_unread_for_everybody_and_leaves_no_bitmap(redis: Redis) -> None:
    for reader in (1, 2):
        read("a.c:1", reader=reader)
    assert scripts.run(reads.publish(["a.c:1"])) == 1
    assert not any(has_read("a.c:1", reader=reader) for reader in (1, 2))
    assert redis.keys("category:*:read") == []


@pytest.mark.parametrize(("built_in", "is_read"), [(0.0, True), (60.0, False)])
def test_a_page_that_was_begun_before_the_news_does_not_mark_it_read(built_in: float, is_read: bool) -> None:
    scripts.run(reads.publish(["a.c:1"]))
    assert read("a.c:1", reader=1, built_in=built_in) == is_read
    assert has_read("a.c:1", reader=1) == is_read


def test_news_is_remembered_for_as_long_as_a_page_may_take(redis: Redis) -> None:
    scripts.run(reads.publish(["a.c:1"]))
    assert 3500 < redis.ttl("category:a.c:1:news") <= 3600
