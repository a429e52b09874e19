"""Servers that fail and come back: nothing is lost but what Redis lost, and nothing counts twice."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, reports
from readtrack.flush.run import flush
from readtrack.models import FlushRun, KnownEpoch
from readtrack.store import keys
from readtrack.store.connection import RedisError
from readtrack.subjects import subject_of
from tests.conftest import Start, use_redis
from tests.site.models import Post
from tests.support.counts import view_times as view
from tests.support.depth import some
from tests.support.factories import post
from tests.support.stepping import SteppedConnection, Stepper

transactional = pytest.mark.django_db(transaction=True)
shared = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="threads need a database that they share"
)

# Every command is on the disk before it is answered.
DURABLE = {"appendonly": "yes", "appendfsync": "always"}


@pytest.fixture
def row() -> Post:
    """Creates a post with five views in SQL and two more in Redis."""
    row = post()
    view(row, 5)
    flush()
    view(row, 2)
    return row


def stored(row: Post) -> int:
    return int(Post.objects.get(pk=row.pk).view_count)


def live(row: Post, url: str) -> int:
    with Redis.from_url(url) as client:
        value: Any = client.get(keys.total(subject_of(row)))
        return int(value or 0)


@pytest.fixture
def database_down(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Points the database's port at nobody, until the patch is undone."""
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "PORT", 1)
    yield monkeypatch
    monkeypatch.undo()
    connection.close()


@transactional
@shared
def test_a_database_that_is_down_for_some_runs_has_every_view_when_it_is_up(
    row: Post, database_down: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        with pytest.raises(OperationalError):
            flush()
        view(row, 1)
    connection.close()
    database_down.undo()
    flush()
    assert stored(row) == 10


@transactional
@shared
@pytest.mark.parametrize("step", some(range(1, 16, 4), deep=range(1, 16, 2)))
def test_a_redis_that_dies_during_a_flush_has_lost_nothing_that_it_keeps(
    start_redis: Start, settings: Settings, step: int
) -> None:
    valkey = start_redis(**DURABLE)
    row = post()
    view(row, 7)
    caches = settings.CACHES["default"]
    options = {"CONNECTION_POOL_KWARGS": {"connection_class": SteppedConnection}}
    settings.CACHES = {"default": {**caches, "OPTIONS": options}}
    flusher = Stepper(flush)
    flusher.step(step)
    valkey.kill()
    flusher.finish()
    assert flusher.error is None or isinstance(flusher.error, RedisError)
    valkey.start()
    view(row, 1)
    flush()
    assert stored(row) == live(row, valkey.url) == 8


@pytest.mark.django_db
def test_ticks_that_beat_dropped_are_made_up_for_by_the_next(row: Post) -> None:
    now = buckets.now()
    for hours in range(5, 0, -1):
        view(row, 1, at=now - timedelta(hours=hours))
    flush()
    assert stored(row) == 12


@transactional
@shared
def test_two_schedules_by_mistake_count_nothing_twice(
    redis: Redis, redis_url: str, settings: Settings
) -> None:
    row = post()
    view(row, 5)
    flush()
    redis.flushdb()  # so that both want to add SQL's base
    view(row, 2)
    options = {"CONNECTION_POOL_KWARGS": {"connection_class": SteppedConnection}}
    settings.CACHES = {"default": {**settings.CACHES["default"], "OPTIONS": options}}
    flushers = [Stepper(flush), Stepper(flush)]
    while not all(flusher.is_over for flusher in flushers):
        for flusher in flushers:
            flusher.step()
    assert [flusher.error for flusher in flushers] == [None, None]
    assert stored(row) == live(row, redis_url) == 7
    assert list(FlushRun.objects.order_by("pk").values_list("error", flat=True)) == ["", "", ""]


@pytest.mark.django_db
@pytest.mark.parametrize("days", [1, -1])
def test_a_web_server_whose_clock_is_a_day_off_counts_like_the_others(
    redis: Redis, row: Post, days: int
) -> None:
    view(row, 3, at=buckets.now() + timedelta(days=days))
    flush()
    assert stored(row) == 10


@pytest.mark.django_db
def test_an_old_snapshot_that_comes_back_is_lifted_by_one_flush(start_redis: Start) -> None:
    valkey = start_redis()
    row, other = post(), post()
    view(row, 5)
    flush()
    view(other, 2)  # not settled yet when the snapshot is taken
    with Redis.from_url(valkey.url) as client:
        client.save()
    view(row, 4)
    view(other, 4)
    flush()
    valkey.kill()
    valkey.start()
    assert live(row, valkey.url) == 5
    view(other, 1)
    flush()
    assert (stored(row), stored(other)) == (9, 6)
    assert (live(row, valkey.url), live(other, valkey.url)) == (9, 6)
    view(row, 1)
    view(other, 1)
    flush()
    assert (stored(row), stored(other)) == (10, 7)


@pytest.mark.django_db
def test_a_replica_that_lagged_and_was_promoted_is_lifted_by_one_flush(
    start_redis: Start, settings: Settings
) -> None:
    replica, primary = start_redis(), start_redis(repl_diskless_sync_delay="0")
    row, other = post(), post()
    with Redis.from_url(replica.url) as client:
        client.replicaof("127.0.0.1", primary.port)
        view(row, 5)
        flush()
        view(other, 2)
        with Redis.from_url(primary.url) as source:
            source.set("last", 1)  # WAIT is for the writes of its own client
            assert source.wait(1, 60_000) == 1
        client.replicaof("127.0.0.1", 1)  # the link is cut
        view(row, 4)
        view(other, 4)
        flush()
        primary.kill()
        client.replicaof("NO", "ONE")
    use_redis(settings, replica.url)
    assert live(row, replica.url) == 5
    flush()
    assert (stored(row), stored(other)) == (9, 6)
    view(row, 1)
    view(other, 1)
    flush()
    assert (stored(row), stored(other)) == (10, 7)
    assert reports.views([row, other]) == {row: 10, other: 7}


@pytest.mark.django_db
def test_a_backup_of_the_database_that_comes_back_is_healed_by_one_flush(
    redis: Redis, row: Post
) -> None:
    epochs, runs = (
        list(KnownEpoch.objects.filter(epoch__gt=0).values()),
        list(FlushRun.objects.values()),
    )
    flush()
    fresh = post()
    view(fresh, 1)
    flush()
    Post.objects.filter(pk=row.pk).update(view_count=5)
    Post.objects.filter(pk=fresh.pk).update(view_count=0)
    for known in epochs:
        KnownEpoch.objects.filter(tag=known["tag"], origin=known["origin"]).update(**known)
    FlushRun.objects.exclude(pk__in=[run["id"] for run in runs]).delete()
    view(row, 1)
    view(fresh, 1)
    flush()
    assert (stored(row), stored(fresh)) == (8, 2)
    assert flush().written == 0
