"""The calendar of a zone agrees with a plain walk from moment to moment, wherever clocks change."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

from django.utils import timezone as current
from pytest_django import Settings

from readtrack import buckets
from readtrack.numbers import local_time

# Zones with half and quarter hours, without some midnights, with midnights that come twice, with a
# day that was skipped, with changes by half an hour or by two, and at one minute past midnight.
ZONES = (
    "UTC",
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Asuncion",
    "America/Caracas",
    "America/Havana",
    "America/Nuuk",
    "America/Santiago",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Asia/Kolkata",
    "Asia/Pyongyang",
    "Asia/Tehran",
    "Atlantic/Azores",
    "Australia/Adelaide",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
)
STEP = timedelta(minutes=15)
# The hours of these zones begin at the same minute throughout the years of `DAYS_OF_NOW`.
WITHOUT_WHOLE_HOURS = {"Australia/Lord_Howe"}  # its clocks change by half an hour


def clock_changes(zone: ZoneInfo, year: int) -> Iterator[date]:
    """Yields the days of the year at whose noon the zone has another offset than the day before."""
    noon = datetime(year, 1, 1, 12, tzinfo=timezone.utc)
    for _ in range(365):
        later = noon + buckets.DAY
        if noon.astimezone(zone).utcoffset() != later.astimezone(zone).utcoffset():
            yield later.astimezone(zone).date()
        noon = later


def awkward_days(zone: ZoneInfo, *years: int) -> list[date]:
    """Returns ordinary days, ends of months and years, leap days, and those when clocks change."""
    days = []
    for year in years:
        days += [date(year, 6, 17), date(year, 8, 31), date(year, 12, 31), date(year, 2, 28)]
        days += clock_changes(zone, year)
    return days


def days_by_walk(zone: ZoneInfo, day: date) -> dict[date, tuple[datetime, datetime]]:
    """Returns the first moment and the end of each of the days about the day.

    A day begins after the last step on an earlier day, because the clocks of some zones have gone
    back to the day before.
    """
    at = datetime.combine(day - 3 * buckets.DAY, time(), timezone.utc)
    steps = [at + number * STEP for number in range(6 * 24 * 4)]
    day_of_step = {step: step.astimezone(zone).date() for step in steps}
    starts: dict[date, datetime] = {}
    latest = date.max
    for step in reversed(steps):
        latest = min(latest, day_of_step[step])
        starts[latest] = step
    in_order = sorted(starts)
    # The first and the last day may be cut.
    return {
        one: (starts[one], starts[following])
        for one, following in pairwise(in_order)
        if one != in_order[0]
    }


def test_days_begin_where_a_walk_from_moment_to_moment_comes_to_them() -> None:
    wrong = []
    number_of_days = 0
    for name in ZONES:
        zone = ZoneInfo(name)
        for day in awkward_days(zone, 2005, 2011, 2016, 2024, 2026):
            for walked, (start, end) in days_by_walk(zone, day).items():
                number_of_days += 1
                first = local_time.day_start(walked, zone=zone)
                last = local_time.day_start(walked + buckets.DAY, zone=zone)
                # Steps are of 15 minutes; St. John's changed its clocks at one past midnight.
                if not (start - STEP < first <= start and end - STEP < last <= end):
                    wrong.append(f"{name} {walked}: {first} to {last}, walked {start} to {end}")
    assert number_of_days > 20 * 6
    assert not wrong


def test_each_hour_is_in_one_day_and_the_days_of_the_site_consist_of_whole_hours(
    settings: Settings,
) -> None:
    wrong = []
    for name in ZONES:
        settings.TIME_ZONE = name
        zone = ZoneInfo(name)
        for day in awkward_days(zone, 2025, 2026):
            for walked, (start, end) in days_by_walk(zone, day).items():
                next_day = walked + buckets.DAY
                hours = range(local_time.first_hour_of(walked), local_time.first_hour_of(next_day))
                if {buckets.local_day(hour) for hour in hours} != {walked}:
                    wrong.append(f"{name} {walked} has hours of other days")
                begins = buckets.hour_start(hours.start)
                ends = buckets.hour_start(hours.stop)
                late = timedelta(0) if name not in WITHOUT_WHOLE_HOURS else timedelta(minutes=30)
                if not (begins - start <= late and ends - end <= late):
                    wrong.append(f"{name} {walked}: hours {begins} to {ends}, not {start} to {end}")
    assert not wrong


def test_the_periods_of_a_chart_follow_each_other_without_a_gap_and_none_is_empty() -> None:
    wrong = []
    for name in ZONES:
        zone = ZoneInfo(name)
        since = datetime(2011, 11, 2, tzinfo=timezone.utc)
        with current.override(zone):
            for by, most in (("day", 80), ("week", 13), ("month", 4)):
                starts = local_time.period_starts(since, since + timedelta(days=75), by=by)  # type: ignore[arg-type]
                if len(starts) > most or starts != sorted(set(starts)):
                    wrong.append(f"{name} by {by}: {starts}")
    assert not wrong


def test_a_day_that_a_zone_has_skipped_is_empty() -> None:
    apia = ZoneInfo("Pacific/Apia")
    skipped = local_time.day_start(date(2011, 12, 30), zone=apia)
    assert skipped == local_time.day_start(date(2011, 12, 31), zone=apia)
    with current.override(apia):
        starts = local_time.period_starts(skipped - buckets.DAY, skipped + buckets.HOUR, by="day")
        assert [local_time.day_of(start).day for start in starts] == [29, 31]


def test_a_time_that_clocks_skip_is_their_first_one_after_it() -> None:
    expected = {
        ("Europe/Berlin", date(2026, 3, 29), time(2, 30)): "2026-03-29T03:00:00+02:00",
        ("Antarctica/Troll", date(2026, 3, 29), time(2)): "2026-03-29T03:00:00+02:00",
        ("America/Santiago", date(2026, 9, 6), time(0, 30)): "2026-09-06T01:00:00-03:00",
        ("Australia/Lord_Howe", date(2026, 10, 4), time(2, 10)): "2026-10-04T02:30:00+11:00",
        ("Pacific/Apia", date(2011, 12, 30), time(15)): "2011-12-31T00:00:00+14:00",
    }
    found = {}
    for name, day, clock in expected:
        at = local_time.at_clock(day, clock, zone=ZoneInfo(name))
        found[name, day, clock] = at.astimezone(ZoneInfo(name)).isoformat()
    assert found == expected


def test_a_time_that_clocks_show_twice_has_a_first_and_a_second_moment() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    autumn = date(2026, 10, 25)
    first = local_time.at_clock(autumn, time(2), zone=berlin)
    second = local_time.at_clock(autumn, time(2), zone=berlin, fold=1)
    assert second - first == buckets.HOUR


def test_a_year_ago_was_the_same_day_and_the_28th_of_february_for_a_leap_day() -> None:
    days = [date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1), date(2025, 2, 28)]
    assert [local_time.year_before(day).isoformat() for day in days] == [
        "2023-02-28",
        "2023-02-28",
        "2023-03-01",
        "2024-02-28",
    ]


def test_months_follow_each_other_whatever_their_length() -> None:
    month = date(2023, 12, 31)
    for expected in (date(2024, 1, 1), date(2024, 2, 1), date(2024, 3, 1)):
        after = local_time.month_after(month)
        assert after == expected
        assert local_time.month_before(after) == month.replace(day=1)
        month = after
