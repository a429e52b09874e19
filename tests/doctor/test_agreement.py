"""The doctor sees when SQL and Redis differ."""

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.store import keys
from readtrack.subjects import subject_of
from tests.doctor.conftest import found, levels, run
from tests.site.models import Post
from tests.support.factories import hit, post

pytestmark = pytest.mark.django_db


def viewed(row: Post, times: int) -> None:
    for _ in range(times):
        tracker.record(hit(subject_of(row)))


def test_a_counter_that_stays_unsettled_is_a_warning(redis: Redis) -> None:
    row = post()
    assert found("unsettled")[0][:2] == ("ok", "Every counter includes SQL's count.")
    viewed(row, 1)
    assert found("unsettled")[0][:2] == ("ok", "2 counters without SQL's count. The next flush adds it.")
    redis.zincrby(keys.unsettled(), -600_000_000, subject_of(row))
    assert found("unsettled")[0][:2] == ("warning", "2 counters without SQL's count, the oldest for 10 min.")


def test_a_redis_that_was_emptied_is_a_warning_until_the_next_flush(redis: Redis) -> None:
    viewed(post(), 1)
    assert found("epoch")[0][:2] == (
        "ok",
        "No flush has succeeded yet, so Redis cannot have fallen behind SQL.",
    )
    flush()
    assert found("epoch")[0][:2] == ("ok", "Redis has its data of the last flush.")
    assert levels("epoch") == ["ok"]
    redis.flushdb()
    assert levels("epoch") == ["warning"]
    flush()
    assert levels("epoch") == ["ok"]


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
    assert found("drift")[0].message.startswith("2 totals compared with SQL, 2 different, such as site.post:")


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


def test_the_sample_bounds_what_is_compared(redis: Redis, settings: Settings) -> None:
    for _ in range(5):
        viewed(post(), 1)
    flush()
    assert "2 totals" in found("drift", sample=2)[0].message
