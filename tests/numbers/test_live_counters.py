"""Reading of hours, and of the last minutes."""

from datetime import datetime, timedelta

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.numbers import live_counters, recent_minutes
from readtrack.numbers.models import Breakdown
from readtrack.store import keys, scripts
from readtrack.store.trending import refresh_trending
from readtrack.subjects import subject_of
from tests.support import factories
from tests.support.counts import stored, view_times

MINUTE = timedelta(minutes=1)


def test_no_hours_are_no_question() -> None:
    assert live_counters.subject_hours([], subject="site.post:1") == []


def test_of_no_models_nothing_is_asked() -> None:
    assert recent_minutes.visitors([], 5, at=buckets.now()) == []


def test_the_views_of_the_last_minutes_are_read_before_and_after_trending_takes_them_in(
    noon: datetime,
) -> None:
    subjects = ["site.post:1", "site.post:2"]
    for views in (1, 2):
        tracker.record(factories.hit("site.post:1", at=noon))
        for _ in range(2):
            read = scripts.run_all(*recent_minutes.views(["site.post"], 5, at=noon))
            assert sum(read) == views
            assert by_minute(subjects, at=noon) == {
                "site.post:1": [0, 0, 0, 0, views],
                "site.post:2": [0] * 5,
            }
            refresh_trending(at=noon)


@pytest.mark.parametrize("wrong", ["string", "list", "no number"])
def test_a_key_of_another_type_costs_its_own_subject_alone(redis: Redis, wrong: str) -> None:
    now = buckets.now()
    hours = [buckets.hour_index(now) - 1, buckets.hour_index(now)]
    subjects = ["site.post:1", "site.post:2"]
    for subject in subjects:
        tracker.record(factories.hit(subject, at=now))
    broken = keys.hours("site.post:1")
    match wrong:
        case "no number":
            redis.hset(broken, buckets.hour_bucket(now), "many")
        case "string":
            redis.set(broken, 1)
        case "list":
            redis.delete(broken, keys.total("site.post:1"))
            redis.lpush(broken, 1)
            redis.lpush(keys.total("site.post:1"), 1)
    found: dict[str, live_counters.TotalAndHours] = {}
    for views in scripts.run_all(*live_counters.totals_and_hours(subjects, hours)):
        found.update(views)
    assert found["site.post:1"].total == int(wrong != "list")
    assert sum(found["site.post:1"].views_by_hour.values()) == 0
    assert found["site.post:2"] == (1, dict(zip(hours, (0, 1), strict=True)))
    assert live_counters.subject_hours(hours, subject="site.post:1") == [0, 0]
    live_counters.shorten_hours(subjects, present=hours[1] + 1)
    assert redis.ttl(keys.hours("site.post:2")) <= keys.DAY
    assert (redis.ttl(broken) == -1) == (wrong != "no number")


@pytest.mark.one_server("it names the keys of a single partition")
def test_a_minute_of_another_type_is_as_a_missing_one(redis: Redis, noon: datetime) -> None:
    for at in (noon, noon - MINUTE):
        tracker.record(factories.hit("site.post:1", at=at))
    redis.set(f"trending:bucket:{buckets.minute_bucket(noon)}", "of somebody else")
    assert scripts.run_all(*recent_minutes.views(["site.post"], 5, at=noon)) == [1]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_unsettled", [True, False])
def test_a_hash_of_another_type_costs_its_own_values_alone(
    redis: Redis, settings: Settings, *, is_unsettled: bool
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ("device",)}}
    broken, other = factories.post(), factories.post()
    view_times(broken, dimensions=(("device", "phone"),))
    if not is_unsettled:
        flush()
    key = f"views:device:{subject_of(broken)}"
    assert redis.delete(key) == 1
    redis.rpush(key, "of somebody else")
    view_times(broken, dimensions=(("device", "phone"),))
    view_times(other, dimensions=(("device", "phone"),))
    assert flush().error == ""
    assert (stored(broken), stored(other)) == (2, 1)
    rows = Breakdown.objects.filter(kind="views:device").values_list("subject", "count")
    stored_before = {} if is_unsettled else {subject_of(broken): 1}
    assert dict(rows) == {subject_of(other): 1, **stored_before}


@pytest.mark.parametrize(
    ("later", "is_shortened"), [(-1, True), (0, False), (1, False), (2, False)]
)
def test_an_hour_that_begins_during_a_flush_lives_on(
    redis: Redis, later: int, is_shortened: bool
) -> None:
    present = buckets.hour_index(buckets.now())
    for hour in (present - 1, present + later):
        tracker.record(factories.hit("site.post:1", at=buckets.hour_start(hour)))
    live_counters.shorten_hours(["site.post:1", "site.post:2"], present=present)
    assert (redis.ttl(keys.hours("site.post:1")) <= keys.DAY) == is_shortened
    assert redis.ttl(keys.hours("site.post:1")) > keys.DAY - 60


def by_minute(subjects: list[str], *, at: datetime) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for call in recent_minutes.by_minute(subjects, 5, at=at):
        views = scripts.run(call)
        found.update(views)
        refresh_trending(at=at)  # as another process may between any two commands
    return found


def test_a_view_that_trending_takes_in_meanwhile_is_in_its_minute_once(noon: datetime) -> None:
    subjects = [f"site.post:{number}" for number in range(1300)]
    for at, subject in ((noon, subjects[0]), (noon - MINUTE, subjects[0]), (noon, subjects[-1])):
        tracker.record(factories.hit(subject, at=at))
    found = by_minute(subjects, at=noon)
    assert {subject: views for subject, views in found.items() if sum(views)} == {
        subjects[0]: [0, 0, 0, 1, 1],
        subjects[-1]: [0, 0, 0, 0, 1],
    }
    assert sorted(found) == sorted(subjects)


def test_a_minute_of_another_type_costs_itself_alone(redis: Redis, noon: datetime) -> None:
    for at in (noon, noon - MINUTE):
        tracker.record(factories.hit("site.post:1", at=at))
    tag = keys.tag("site.post:1")
    minute = buckets.minute_bucket(noon)
    for family in (keys.trending_bucket, keys.trending_taken):
        redis.set(family(tag, minute), 1)
    [call] = recent_minutes.by_minute(["site.post:1"], 5, at=noon)
    assert scripts.run(call) == {"site.post:1": [0, 0, 0, 1, 0]}
