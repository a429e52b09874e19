"""The list of trending subjects is exactly the sum of the last sixty minutes."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import chain
from threading import Barrier
from typing import Any

import pytest
from redis import Redis

from readtrack import buckets, tracker
from readtrack.store import connection, counters, keys, scripts, trending
from readtrack.store.trending import refresh_trending, top_subjects
from tests.support import factories
from tests.support.scripts import load_scripts
from tests.support.waiting import ENOUGH

MINUTE = timedelta(minutes=1)


def view(redis: Redis, subject: str, at: datetime, views: int = 1) -> None:
    redis.zincrby(f"trending:bucket:{buckets.minute_bucket(at)}", views, subject)


def listed(redis: Any) -> dict[str, float]:
    """Returns the list without the mark of its last minute."""
    found: dict[str, float] = dict(redis.zrange("trending:list", 0, -1, withscores=True))
    assert found.pop("") < 0
    return found


def summed(redis: Any, at: datetime, minutes: int = 60) -> dict[str, float]:
    """Returns the views of all minutes, whether the list has taken them in or not."""
    total: Counter[str] = Counter()
    pipeline = redis.pipeline(transaction=False)
    for minute in buckets.minute_buckets(minutes, until=at):
        for family in ("bucket", "taken"):
            pipeline.zrange(f"trending:{family}:{minute}", 0, -1, withscores=True)
    for found in pipeline.execute():
        total.update(dict(found))
    return dict(total)


@pytest.mark.parametrize("seed", range(4))
def test_sliding_never_drifts_from_the_sum_of_the_buckets(
    redis: Redis, noon: datetime, seed: int
) -> None:
    chance = random.Random(seed)
    at, step = noon, MINUTE
    for _ in range(100):
        for _ in range(chance.randrange(6)):
            view(redis, f"site.post:{chance.randrange(12)}", at, chance.randint(1, 4))
        # A clock that is put back opens a minute anew, and what comes then is in the list if that
        # is computed then.
        went_back = step < timedelta(0)
        if went_back or chance.random() < 0.7:
            assert refresh_trending(at=at) == len(summed(redis, at))
            assert listed(redis) == summed(redis, at)
        # Mostly half a minute, at times several, now and then more than the list can slide over, or
        # a clock put back.
        step = chance.choice(
            [MINUTE / 2] * 12 + [MINUTE * 3, MINUTE * 8, MINUTE * 20, MINUTE * 90, -MINUTE]
        )
        at += step


def test_the_running_minute_is_taken_in_as_it_is_and_again_as_it_grows(
    redis: Redis, noon: datetime
) -> None:
    for views in (1, 2, 3):
        view(redis, "site.post:1", noon)
        refresh_trending(at=noon)
        assert listed(redis) == {"site.post:1": views}


def test_a_late_view_leaves_the_list_as_it_came(redis: Redis, noon: datetime) -> None:
    view(redis, "site.post:1", noon - 5 * MINUTE, 3)
    refresh_trending(at=noon)
    view(redis, "site.post:1", noon - 5 * MINUTE, 10)
    view(redis, "site.post:1", noon, 2)
    for minutes in range(1, 54, 6):
        refresh_trending(at=noon + minutes * MINUTE)
        assert listed(redis) == {"site.post:1": 5}
    refresh_trending(at=noon + 55 * MINUTE)
    assert listed(redis) == {"site.post:1": 2}
    refresh_trending(at=noon + 60 * MINUTE)
    assert listed(redis) == {}


def test_a_lost_list_is_computed_anew(redis: Redis, noon: datetime) -> None:
    view(redis, "site.post:1", noon - 30 * MINUTE, 3)
    refresh_trending(at=noon)
    redis.delete("trending:list")
    view(redis, "site.post:1", noon - 30 * MINUTE, 4)
    refresh_trending(at=noon + MINUTE)
    assert listed(redis) == {"site.post:1": 7}


def test_a_recorded_view_is_trending(noon: datetime) -> None:
    for subject in ("site.post:1", "site.post:2", "site.post:1"):
        tracker.record(factories.hit(subject, at=noon))
    assert top_subjects(10, at=noon) == [("site.post:1", 2), ("site.post:2", 1)]
    assert top_subjects(1, at=noon) == [("site.post:1", 2)]
    assert top_subjects(0, at=noon) == []


def test_the_list_outlives_a_task_that_stops_for_ten_minutes(redis: Redis, noon: datetime) -> None:
    refresh_trending(at=noon)
    assert 600 - ENOUGH < redis.ttl("trending:list") <= 600
    view(redis, "site.post:1", noon)
    refresh_trending(at=noon)
    assert 4_800 - ENOUGH < redis.ttl(f"trending:taken:{buckets.minute_bucket(noon)}") <= 4_800


def test_a_page_reads_the_old_list_and_computes_nothing(redis: Redis, noon: datetime) -> None:
    view(redis, "site.post:1", noon)
    assert top_subjects(10, at=noon) == [("site.post:1", 1)]
    view(redis, "site.post:1", noon)
    assert top_subjects(10, at=noon + 9 * MINUTE) == [("site.post:1", 1)]


def test_an_empty_list_is_one_that_was_computed(redis: Redis, noon: datetime) -> None:
    assert top_subjects(10, at=noon) == []
    redis.config_resetstat()
    assert top_subjects(10, at=noon) == []
    assert "cmdstat_zunionstore" not in redis.info("commandstats")


def test_a_cold_start_is_computed_once_however_many_ask(redis: Redis, noon: datetime) -> None:
    view(redis, "site.post:1", noon)
    load_scripts(connection.connect())
    redis.config_resetstat()
    barrier = Barrier(8)

    def ask(_: int) -> list[tuple[str, int]]:
        barrier.wait()
        return top_subjects(10, at=noon)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert found == [[("site.post:1", 1)]] * 8
    # Each computation of a list runs this command once.
    assert redis.info("commandstats")["cmdstat_zremrangebyscore"]["calls"] == len(keys.tags())


def test_one_models_list_is_found_below_the_others(redis: Redis, noon: datetime) -> None:
    for number in range(1_200):
        view(redis, f"site.post:{number}", noon, 2)
    for number in range(3):
        view(redis, f"site.page:{number}", noon)
    view(redis, "site.pages:1", noon)
    found = top_subjects(2, at=noon, label="site.page")
    assert found == [("site.page:2", 1), ("site.page:1", 1)]
    assert len(top_subjects(700, at=noon, label="site.post")) == 700
    assert top_subjects(2, at=noon, label="site.product") == []


def test_a_view_of_a_minute_is_kept_once(redis: Redis, noon: datetime) -> None:
    for number in range(3):
        view(redis, f"site.post:{number}", noon)
        refresh_trending(at=noon)
        view(redis, "site.post:1", noon)
        members = sum(map(redis.zcard, redis.keys("trending:[bt]*")))
        assert members == number + 2


def test_the_views_of_a_minute_are_read_before_and_after_the_list_takes_them_in(
    noon: datetime,
) -> None:
    for _ in range(2):
        tracker.record(factories.hit("site.post:1", at=noon))
        for _ in range(2):
            assert {*chain(*counters.viewed([buckets.minute_bucket(noon)]))} == {"site.post:1"}
            refresh_trending(at=noon)


def test_the_counts_of_a_lost_minute_are_subtracted_once(redis: Redis, noon: datetime) -> None:
    view(redis, "site.post:1", noon, 3)
    refresh_trending(at=noon)
    redis.delete("trending:list", f"trending:taken:{buckets.minute_bucket(noon)}")
    view(redis, "site.post:1", noon + MINUTE, 2)
    for minutes in range(1, 61):
        refresh_trending(at=noon + minutes * MINUTE)
        assert listed(redis) == {"site.post:1": 2}


@pytest.mark.one_server("acts as an older version by its keys, of which a cluster has others")
def test_an_older_version_beside_this_one_neither_adds_views_nor_takes_them(
    redis: Redis, noon: datetime
) -> None:
    minute = buckets.minute_bucket(noon)
    bucket, copy = f"trending:bucket:{minute}", f"trending:entered:{minute}"

    def refresh_by_older_version(last: datetime, *, views: int) -> None:
        # It keeps a copy of each bucket, which it removes where the bucket is gone.
        if not redis.copy(bucket, copy, replace=True):
            redis.unlink(copy)
        mark = -int(last.timestamp()) // 60
        redis.zadd("trending:top", {"site.post:1": views, "": mark})

    view(redis, "site.post:1", noon, 3)
    refresh_by_older_version(noon, views=3)
    for _ in range(2):
        for minutes in range(2):
            refresh_trending(at=noon + minutes * MINUTE)
            assert listed(redis) == {"site.post:1": 3}
            assert redis.zunion(trending.keys_of_minutes("", [minute]), withscores=True) == [
                ("site.post:1", 3)
            ]
        refresh_by_older_version(noon, views=0)
    for minutes in range(2, 61):
        refresh_trending(at=noon + minutes * MINUTE)
    assert listed(redis) == {}


@pytest.mark.one_server("it names the keys of a single partition")
@pytest.mark.parametrize("wrong", ["list", "bucket", "taken"])
def test_a_key_of_another_type_is_as_a_missing_one(
    redis: Redis, noon: datetime, wrong: str
) -> None:
    view(redis, "site.post:1", noon - MINUTE)
    refresh_trending(at=noon - MINUTE)
    view(redis, "site.post:2", noon - MINUTE)
    key = {
        "list": "trending:list",
        "bucket": f"trending:bucket:{buckets.minute_bucket(noon - MINUTE)}",
        "taken": f"trending:taken:{buckets.minute_bucket(noon - MINUTE)}",
    }[wrong]
    redis.delete(key)
    redis.set(key, "of somebody else")
    assert tracker.record(factories.hit("site.post:3", at=noon - MINUTE)).counted
    if wrong == "list":
        assert set(dict(top_subjects(9, at=noon))) == {"site.post:1", "site.post:2", "site.post:3"}
    else:
        refresh_trending(at=noon)
        assert "site.post:1" in dict(top_subjects(9, at=noon))
    scripts.run(trending.forgetting(["site.post:1"], at=noon))
    assert "site.post:1" not in dict(top_subjects(9, at=noon))
