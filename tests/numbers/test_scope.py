"""The scope of the dashboard: periods in the site's time zone, and filters that no address can
break.
"""

from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.test import Client
from django.utils.timezone import get_current_timezone, localtime, override
from hypothesis import given
from hypothesis import settings as drawing
from hypothesis import strategies as st
from pytest_django import Settings

from readtrack.buckets import hour_index
from readtrack.numbers import local_time
from readtrack.numbers.scope import COMPARISONS, INTERVALS, PERIODS, Scope, Span
from tests.support import factories
from tests.support.depth import examples
from tests.support.rows import each_row

FRIDAY = datetime(2026, 11, 20, 9, 30, tzinfo=timezone.utc)


def span(period: str, at: datetime = FRIDAY, first: str = "", last: str = "") -> list[str]:
    """Returns the ends of the period and of the one before, and the length of a point."""
    scope = Scope.parse({"period": period, "from": first, "to": last}, at=at)
    ends = [localtime(end) for one in (scope.span, scope.before) if one for end in one]
    return [f"{end:%Y-%m-%d %H:%M}" for end in ends] + [scope.by]


@each_row(
    ("period", "expected"),
    [
        (
            "today",
            [
                "2026-11-20 00:00",
                "2026-11-20 10:30",
                "2026-11-13 00:00",
                "2026-11-13 10:00",
                "hour",
            ],
        ),
        (
            "yesterday",
            [
                "2026-11-19 00:00",
                "2026-11-20 00:00",
                "2026-11-12 00:00",
                "2026-11-13 00:00",
                "hour",
            ],
        ),
        (
            "7",
            ["2026-11-14 00:00", "2026-11-20 10:30", "2026-11-07 00:00", "2026-11-13 00:00", "day"],
        ),
        (
            "28",
            ["2026-10-24 00:00", "2026-11-20 10:30", "2026-09-26 00:00", "2026-10-23 00:00", "day"],
        ),
        (
            "90",
            ["2026-08-23 00:00", "2026-11-20 10:30", "2026-05-25 00:00", "2026-08-22 00:00", "day"],
        ),
        (
            "month",
            ["2026-11-01 00:00", "2026-11-20 10:30", "2026-10-01 00:00", "2026-10-20 00:00", "day"],
        ),
        (
            "year",
            [
                "2026-01-01 00:00",
                "2026-11-20 10:30",
                "2025-01-01 00:00",
                "2025-11-20 00:00",
                "week",
            ],
        ),
        (
            "week",
            ["2026-11-16 00:00", "2026-11-20 10:30", "2026-11-09 00:00", "2026-11-13 00:00", "day"],
        ),
        (
            "last-week",
            ["2026-11-09 00:00", "2026-11-16 00:00", "2026-11-02 00:00", "2026-11-09 00:00", "day"],
        ),
        ("all", ["2026-11-20 00:00", "2026-11-20 10:30", "hour"]),
    ],
)
def test_a_period_is_of_the_sites_time_zone_and_the_one_before_lasted_as_long(
    period: str, expected: list[str]
) -> None:
    with override("Europe/Berlin"):
        assert span(period) == expected


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (
            "2026-11-01",
            "2026-11-10",
            ["2026-11-01 00:00", "2026-11-11 00:00", "2026-10-22 00:00", "2026-11-01 00:00"],
        ),
        (
            "2026-11-10",
            "2026-11-01",
            ["2026-11-01 00:00", "2026-11-11 00:00", "2026-10-22 00:00", "2026-11-01 00:00"],
        ),
        (
            "2026-11-19",
            "2026-12-24",
            ["2026-11-19 00:00", "2026-11-20 09:30", "2026-11-17 00:00", "2026-11-18 00:00"],
        ),
        (
            "2030-01-01",
            "2040-01-01",
            ["2026-11-20 00:00", "2026-11-20 09:30", "2026-11-13 00:00", "2026-11-13 09:00"],
        ),
        (
            "0001-01-01",
            "1990-01-01",
            ["1990-01-01 00:00", "1990-01-02 00:00", "1989-12-25 00:00", "1989-12-26 00:00"],
        ),
    ],
)
def test_two_days_are_a_period(first: str, last: str, expected: list[str]) -> None:
    assert span("", first=first, last=last)[:4] == expected
    assert Scope.parse({"from": first, "to": last}, at=FRIDAY).address() == (
        f"?from={expected[0][:10]}&to={(datetime.fromisoformat(expected[1]) - timedelta(minutes=1)):%Y-%m-%d}"
    )


