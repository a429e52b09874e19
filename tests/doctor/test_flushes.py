"""The doctor sees when flushes do not run, or do not end well, and when SQL and Redis differ."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, tracker
from readtrack.doctor.report import examine
from readtrack.flush.run import flush
from readtrack.models import PendingPublication
from readtrack.schedule import readtrack_schedule
from readtrack.store import keys
from readtrack.subjects import subject_of
from tests.doctor.conftest import found, levels, run
from tests.site.models import Post
from tests.support.factories import hit, post

pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="a file does not go away")
def test_a_database_that_is_gone_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.close()
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "PORT", 1)
        assert levels("tables") == ["error"]
        assert found("flushes") == found("outbox") == found("drift") == []
        assert levels("scripts") == levels("totals") == ["ok"]
    connection.close()


def test_a_missing_table_is_named_once() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE readtrack_flushrun CASCADE")
    [finding] = [one for one in examine() if "readtrack_flushrun" in one.message]
    assert finding.level == "error"
    assert "manage.py migrate" in finding.hint


def test_a_table_that_no_flush_has_missed_yet_is_found() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE readtrack_rename")
    [finding] = found("tables")
    assert finding.level == "error"
    assert "lacks tables of readtrack," in finding.message
    assert finding.hint == "Run: manage.py migrate"


def test_publications_that_redis_has_not_got_are_shown(settings: Settings) -> None:
    assert levels("outbox") == ["ok"]
    waiting = PendingPublication.objects.create(subject="site.category:1")
    [finding] = found("outbox")
    assert (finding.level, finding.message[:14]) == ("ok", "1 publication ")
    waiting.written = buckets.now() - timedelta(seconds=200)
    waiting.save()
    [finding] = found("outbox")
    assert finding.level == "warning"
    assert "the oldest for 3 min" in finding.message


def test_a_flush_is_late_by_the_interval(settings: Settings) -> None:
    run(ago=600)
    assert levels("flushes") == ["error"]
    settings.READTRACK = {"FLUSH_INTERVAL": 300}
    assert levels("flushes") == ["ok"]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([], [("warning", "No flush has run yet.")]),
        ([{"ago": 60}], [("ok", "began 6")]),
        ([{"ago": 600}], [("error", "began 10 min ago")]),
        ([{"ago": 3 * 86_400}], [("error", "began 3 days ago")]),
        ([{"ago": 30, "took": None}], [("error", "No flush has succeeded yet.")]),
        (
            [{"ago": 90}, {"ago": 30, "error": "OperationalError: gone"}],
            [("error", "OperationalError: gone"), ("ok", "began 9")],
        ),
        (
            [{"ago": 100, "took": 80}],
            [("ok", "began 10"), ("warning", "80 s, longer than the interval of 60 s")],
        ),
        ([{"ago": 20 * n} for n in reversed(range(28))], [("ok", " s ago")]),
        ([{"ago": -86_400}], [("ok", "0 s ago")]),
    ],
    ids=[
        "none",
        "well",
        "late",
        "days late",
        "never ended",
        "failed",
        "slow",
        "two beats",
        "clock a day ahead",
    ],
)
def test_flushes_are_judged_by_their_records(
    runs: list[dict[str, Any]], expected: list[tuple[str, str]]
) -> None:
    for values in runs:
        run(**values)
    findings = found("flushes")
    assert [finding.level for finding in findings] == [level for level, _ in expected]
    for finding, (level, words) in zip(findings, expected, strict=True):
        assert words in finding.message
        assert bool(finding.hint) == (level != "ok")


def viewed(row: Post, times: int) -> None:
    for _ in range(times):
        tracker.record(hit(subject_of(row)))


def test_views_since_the_last_flush_are_no_drift(redis: Redis) -> None:
    row = post()
    viewed(row, 3)
    flush()
    viewed(row, 2)
    viewed(post(), 1)  # unsettled: nothing to compare
    assert found("drift")[0][:2] == ("ok", "1 total compared with SQL, none different.")


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
    assert finding.message == f"2 totals compared with SQL, 1 different, such as {subject_of(row)}."
    Post.objects.filter(pk=other.pk).update(view_count=stored)
    assert found("drift")[0].message.startswith(
        "2 totals compared with SQL, 2 different, such as site.post:"
    )


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
    assert found("drift")[0][:2] == ("ok", "0 totals compared with SQL, none different.")


def test_the_sample_bounds_what_is_compared(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readtrack.doctor.measurements.SAMPLE", 2)
    for _ in range(5):
        viewed(post(), 1)
    flush()
    assert "2 totals" in found("drift")[0].message


def test_what_has_to_run_the_schedule_is_said(settings: Settings) -> None:
    assert "CELERY_BEAT_SCHEDULE has no tasks of readtrack" in found("schedule")[0].message
    settings.CELERY_BEAT_SCHEDULE = {"of the site": {"task": "site.mail", "schedule": 60.0}}
    assert "CELERY_BEAT_SCHEDULE has no tasks of readtrack" in found("schedule")[0].message
    settings.CELERY_BEAT_SCHEDULE = {**readtrack_schedule()}
    # Settings cannot tell what runs; the flushes do.
    assert found("schedule")[0].message == (
        "CELERY_BEAT_SCHEDULE has the tasks of readtrack, which Celery's beat and a worker have to"
        " run."
    )


def test_the_schedule_of_a_site_whose_flushes_are_late_has_a_hint() -> None:
    run(ago=7200)
    [finding] = found("flushes")
    assert finding.level == "error"
    assert "manage.py readtrack schedule" in finding.hint
