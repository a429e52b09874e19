"""The days of a digest, and the morning on which it is due."""

from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from pytest_django import Settings

from readtrack.digest.periods import DigestPeriod, last_period

MONDAY = date(2026, 11, 23)
WEEK = DigestPeriod(date(2026, 11, 16), date(2026, 11, 22))


def utc(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=timezone.utc)


@pytest.mark.parametrize("day", range(23, 30))
def test_the_last_week_goes_from_monday_to_sunday(day: int) -> None:
    assert last_period("week", at=utc(day, 12)) == WEEK
    yesterday = date(2026, 11, day - 1)
    assert last_period("day", at=utc(day, 12)) == DigestPeriod(yesterday, yesterday)


def test_the_days_are_those_of_the_sites_time_zone(settings: Settings) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    assert last_period("week", at=utc(22, 14, 59)).last_day == date(2026, 11, 15)
    assert last_period("week", at=utc(22, 15)).last_day == date(2026, 11, 22)


@pytest.mark.parametrize(
    ("site", "reader", "due"),
    [
        ("UTC", "UTC", utc(23, 7)),
        ("Europe/Berlin", "America/New_York", utc(23, 12)),
        ("Europe/Berlin", "Asia/Tokyo", utc(22, 23)),  # at 8 in Tokyo, when the week is over
        ("America/Los_Angeles", "Pacific/Auckland", utc(23, 8)),
    ],
)
def test_it_is_due_at_seven_where_the_reader_is_or_when_the_days_are_over(
    site: str, reader: str, due: datetime, settings: Settings
) -> None:
    settings.TIME_ZONE = site
    zone = ZoneInfo(reader)
    assert WEEK.due(zone) == due
    assert not WEEK.is_due(zone, at=due - timedelta(minutes=1))
    assert WEEK.is_due(zone, at=due)
    assert WEEK.is_due(zone, at=due + timedelta(hours=23))
    assert not WEEK.is_due(zone, at=due + timedelta(hours=24))
    assert WEEK.may_be_due(at=due)


def test_on_other_days_it_is_due_nowhere() -> None:
    assert not WEEK.may_be_due(at=utc(22, 12))
    assert not WEEK.may_be_due(at=utc(25, 12))
    assert not WEEK.may_be_due(at=utc(28, 7))


def test_when_clocks_change_the_morning_is_still_seven(settings: Settings) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    sunday = date(2026, 10, 25)
    due = DigestPeriod(sunday, sunday).due(ZoneInfo("Europe/Berlin"))
    assert due == datetime(2026, 10, 26, 6, tzinfo=timezone.utc)
