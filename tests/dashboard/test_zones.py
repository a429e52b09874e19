"""The numbers of the dashboard, of its files and of the API are those of the local days."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from readtrack import buckets
from readtrack.api import answers
from readtrack.digest.contents import contents_of
from readtrack.digest.periods import DigestPeriod
from tests.support.journal import Journal

pytestmark = pytest.mark.django_db


def by_step(first: date, days: int, *, minutes: int, zone: str) -> Iterator[datetime]:
    """Yields the times of some days of the zone in equal steps, a little after the beginning."""
    at = datetime(first.year, first.month, first.day, tzinfo=timezone.utc) - buckets.DAY
    local = ZoneInfo(zone)
    while at.astimezone(local).date() < first + days * buckets.DAY:
        if at.astimezone(local).date() >= first:
            yield at + timedelta(minutes=2)
        at += timedelta(minutes=minutes)


def numbers(**given: Any) -> dict[str, Any]:
    given = {name.rstrip("_"): str(value) for name, value in given.items()}
    user = User(is_superuser=True, is_staff=True, is_active=True, pk=1)
    return answers.answer("numbers", user, given)


def approx(visitors: int) -> Any:
    """Returns what equals the number of visitors, which Redis estimates."""
    return pytest.approx(visitors, abs=1 if visitors else 0)


#: Days whose midnight clocks skip, and days on which they go back and forward at other times.
CHANGES = [
    ("America/Santiago", date(2025, 9, 7), 23),
    ("Africa/Cairo", date(2025, 4, 25), 23),
    ("Asia/Beirut", date(2025, 3, 30), 23),
    ("Atlantic/Azores", date(2025, 3, 30), 23),
    ("America/Havana", date(2025, 3, 9), 23),
    ("America/Sao_Paulo", date(2018, 11, 4), 23),
    ("America/Havana", date(2025, 11, 2), 25),
    ("Africa/Cairo", date(2025, 10, 31), 24),
    ("Europe/Berlin", date(2025, 10, 26), 25),
    ("Antarctica/Troll", date(2025, 3, 30), 22),
    ("Antarctica/Troll", date(2025, 10, 26), 26),
    ("Africa/Casablanca", date(2025, 2, 23), 25),
    ("Australia/Adelaide", date(2025, 4, 6), 25),
    ("Pacific/Apia", date(2011, 12, 31), 24),
    ("Asia/Kathmandu", date(2025, 3, 5), 24),
]


@pytest.mark.parametrize(("zone", "day", "hours"), CHANGES)
def test_a_day_has_its_own_views_and_visitors_by_the_day_and_by_the_hour(
    zone: str, day: date, hours: int, settings: Settings, tmp_path: Path
) -> None:
    settings.TIME_ZONE = zone
    settings.READTRACK = {"NUMBERS": {"days": 90, "years": 0}}
    days = [day - buckets.DAY, day, day + buckets.DAY]
    journal = Journal(tmp_path, by_step(days[0], 3, minutes=60, zone=zone))
    expected = [journal.on(one, zone=zone) for one in days if journal.on(one, zone=zone)]
    by_day = numbers(from_=days[0], to=days[-1], interval="day")
    assert [row["views"] for row in by_day["rows"]] == expected
    assert [row["visitors"] for row in by_day["rows"]] == [*map(approx, expected)]
    by_hour = numbers(from_=day, to=day, interval="hour")
    assert [row["views"] for row in by_hour["rows"]] == [1] * hours
    for first, last in ((days[0], days[0]), (days[0], day), (day, day)):
        totals = numbers(from_=first, to=last)["totals"]
        on_days = journal.on(*{first, last}, zone=zone)
        assert totals["views"]["count"] == on_days
        assert totals["visitors"]["count"] == approx(on_days)
    digest = contents_of(DigestPeriod(days[0], days[0]))
    on_first_day = journal.on(days[0], zone=zone)
    assert (digest.views.now, digest.visitors.now) == (on_first_day, approx(on_first_day))


def test_a_file_by_the_day_has_days_also_where_one_has_no_midnight(
    admin_client: Client, settings: Settings, tmp_path: Path
) -> None:
    settings.TIME_ZONE = "America/Santiago"
    first = date(2025, 9, 6)
    Journal(tmp_path, by_step(first, 3, minutes=60, zone="America/Santiago"))
    given = {"from": "2025-09-06", "to": "2025-09-08", "by": "day", "format": "csv"}
    path = "/admin/readtrack/dashboard/"
    answer = admin_client.get(path, {**given, "table": "over-time"}, follow=True)
    lines = b"".join(answer.streaming_content).decode().splitlines()[1:]  # type: ignore[attr-defined]
    rows = [line.split(",")[:2] for line in lines]
    assert rows == [['"2025-09-06"', "24"], ['"2025-09-07"', "23"], ['"2025-09-08"', "24"]]


#: Views by the day of the month, at the end of February and the beginning of March.
VIEWS = {27: 2, 28: 3, 29: 5, 1: 7, 2: 11, 3: 13}


def test_the_days_of_a_year_ago_stand_beside_the_same_days_over_the_29th_of_february(
    settings: Settings, tmp_path: Path
) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    days = [
        date(year, 2, 27) + number * buckets.DAY
        for year in (2023, 2024, 2025)
        for number in range(6)
    ]
    noon = [datetime(day.year, day.month, day.day, 12, tzinfo=timezone.utc) for day in days]
    times = [at + timedelta(minutes=n) for at in noon for n in range(VIEWS.get(at.day, 0))]
    earlier = datetime(2023, 2, 1, tzinfo=timezone.utc)  # so that the history has all of these days
    Journal(tmp_path, [earlier, *times])
    for year, expected in (
        (2024, {"02-27": 2, "02-28": 3, "02-29": 3, "03-01": 7, "03-02": 11, "03-03": 13}),
        (2025, {"02-27": 2, "02-28": 3, "03-01": 7, "03-02": 11, "03-03": 13}),
    ):
        period = {"from_": f"{year}-02-27", "to": f"{year}-03-03", "compare": "year"}
        answer = numbers(**period, interval="day")
        assert {row["since"][5:10]: row["before"] for row in answer["rows"]} == expected
        assert answer["period"]["compared_with"]["until"][:10] == f"{year - 1}-03-04"
        # All days in between, so also the 29th of February of 2024.
        before = sum(VIEWS[day] for day in VIEWS if day != 29 or year == 2025)
        assert answer["totals"]["views"]["before"] == before