def test_a_month_is_compared_with_no_more_than_the_whole_one_before() -> None:
    found = span("month", datetime(2026, 3, 31, 12, tzinfo=timezone.utc))
    assert found[2:4] == ["2026-02-01 00:00", "2026-03-01 00:00"]


def test_days_with_a_change_of_the_clock_are_days() -> None:
    with override("Europe/Berlin"):
        scope = Scope.parse({"period": "7"}, at=datetime(2026, 10, 26, 11, tzinfo=timezone.utc))
        assert [len(one.starts("day")) for one in (scope.span, scope.before) if one] == [7, 6]
        assert Scope.parse({"from": "2026-10-25", "to": "2026-10-25"}, at=FRIDAY).by == "hour"
    with override("America/Sao_Paulo"):  # had no midnight on that day
        assert span("", first="2018-11-04", last="2018-11-04")[0] == "2018-11-04 01:00"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "filters",
    [
        {"model": "site.category"},
        {"object": "site.category:1"},
        {"object": "site.post:x"},
        {"object": "site.post:99999999999999999999"},
        {"object": "site.page:a%00"},
        {"object": "no.model:1"},
        {"category": "site.product:1"},
        {"category": "site.category:-99999999999999999999"},
        {"author": "x"},
        {"author": "99999999999999999999"},
        {"author": "1" * 5000},
        {"period": "\0", "from": "2026-02-31", "to": "x"},
        {"country": "DE"},
        {"tab": "x", "format": "xml", "table": "over-time"},
        {"from": "99999999999-01-01", "to": "2026-11-20"},
    ],
)
def test_what_is_no_choice_is_left_out(filters: dict[str, str], admin_client: Client) -> None:
    assert Scope.parse(filters).chosen == {}
    assert admin_client.get("/admin/readtrack/dashboard/", filters).status_code == 200


text = st.text(max_size=40) | st.sampled_from(
    [*PERIODS, *COMPARISONS, *INTERVALS, "site.post:1", "2026-11-20", "site.category:1", "1"]
)


@pytest.mark.django_db
@drawing(max_examples=examples(30))
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "period",
                "from",
                "to",
                "back",
                "compare",
                "by",
                "model",
                "object",
                "category",
                "author",
                "device",
            ]
        ),
        text,
    )
)
def test_no_address_raises(found: dict[str, str]) -> None:
    scope = Scope.parse(found, at=FRIDAY)
    assert scope.by
    for model in scope.models:
        list(scope.rows(model)[:1])
    assert Scope.parse(dict(parse_qsl(scope.address()[1:])), at=FRIDAY).chosen == scope.chosen


@pytest.mark.django_db
def test_a_page_may_have_filters_of_its_own_which_no_address_changes() -> None:
    post = factories.post()
    fixed = {"object": f"site.post:{post.pk}"}
    scope = Scope.parse(
        {"object": "site.post:0", "model": "site.post", "device": "phone"}, fixed=fixed
    )
    assert (scope.chosen, scope.models) == ({**fixed, **scope.values}, [type(post)])
    assert "object" not in scope.address()


def test_dimensions_are_filters(settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device", "shop.tracking.period"]}}
    found: Any = Scope.parse({"device": "phone", "period": "7"})
    assert (found.values, found.period) == ({"device": "phone"}, "7")
    assert found.address(device="") == "?period=7"


def test_a_long_key_of_text_is_whole() -> None:
    name = f"site.page:{'%C3%A9' * 100}"
    assert Scope.parse({"object": name}).chosen == {"object": name}


@pytest.mark.parametrize(
    ("zone", "minutes", "hours"),
    [("UTC", 5, 0), ("UTC", 45, 0), ("UTC", 65, 1), ("UTC", 125, 2), ("Asia/Kathmandu", 5, 0)],
)
def test_the_running_hour_is_compared_with_nothing(zone: str, minutes: int, hours: int) -> None:
    with override(zone):
        midnight = datetime(2026, 11, 20, tzinfo=get_current_timezone())
        scope = Scope.parse({"period": "today"}, at=midnight + timedelta(minutes=minutes))
        assert scope.before
        assert scope.compared
        assert (len(scope.compared.hours), len(scope.before.hours)) == (hours, hours)
        assert scope.span.starts("hour")


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "Asia/Kathmandu"])
def test_no_hour_is_in_two_days(zone: str) -> None:
    with override(zone):
        days = [
            Scope.parse({"from": day, "to": day}, at=FRIDAY).span
            for day in ("2026-11-14", "2026-11-15")
        ]
        hours = [hour for day in days for hour in day.hours]
        assert hours == [*range(hours[0], hours[0] + 48)]
        assert [hour_index(start) for start in days[1].starts("hour")] == [*days[1].hours]


