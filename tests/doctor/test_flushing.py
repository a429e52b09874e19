"""The doctor sees when counts do not reach SQL, or differ there."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, keys, subjects, tracker
from readtrack.flush import flush
from readtrack.models import FlushRun
from tests.doctor.conftest import found, levels
from tests.factories import hit, post
from tests.site.models import Post

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)


def run(*, ago: int, took: int | None = 1, **values: Any) -> FlushRun:
    """A flush that began so many seconds ago."""
    started = buckets.now() - ago * SECOND
    return FlushRun.objects.create(started=started, ended=None if took is None else started + took * SECOND, **values)


def viewed(row: Post, times: int) -> None:
    for _ in range(times):
        tracker.record(hit(subjects.token(row)))


def test_a_database_with_every_migration_is_well() -> None:
    assert set(levels("migrations")) == {"ok"}


def test_a_migration_that_was_not_applied_is_an_error() -> None:
    MigrationRecorder(connection).record_unapplied("readtrack", "0001_initial")
    [finding] = [one for one in found("migrations") if one.level == "error"]
    assert "readtrack.0001_initial" in finding.message
    assert finding.hint == "Run: manage.py migrate --database default"


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="a file does not go away")
def test_a_database_that_is_gone_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.close()
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "PORT", 1)
        assert levels("migrations") == ["error"]
        assert found("beat") == found("drift") == []
        assert levels("scripts") == levels("marks") == ["ok"]
    connection.close()


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([], [("warning", "Nothing was ever flushed.")]),
        ([{"ago": 60}], [("ok", "began 60 s ago")]),
        ([{"ago": 600}], [("error", "began 10 min ago")]),
        ([{"ago": 3 * 86_400}], [("error", "began 3 days ago")]),
        ([{"ago": 30, "took": None}], [("error", "began never")]),
        (
            [{"ago": 90}, {"ago": 30, "error": "OperationalError: gone"}],
            [("error", "OperationalError: gone"), ("ok", "90")],
        ),
        ([{"ago": 100, "took": 80}], [("ok", "100 s ago"), ("warning", "80 s, longer than the interval")]),
        ([{"ago": 20 * n} for n in range(28)], [("ok", "0 s ago"), ("note", "28 flushes ran")]),
        ([{"ago": -86_400}], [("ok", "0 s ago")]),
    ],
    ids=["none", "well", "late", "days late", "never ended", "failed", "slow", "two beats", "clock a day ahead"],
)
def test_flushes_are_judged_by_their_records(runs: list[dict[str, Any]], expected: list[tuple[str, str]]) -> None:
    for values in runs:
        run(**values)
    findings = found("beat")
    assert [finding.level for finding in findings] == [level for level, _ in expected]
    for finding, (level, words) in zip(findings, expected, strict=True):
        assert words in finding.message
        assert bool(finding.hint) == (level != "ok")


def test_a_mark_that_nobody_settles_is_a_warning(redis: Redis) -> None:
    row = post()
    viewed(row, 1)
    assert found("marks")[0][1:3] == ("ok", "1 totals wait for SQL's base, which the next flush gives them.")
    redis.zincrby(keys.unbased(), -600_000_000, subjects.token(row))
    assert found("marks")[0][1:3] == ("warning", "1 totals lack SQL's base, the oldest for 10 min.")


def test_a_redis_that_was_emptied_is_a_warning_until_the_next_flush(redis: Redis) -> None:
    viewed(post(), 1)
    assert levels("lineage") == ["ok"]
    flush()
    assert levels("lineage") == ["ok"]
    redis.flushdb()
    assert levels("lineage") == ["warning"]
    flush()
    assert levels("lineage") == ["ok"]


def test_views_since_the_last_flush_are_no_drift(redis: Redis) -> None:
    row = post()
    viewed(row, 3)
    flush()
    viewed(row, 2)
    viewed(post(), 1)  # lacks its base: nothing to compare
    assert found("drift")[0][1:3] == ("ok", "1 totals compared with SQL: they agree.")


@pytest.mark.parametrize("stored", [1, 9])
def test_a_count_that_nothing_explains_is_a_warning(redis: Redis, stored: int) -> None:
    row, other = post(), post()
    viewed(row, 3)
    viewed(other, 3)
    flush()
    redis.delete(*redis.scan_iter("trending:*"))
    Post.objects.filter(pk=row.pk).update(view_count=stored)
    [finding] = found("drift")
    assert finding.level == "warning"
    assert f"1 of 2 totals differ from SQL, such as {subjects.token(row)}" in finding.message


def test_drift_leaves_out_rows_that_are_gone(redis: Redis) -> None:
    row = post()
    viewed(row, 3)
    flush()
    Post.objects.filter(pk=row.pk).delete()
    redis.set(keys.total("gone.model:1"), 5)
    assert levels("drift") == ["ok"]


def test_drift_needs_something_to_compare_and_a_flush_to_compare_by() -> None:
    assert levels("drift") == ["note"]
    run(ago=7200)
    assert levels("drift") == ["note"]
    run(ago=60)
    assert found("drift")[0][1:3] == ("ok", "0 totals compared with SQL: they agree.")


def test_the_sample_bounds_what_is_compared(redis: Redis, settings: Settings) -> None:
    for _ in range(5):
        viewed(post(), 1)
    flush()
    assert "2 totals" in found("drift", sample=2)[0].message
