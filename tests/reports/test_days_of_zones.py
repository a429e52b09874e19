"""A day given as `since` or `until` is that day of the zone: each view is in exactly one day."""

from collections import Counter, defaultdict
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.management import call_command
from pytest_django import Settings

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.sql import day_breakdowns
from readtrack.subjects import subject_of
from tests.imports import weblogs
from tests.site.models import Post
from tests.support import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_dimensions")]

DAYS = (date(2025, 3, 10), date(2025, 3, 11), date(2025, 3, 12))
#: The times of views on each of DAYS: those around midnight, and one in the afternoon.
CLOCKS = (
    {time(23, 40): 6, time(15): 4},
    {time(0, 20): 1, time(23, 50): 3},
    {time(0, 5): 2, time(0, 40): 5},
)
CLOCKS_FROM_HALF_PAST = (
    {time(23, 40): 6, time(15): 4},
    {time(0, 30): 1, time(23, 50): 3},
    {time(0, 35): 2, time(23, 59): 5},
)
NUMBERS = [sum(views.values()) for views in CLOCKS]  # 10, 4, 7


@pytest.fixture
def _dimensions(settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"]}}


def viewed(zone: str, path: Path, clocks: Any) -> Post:
    """Imports views at these times of DAYS in the zone, each of another visitor."""
    post = factories.post()
    lines: list[str] = []
    gains: defaultdict[date, Counter[tuple[str, str, str]]] = defaultdict(Counter)
    for day, views in zip(DAYS, clocks, strict=True):
        for clock, number in sorted(views.items()):
            at = datetime.combine(day, clock, ZoneInfo(zone))
            for second in range(number):
                address = f"192.0.2.{len(lines) + 1}"
                start = at + timedelta(seconds=second)
                lines.append(weblogs.line(f"/posts/{post.pk}/", address=address, start=start))
                # A flush puts what it finds in its own hour.
                day_of_flush = buckets.local_day(buckets.hour_index(start))
                gains[day_of_flush][subject_of(post), "views:device", "desktop"] += 1
    call_command("readtrack", "import", weblogs.write(path / "access.log", lines))
    flush()
    for day, gains_of_day in gains.items():
        day_breakdowns.add_gains(gains_of_day, day=day)
    return post


def numbers_of_days(post: Post, zone: str) -> dict[str, list[int]]:
    """Returns what each report has of each of DAYS, by the name of the report."""
    by_report: dict[str, list[int]] = {}
    for day in DAYS:
        days: dict[str, Any] = {"since": day, "until": day + buckets.DAY}
        ranked = [row.in_period for row in numbers_reports.most_viewed(Post, **days)]  # type: ignore[attr-defined]
        answers = {
            "views_in": numbers_reports.views_in([post], **days)[post],
            "most_viewed": sum(ranked),
            "visitors": numbers_reports.visitors([post], **days)[post],
            "visitors_together": numbers_reports.visitors_together([post], **days),
            "visitors of the model": numbers_reports.visitors_together(Post, **days),
            "breakdown": sum(numbers_reports.breakdown(post, "device", **days).values()),
        }
        for report, number in answers.items():
            by_report.setdefault(report, []).append(number)
    since = datetime.combine(DAYS[0], time(), ZoneInfo(zone))
    until = datetime.combine(DAYS[-1] + buckets.DAY, time(), ZoneInfo(zone))
    series = numbers_reports.series(post, since=since, until=until, by="day")
    of_model = numbers_reports.series(Post, since=since, until=until, by="day")
    by_report["series"] = [point.views for point in series]
    by_report["series of the model"] = [point.views for point in of_model]
    times = [numbers_reports.views_in([post], since=since, until=until)[post]]
    by_report["views_in times"] = times
    return by_report


@pytest.mark.parametrize(
    ("zone", "clocks"),
    [
        ("Asia/Kolkata", CLOCKS),
        ("Asia/Kathmandu", CLOCKS),
        ("Australia/Adelaide", CLOCKS),
        ("America/St_Johns", CLOCKS),
        # Its clocks change by half an hour. In summer, its days begin within an hour of history.
        ("Australia/Lord_Howe", CLOCKS_FROM_HALF_PAST),
    ],
)
def test_each_report_has_the_views_of_a_day_and_no_other_ones(
    zone: str, clocks: Any, settings: Settings, tmp_path: Path
) -> None:
    settings.TIME_ZONE = zone
    numbers = numbers_of_days(viewed(zone, tmp_path, clocks), zone)
    all_views = numbers.pop("views_in times")
    assert numbers == dict.fromkeys(numbers, NUMBERS)
    assert all_views == [sum(NUMBERS)]


def test_where_a_day_begins_within_an_hour_its_first_views_are_of_the_day_before(
    settings: Settings, tmp_path: Path
) -> None:
    settings.TIME_ZONE = "Australia/Lord_Howe"
    numbers = numbers_of_days(
        viewed("Australia/Lord_Howe", tmp_path, CLOCKS), "Australia/Lord_Howe"
    )
    # The views at 0:20 on the second day, and those at 0:05 on the third one.
    assert numbers.pop("views_in times") == [sum(NUMBERS)]
    assert numbers == {report: [11, 5, 5] for report in numbers}