def test_no_point_begins_before_the_period() -> None:
    span = Scope.parse({"from": "2025-11-19", "to": "2026-11-18"}, at=FRIDAY).span
    for by in ("week", "month"):
        assert span.starts(by)[0] == span.since
        assert span.starts(by)[1] > span.since


def test_a_period_without_length_has_no_hours(noon: datetime) -> None:
    span = Span(noon, noon)
    assert (len(span.hours), span.starts("hour")) == (0, [])


def beside(address: str, steps: int) -> str:
    """Returns the address of the period so many steps from that of the address."""
    return Scope.parse(dict(parse_qsl(address.removeprefix("?")))).address_beside(steps)


@each_row(
    ("address", "earlier", "later"),
    [
        ("?period=last-week", "", "?period=week"),
        ("?from=2026-10-01&to=2026-10-31", "?from=2026-09-01&to=2026-09-30", ""),
        ("?from=2025-01-01&to=2025-12-31", "?from=2024-01-01&to=2024-12-31", ""),
        ("?from=2025-03-10&to=2025-03-19", "?from=2025-02-28&to=2025-03-09", ""),
        ("?from=2024-02-28&to=2024-02-28", "?from=2024-02-27&to=2024-02-27", ""),
    ],
)
def test_the_period_beside_one_is_as_long(address: str, earlier: str, later: str) -> None:
    before = beside(address, -1)
    assert before == earlier or not earlier
    after = beside(address, 1)
    assert after == later or not later
    assert beside(before, 1) == address
    assert after == "" or beside(after, -1)


def test_no_period_is_beside_all_time_and_none_is_in_the_future() -> None:
    for period in ("today", "week", "7", "28", "90", "month", "year"):
        assert beside(f"?period={period}", 1) == ""
        assert beside(f"?period={period}", -1)
    assert beside("?period=all", -1) == beside("?period=all", 1) == ""
    year_before = beside("?period=year", -1)
    assert beside(year_before, 1) == "?period=year"
    assert beside(beside("?period=month", -1), 1) == "?period=month"


@given(
    st.sampled_from(["week", "last-week"]), st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1))
)
def test_a_week_is_from_monday_to_sunday(period: str, at: datetime) -> None:
    scope = Scope.parse({"period": period}, at=at.replace(tzinfo=timezone.utc))
    assert scope.span.first_day.weekday() == 0
    assert scope.before
    assert scope.before.first_day == scope.span.first_day - timedelta(days=7)
    if period == "last-week":
        assert scope.span.last_day == scope.span.first_day + timedelta(days=6)


@each_row(
    ("days_since", "period", "comparison"),
    [
        (2, "yesterday", "before"),
        (7, "yesterday", "before"),
        (8, "yesterday", "before"),  # in the middle of that day
        (9, "yesterday", "week"),
        (2, "today", "before"),
        (8, "today", "week"),
        (2, "7", "before"),
    ],
)
def test_a_day_is_not_compared_with_one_before_the_publication(
    days_since: int, period: str, comparison: str
) -> None:
    noon = local_time.day_start(local_time.today() - timedelta(days=days_since))
    noon += timedelta(hours=12)
    scope = Scope.parse({"period": period}, published=noon)
    assert scope.comparison == scope.default_comparison == comparison
    # Of a day whose start is the publication, all views are known.
    at_midnight = Scope.parse(
        {"period": "yesterday"},
        published=local_time.day_start(local_time.today() - timedelta(days=8)),
    )
    assert at_midnight.comparison == "week"
    asked = Scope.parse({"period": "yesterday", "compare": "week"}, published=noon)
    assert asked.comparison == "week"
