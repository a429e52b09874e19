"""Flushes that are stopped at each round trip, one after the other, so that no step depends on
chance.
"""

import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from django.db import Error, connection
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.models import FlushRun, KnownEpoch
from readtrack.subjects import subject_of_row
from tests.site.models import Post
from tests.support.depth import STRIDE, examples
from tests.support.factories import hit, post
from tests.support.stepping import SteppedConnection, Stepper

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        connection.vendor != "postgresql", reason="threads need a database that they share"
    ),
]


@pytest.fixture(autouse=True)
def binary(redis_url: str, settings: Settings) -> Iterator[Redis]:
    """Returns a client that does not decode."""
    options = {"CONNECTION_POOL_KWARGS": {"connection_class": SteppedConnection}}
    settings.CACHES = {"default": {**settings.CACHES["default"], "OPTIONS": options}}
    with Redis.from_url(redis_url) as client:
        yield client


class Site:
    """A post with five views in SQL, of which Redis holds none, and two more in Redis."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        redis.flushdb()
        Post.objects.all().delete()
        FlushRun.objects.all().delete()
        KnownEpoch.objects.all().delete()
        self.pk = post().pk
        self.counted = 0
        self.view(5)
        flush()
        redis.flushdb()
        self.view(2)

    def view(self, times: int) -> None:
        for _ in range(times):
            tracker.record(hit(subject_of_row(Post, self.pk)))
        self.counted += times

    @property
    def stored(self) -> int:
        return int(Post.objects.get(pk=self.pk).view_count)

    def dump(self) -> dict[bytes, Any]:
        redis: Any = self.redis
        return {key: (max(redis.pttl(key), 0), redis.dump(key)) for key in redis.scan_iter()}

    def restore(self, dump: dict[bytes, Any]) -> None:
        self.redis.flushdb()
        for key, (life, value) in dump.items():
            self.redis.restore(key, life, value)


def test_a_snapshot_taken_at_any_step_never_inflates(binary: Redis) -> None:
    for step in range(0, _length(Site(binary)), STRIDE):
        site = Site(binary)
        flusher = Stepper(flush)
        flusher.step(step)
        dump = site.dump()
        flusher.finish()
        site.restore(dump)
        flush()
        assert site.stored == site.counted == 7, step


def test_a_flush_that_stands_still_while_redis_is_restored_never_inflates(binary: Redis) -> None:
    """One flush stops at any step, another one runs, and Redis is restored from a snapshot in
    between.
    """
    length = _length(Site(binary))
    moments = list(product(range(length), range(length)))
    number = min(examples(4), len(moments))
    for before, step in random.Random(number).sample(moments, number):
        site = Site(binary)
        one, other = Stepper(flush), Stepper(flush)
        one.step(before)
        other.step(step)
        dump = site.dump()
        other.finish()
        one.step()
        site.restore(dump)
        one.finish()
        flush()
        assert 5 <= site.stored <= site.counted, (before, step)
        assert binary.get(f"views:total:{subject_of_row(Post, site.pk)}") == b"%d" % site.stored


@pytest.mark.parametrize("is_behind", [False, True], ids=["sound", "restored"])
def test_a_redis_emptied_at_any_step_is_counted_on_from_sql(binary: Redis, is_behind: bool) -> None:
    for step in range(int(is_behind) % STRIDE, _length(Site(binary)), STRIDE):
        site = Site(binary)
        if is_behind:  # so that the flush has something to lift
            flush()
            dump = site.dump()
            site.view(3)
            flush()
            site.restore(dump)
        flusher = Stepper(flush)
        flusher.step(step)
        before = site.stored
        binary.flushdb()
        site.view(9)
        flusher.finish()
        flush()
        assert before + 9 <= site.stored <= site.counted, step


def test_a_flush_killed_at_any_step_is_as_none(binary: Redis) -> None:
    for step in range(0, _length(Site(binary)), STRIDE):
        site = Site(binary)
        flusher = Stepper(flush)
        flusher.step(step)
        flusher.kill()
        site.view(1)
        flush()
        assert site.stored == site.counted == 8, step


def test_a_flush_that_loses_the_database_at_any_step_says_so_and_the_next_one_does_the_rest(
    binary: Redis,
) -> None:
    for step in range(0, _length(Site(binary)), STRIDE):
        site = Site(binary)
        flusher = Stepper(flush)
        flusher.step(step)
        flusher.lose_database()
        flusher.finish()
        assert flusher.error is None or isinstance(flusher.error, Error)
        flush()
        assert site.stored == site.counted, step


def _length(site: Site) -> int:
    """Returns the number of round trips of one flush."""
    flusher, steps = Stepper(flush), 0
    while not flusher.is_over:
        flusher.step()
        steps += 1
    assert site.stored == site.counted
    return steps
