"""Skips are counted in the process first, then sent to Redis."""

from datetime import datetime, timedelta
from threading import Thread
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.hits.hit import REASONS
from readtrack.store import connection, keys, scripts
from readtrack.store.skips import HOURS, MOST_FIELDS, key_of, skip_buffer
from tests.support import caches, factories
from tests.support.forks import Forks

HOUR = timedelta(hours=1)
NOWHERE = {"default": caches.single("redis://127.0.0.1:1/0")}


def calls(redis: Redis) -> int:
    return int(redis.info("stats")["total_commands_processed"])


def test_the_first_skip_is_told_at_once_and_a_flood_once_a_second(
    redis: Redis, noon: datetime
) -> None:
    tracker.skip(["a"], "bot", at=noon)
    assert redis.hgetall("views:skips:2026112012") == {"bot": "1"}
    before = calls(redis)
    for _ in range(500):
        tracker.skip(["a"], "bot", at=noon)
    assert calls(redis) - before < 20
    skip_buffer.send()
    assert redis.hgetall("views:skips:2026112012") == {"bot": "501"}
    assert 48 * 3600 < redis.ttl("views:skips:2026112012") <= keys.skips.ttl


def test_waiting_skips_are_sent_with_the_next_view(redis: Redis, noon: datetime) -> None:
    skip_buffer.add(key_of(noon), ["bot", "bot", "status"])
    hit = factories.hit("site.post:1")
    assert tracker.record(hit).counted == ("site.post:1",)
    assert redis.hgetall("views:skips:2026112012") == {"bot": "2", "status": "1"}
    assert not skip_buffer.skips


def test_rates_and_repeats_are_counted(noon: datetime) -> None:
    hit = factories.hit("site.post:1", "site.post:2", at=noon)
    for _ in range(6):
        tracker.record(hit)
    skip_buffer.send()
    counts = reports.skips(at=noon)
    assert (counts["repeat"], counts["rate"]) == (8, 2)


def test_hours_are_kept_apart_and_added_up(noon: datetime) -> None:
    for back in (0, 1, 23, 24):
        skip_buffer.add(key_of(noon - back * HOUR), ["bot"])
    skip_buffer.send()
    assert [reports.skips(hours, at=noon)["bot"] for hours in (1, 2, 24, 25)] == [1, 2, 3, 4]


def test_skips_wait_while_redis_is_gone_and_no_page_fails(
    settings: Settings, redis: Redis, noon: datetime
) -> None:
    there = settings.CACHES
    settings.CACHES = NOWHERE
    for _ in range(3):
        assert tracker.skip(["a"], "bot", at=noon).skipped == {"a": "bot"}
    assert reports.skips(at=noon)["bot"] == 0
    settings.CACHES = there
    skip_buffer.send()
    assert reports.skips(at=noon)["bot"] == 3


@pytest.mark.django_db
def test_views_that_redis_could_not_take_are_errors(settings: Settings, client: Client) -> None:
    settings.READTRACK = {"DEBUG_HEADER": True}
    path = f"/posts/{factories.post().pk}/"
    there = settings.CACHES
    settings.CACHES = NOWHERE
    page = client.get(path, headers={"User-Agent": factories.BROWSER})
    assert (page.status_code, page["X-Readtrack"]) == (200, "skipped; reason=error")
    assert not page.cookies
    settings.CACHES = there
    skip_buffer.send()
    assert reports.skips()["error"] == 1


def test_the_number_of_waiting_skips_is_bounded(noon: datetime) -> None:
    for back in range(500, -1, -1):
        skip_buffer.add(key_of(noon - back * HOUR), ["bot", "status"])
    assert len(skip_buffer.skips) <= HOURS * len(REASONS)
    skip_buffer.send()
    assert reports.skips(48, at=noon)["bot"] == 48


