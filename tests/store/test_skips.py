"""Skips on their way to Redis."""

import os
import subprocess
import sys
import threading
from datetime import datetime, timedelta
from importlib.resources import files
from threading import Thread

import pytest
from django.test import Client
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.store import connection, skips
from readtrack.store.skips import HOURS, LIFE, tally
from tests.support import factories

HOUR = timedelta(hours=1)
NOWHERE = {"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}}


def calls(redis: Redis) -> int:
    return int(redis.info("stats")["total_commands_processed"])


def test_the_first_skip_is_told_at_once_and_a_flood_once_a_second(redis: Redis, noon: datetime) -> None:
    tracker.skip(["a"], "bot", at=noon)
    assert redis.hgetall("views:skips:2026112012") == {"bot": "1"}
    before = calls(redis)
    for _ in range(500):
        tracker.skip(["a"], "bot", at=noon)
    assert calls(redis) - before < 20
    tally.send()
    assert redis.hgetall("views:skips:2026112012") == {"bot": "501"}
    assert 48 * 3600 < redis.ttl("views:skips:2026112012") <= LIFE


def test_what_waits_goes_along_with_the_next_view(redis: Redis, noon: datetime) -> None:
    tally.add(["bot", "bot", "status"], at=noon)
    hit = factories.hit("site.post:1")
    assert tracker.record(hit).counted == ("site.post:1",)
    assert redis.hgetall("views:skips:2026112012") == {"bot": "2", "status": "1"}
    assert not tally.is_due


def test_rates_and_repeats_are_counted(noon: datetime) -> None:
    hit = factories.hit("site.post:1", "site.post:2", at=noon)
    for _ in range(6):
        tracker.record(hit)
    tally.send()
    counts = reports.skips(at=noon)
    assert (counts["repeat"], counts["rate"]) == (8, 2)


def test_hours_are_kept_apart_and_added_up(noon: datetime) -> None:
    for back in (0, 1, 23, 24):
        tally.add(["bot"], at=noon - back * HOUR)
    tally.send()
    assert [reports.skips(hours, at=noon)["bot"] for hours in (1, 2, 24, 25)] == [1, 2, 3, 4]


def test_a_lost_redis_loses_no_skips_and_hurts_nobody(settings: Settings, redis: Redis, noon: datetime) -> None:
    there = settings.CACHES
    settings.CACHES = NOWHERE
    for _ in range(3):
        assert tracker.skip(["a"], "bot", at=noon).skipped == {"a": "bot"}
    assert reports.skips(at=noon)["bot"] == 0
    settings.CACHES = there
    tally.send()
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
    tally.send()
    assert reports.skips()["error"] == 1


def test_what_waits_is_bounded(noon: datetime) -> None:
    for back in range(500, -1, -1):
        tally.add(["bot", "status"], at=noon - back * HOUR)
    assert len(tally._skips) <= HOURS * 9
    tally.send()
    assert reports.skips(48, at=noon)["bot"] == 48


def test_threads_lose_nothing(noon: datetime) -> None:
    def skip() -> None:
        for _ in range(300):
            tracker.skip(["a"], "bot", at=noon)
            tally.send()

    threads = [Thread(target=skip) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tally.send()
    assert reports.skips(at=noon)["bot"] == 1200


def test_a_script_that_the_server_does_not_know_yet_makes_no_view_twice(redis: Redis, noon: datetime) -> None:
    factories_hit = factories.hit("site.post:1", at=noon)
    tracker.record(factories.hit("site.post:2", at=noon))
    redis.script_flush()
    tracker.record(factories.hit("site.post:2", at=noon))
    known = (files("readtrack.store") / "lua" / "record.lua").read_text()
    redis.script_flush()
    redis.script_load(known)
    tally.add(["bot"], at=noon)
    assert tracker.record(factories_hit).counted == ("site.post:1",)
    assert reports.skips(at=noon)["bot"] == 1


def test_an_answer_that_is_an_error_is_raised(redis: Redis, noon: datetime) -> None:
    redis.set("views:skips:2026112012", "no hash")
    tally.add(["bot"], at=noon)
    with pytest.raises(connection.RedisError):
        tally.send()
    redis.delete("views:skips:2026112012")
    tally.send()
    assert reports.skips(at=noon)["bot"] == 1


def test_a_forked_process_does_not_tell_what_its_parent_counted(
    redis: Redis, noon: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally.add(["bot"], at=noon)
    assert tally._timer
    tally._timer.cancel()  # a fork takes no threads along
    with monkeypatch.context() as fork:
        fork.setattr(os, "getpid", lambda: -1)
        tally.send()
        tally.add(["bot"], at=noon)
        tally.send()
    assert reports.skips(at=noon)["bot"] == 1


def test_a_quiet_process_tells_by_itself(redis: Redis, noon: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skips, "PATIENCE", 0.01)
    tally.add(["bot"], at=noon)
    timer = tally._timer
    assert timer
    timer.join()
    assert redis.hgetall("views:skips:2026112012") == {"bot": "1"}
    tally.add(["bot"], at=noon)
    assert tally._timer
    assert tally._timer is not timer
    tally._timer.join()


def test_only_one_thread_waits_and_none_where_nothing_does(noon: datetime) -> None:
    assert tally._timer is None
    before = set(threading.enumerate())
    for _ in range(3):
        tally.add(["bot"], at=noon)
    timer = tally._timer
    assert set(threading.enumerate()) - before == {timer}
    tally.clear()
    assert timer
    timer.join()


def test_a_process_that_ends_tells_first(redis: Redis, redis_url: str) -> None:
    code = "import django; django.setup(); from readtrack import tracker\nfor _ in range(3): tracker.skip(['a'], 'bot')"
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "READTRACK_TEST_REDIS_URL": redis_url}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert reports.skips(1)["bot"] == 3


def test_a_process_that_ends_without_redis_ends_quietly(settings: Settings, noon: datetime) -> None:
    there = settings.CACHES
    settings.CACHES = NOWHERE
    tally.add(["bot"], at=noon)
    tally.settle()
    settings.CACHES = there
    for _ in range(2):  # the second time there is nothing left
        tally.settle()
        assert reports.skips(at=noon)["bot"] == 1
