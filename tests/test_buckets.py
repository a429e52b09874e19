"""Hours and minutes have the same names in all places, in UTC."""

import time
from datetime import date, datetime, timedelta, timezone

import pytest
from pytest_django import Settings

from readtrack import buckets


def test_a_naive_time_is_in_the_time_zone_of_the_site_and_not_of_the_machine(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    with monkeypatch.context() as machine:
        machine.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        assert buckets.now(datetime(2026, 11, 20, 1)) == datetime(2026, 11, 20, tzinfo=timezone.utc)
    time.tzset()


def test_a_time_is_taken_as_utc_wherever_it_comes_from() -> None:
    tokyo = datetime(2026, 1, 1, 8, 5, tzinfo=timezone(timedelta(hours=9)))
    at = buckets.now(tokyo)
    assert at == tokyo
    assert (buckets.hour_bucket(at), buckets.minute_bucket(at)) == ("2025123123", "202512312305")


def test_an_hour_is_numbered_by_its_time_and_by_its_name() -> None:
    at = datetime(2026, 1, 1, 1, 59, 59, tzinfo=timezone.utc)
    number = buckets.hour_index(at)
    assert buckets.bucket_index(buckets.hour_bucket(at)) == number
    assert buckets.hour_start(number) == at.replace(minute=0, second=0)


def test_the_present_is_aware() -> None:
    assert buckets.now().utcoffset() == timedelta(0)


def test_the_last_minutes_come_oldest_first_with_the_running_one() -> None:
    at = datetime(2026, 1, 1, 1, 1, 59, tzinfo=timezone.utc)
    minutes = buckets.minute_buckets(3, until=at)
    assert minutes == ["202601010059", "202601010100", "202601010101"]


def test_an_hour_is_counted_to_the_day_of_the_site_in_which_it_begins(settings: Settings) -> None:
    settings.TIME_ZONE = "Asia/Kolkata"  # 5:30 hours ahead of UTC
    before = datetime(2026, 1, 1, 18, 20, tzinfo=timezone.utc)  # 23:50 there
    after = datetime(2026, 1, 1, 18, 40, tzinfo=timezone.utc)  # 0:10 there
    days = [buckets.local_day_bucket(before), buckets.local_day_bucket(after)]
    assert days == ["20260101", "20260102"]
    assert buckets.local_days(before, after) == [date(2026, 1, 1), date(2026, 1, 2)]