@pytest.mark.parametrize("sendings", [1, 20])
def test_robots_can_fill_neither_redis_nor_the_process_with_names(
    sendings: int, redis: Any, noon: datetime
) -> None:
    tracker.skip(["a"], "repeat", at=noon)
    for _ in range(sendings):
        for number in range(200):
            tracker.skip(["a"], "bot", is_alone=False, at=noon, agent=f"Made-up-{_}-{number}/1.0")
        assert len(skip_buffer.skips) <= MOST_FIELDS + 2
        skip_buffer.send()
    tracker.skip(["a"], "bot", is_alone=False, at=noon, agent="Made-up-0-0/1.0")
    tracker.skip(["a"], "status", is_alone=False, at=noon)
    skip_buffer.send()
    found = redis.hgetall("views:skips:2026112012")
    robots = {name: int(count) for name, count in found.items() if name.startswith("bot:")}
    assert (found["bot"], found["repeat"], found["status"]) == (str(200 * sendings + 1), "1", "1")
    assert (sum(robots.values()), robots["bot:Made-up-0-0"]) == (200 * sendings + 1, 2)
    assert len(found) <= MOST_FIELDS + 2


def test_names_that_wait_for_many_hours_cost_no_reason(noon: datetime) -> None:
    some = [key_of(noon - back * HOUR) for back in range(24)]
    for key in some:
        skip_buffer.add(key, ["bot", "bot:GPTBot", "bot:curl", "repeat"])
    assert [skip_buffer.skips[key, "bot"] for key in some] == [1] * 24
    assert (
        sum(count for (_, name), count in skip_buffer.skips.items() if name.startswith("bot:"))
        == 2 * 24
    )


def test_threads_lose_nothing(noon: datetime) -> None:
    def skip() -> None:
        for _ in range(300):
            tracker.skip(["a"], "bot", at=noon)
            skip_buffer.send()

    threads = [Thread(target=skip) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    skip_buffer.send()
    assert reports.skips(at=noon)["bot"] == 1200


def test_a_script_that_the_server_does_not_know_yet_makes_no_view_twice(
    redis: Redis, noon: datetime
) -> None:
    factories_hit = factories.hit("site.post:1", at=noon)
    tracker.record(factories.hit("site.post:2", at=noon))
    redis.script_flush()
    tracker.record(factories.hit("site.post:2", at=noon))
    redis.script_flush()
    redis.script_load(scripts._source("record"))
    skip_buffer.add(key_of(noon), ["bot"])
    assert tracker.record(factories_hit).counted == ("site.post:1",)
    assert reports.skips(at=noon)["bot"] == 1


def test_an_answer_that_is_an_error_is_raised(redis: Redis, noon: datetime) -> None:
    redis.set("views:skips:2026112012", "no hash")
    skip_buffer.add(key_of(noon), ["bot"])
    with pytest.raises(connection.RedisError):
        skip_buffer.send()
    redis.delete("views:skips:2026112012")
    skip_buffer.send()
    assert reports.skips(at=noon)["bot"] == 1


def test_a_process_that_ends_sends_its_skips_first(forks: Forks) -> None:
    _run("for _ in range(3): tracker.skip(['a'], 'bot')", forks)
    assert reports.skips(1)["bot"] == 3


def test_a_forked_process_does_not_send_what_its_parent_counted(forks: Forks) -> None:
    """The process forks while the buffer is locked, as another thread may leave it, so the child
    has a locked copy.
    """
    code = """
for _ in range(3): tracker.skip(['a'], 'bot')
from readtrack.store.skips import key_of, skip_buffer
with skip_buffer._lock:
    child = os.fork()
    if not child: skip_buffer.add(key_of(buckets.now()), ['status'])
if child: assert os.waitpid(child, 0)[1] == 0
"""
    _run(code, forks)
    counts = reports.skips(1)
    assert (counts["bot"], counts["status"]) == (3, 1)


def _run(code: str, forks: Forks) -> None:
    start = "import os; from readtrack import buckets, tracker\n"
    assert forks.run(start + code).code == 0


def test_a_process_that_ends_without_redis_ends_quietly(settings: Settings, noon: datetime) -> None:
    there = settings.CACHES
    settings.CACHES = NOWHERE
    skip_buffer.add(key_of(noon), ["bot"])
    skip_buffer.send_rest()
    settings.CACHES = there
    for _ in range(2):  # the second time there is nothing left
        skip_buffer.send_rest()
        assert reports.skips(at=noon)["bot"] == 1
