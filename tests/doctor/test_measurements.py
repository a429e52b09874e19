"""Measurements are values with units, and are judged without a question to a server."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import buckets
from readtrack.doctor import findings, measurements
from readtrack.models import PendingPublication
from readtrack.sql.databases import OldestLock
from readtrack.store import counters, keys, skips
from tests.conftest import Start
from tests.doctor.conftest import SECOND, run

pytestmark = pytest.mark.django_db


def test_memory_is_in_bytes(start_redis: Start) -> None:
    with Redis.from_url(start_redis(maxmemory="100000000").url) as client:
        memory = measurements.memory(client)
        used = int(client.info("memory")["used_memory"])
    assert (memory.policy, memory.limit) == ("noeviction", 100_000_000)
    assert memory.used == pytest.approx(used, rel=0.1)


def test_the_age_and_the_length_of_flushes_are_times() -> None:
    assert measurements.flushes() == measurements.Flushes(
        has_record=False, last_error="", age=None, took=None
    )
    run(ago=90, took=30)
    run(ago=10, error="OperationalError: gone")
    flushes = measurements.flushes()
    assert (flushes.has_record, flushes.last_error) == (True, "OperationalError: gone")
    assert flushes.took == 30 * SECOND
    assert flushes.age
    assert 90 * SECOND <= flushes.age < 100 * SECOND


def test_the_outbox_has_the_age_of_its_oldest_publication() -> None:
    assert measurements.outbox() == measurements.Outbox(0, timedelta())
    for ago in (50, 200, 10):
        PendingPublication.objects.create(
            subject="site.category:1", written=buckets.now() - ago * SECOND
        )
    outbox = measurements.outbox()
    assert outbox.publications == 3
    assert 200 * SECOND <= outbox.age < 210 * SECOND


def test_notices_about_addresses_are_counted_over_a_day(redis: Redis) -> None:
    now = buckets.now()
    for hours, times in ((0, 2), (23, 3), (30, 9)):
        redis.hincrby(skips.key_of(now - hours * buckets.HOUR), "forwarded", times)
    assert measurements.addresses() == {"forwarded": 5}


def test_totals_are_counted_and_those_that_are_no_numbers_are_named(redis: Redis) -> None:
    redis.mset({keys.total(f"site.post:{number}"): number for number in range(5)})
    redis.set(keys.total("site.post:9"), "many")
    totals = measurements.totals()
    assert totals.count == 6
    assert list(totals.broken) == [keys.total("site.post:9")]


def test_a_total_that_is_removed_meanwhile_is_not_broken(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.set(keys.total("site.post:1"), 1)
    monkeypatch.setattr(counters, "scan", lambda: iter(["site.post:1", "site.post:2"]))
    assert measurements.totals() == measurements.Totals(2, [], [])


def test_totals_of_models_that_are_no_more_are_found(redis: Redis) -> None:
    for subject in ("site.post:1", "site.post_2019:1", "old.topic:2", "site.category:1"):
        redis.set(keys.total(subject), 1)
    totals = measurements.totals()
    assert totals.unknown == ["old.topic", "site.category", "site.post_2019"]
    healthy, warning = findings.of_totals(totals)
    assert (healthy.level, warning.level) == ("ok", "warning")
    assert "old.topic, site.category, site.post_2019" in warning.message
    assert "FollowRename" in warning.hint


@pytest.mark.parametrize(
    ("judge", "value", "level"),
    [
        (findings.of_ping, 0.005, "ok"),
        (findings.of_ping, 0.0051, "warning"),
        (findings.of_version, measurements.Version("Redis", "6.1.9"), "error"),
        (findings.of_version, measurements.Version("Valkey", "10.0.0"), "ok"),
        (findings.of_memory, measurements.Memory("noeviction", used=91, limit=100), "warning"),
        (findings.of_memory, measurements.Memory("noeviction", used=90, limit=100), "ok"),
        (findings.of_locks, measurements.Locks(3, oldest=None), "ok"),
        (
            findings.of_locks,
            measurements.Locks(3, OldestLock(7, timedelta(hours=2), "SELECT 1")),
            "warning",
        ),
        (findings.of_drift, measurements.Drift(5, ["site.post:1"]), "warning"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_value_is_judged_without_a_server(
    settings: Settings, judge: Any, value: Any, level: str
) -> None:
    settings.CACHES = {}
    [finding] = judge(value)
    assert finding.level == level


def test_a_long_statement_is_cut_in_the_message_alone() -> None:
    lock = OldestLock(7, timedelta(hours=2), "x" * 500)
    [finding] = findings.of_locks(measurements.Locks(1, lock))
    assert finding.message.endswith("open for 2 h, last statement: " + "x" * 200)


@pytest.mark.parametrize(
    ("role", "level", "words"),
    [
        ({"is_in_cluster": True, "is_reached_as_cluster": False}, "error", "part of a cluster"),
        ({"is_in_cluster": True, "replicas": 0}, "warning", "with 0 replicas."),
        ({"is_in_cluster": True, "needs_full_coverage": True}, "warning", "refuses all commands"),
        ({"is_in_cluster": True}, "ok", "a primary with 1 replica."),
        ({"is_replica": True}, "error", "is a replica"),
    ],
    ids=str,
)
def test_a_servers_role_is_judged(role: dict[str, Any], level: str, words: str) -> None:
    values: dict[str, Any] = {
        "is_in_cluster": False,
        "is_reached_as_cluster": True,
        "is_replica": False,
        "replicas": 1,
        "needs_full_coverage": False,
    }
    [finding] = findings.of_role(measurements.Role(**(values | role)))
    assert finding.level == level
    assert words in finding.message
