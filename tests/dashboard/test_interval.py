"""The length of a point of the chart, by choice."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import override

from readtrack import buckets
from readtrack.numbers.scope import INTERVALS, MOST_POINTS, MOST_POINTS_OF_MANY, Scope
from readtrack.numbers.sql import history
from readtrack.sql.row_counts import RowCounts
from readtrack.subjects import subject_of
from tests.dashboard.test_comparison import FRIDAY, OF_THE_ADMIN, Views
from tests.dashboard.test_comparison import viewed as viewed
from tests.dashboard.test_comparison import views as views
from tests.support.costs import limits_of
from tests.support.people import add_people
from tests.support.rows import each_row
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"


def opened(client: Client, **given: str) -> Any:
    return client.get(DASHBOARD, given, follow=True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"period": "today"}, ["hour"]),
        ({"period": "7"}, ["hour", "day"]),
        ({"period": "28"}, ["day", "week"]),
        ({"period": "90"}, ["day", "week", "month"]),
        ({"period": "year"}, ["day", "week", "month"]),
        ({"from": "2020-01-01", "to": "2026-01-01"}, ["week", "month"]),
        ({"from": "1990-01-01", "to": "2026-01-01"}, []),
        ({"period": "7", "author": "1"}, ["day"]),
        ({"period": "year", "author": "1"}, ["week", "month"]),
    ],
)
def test_only_intervals_that_make_a_fit_chart_are_offered(
    given: dict[str, str], expected: list[str]
) -> None:
    scope = Scope.parse(given, at=FRIDAY)
    most = MOST_POINTS_OF_MANY if "author" in given else MOST_POINTS
    assert scope.intervals == expected
    for by in ("hour", "day", "week", "month"):
        chosen = Scope.parse({**given, "by": by}, at=FRIDAY)
        if by in expected:
            assert chosen.by == by
            assert 2 <= len(chosen.span.starts(chosen.by)) <= most
        else:
            assert chosen.by == scope.by
    assert Scope.parse({**given, "by": "x"}, at=FRIDAY).by == scope.by


@each_row(
    ("period", "by", "filtered"),
    [
        ("7", "hour", "model"),
        ("28", "week", "model"),
        ("90", "week", "category"),
        ("90", "month", "object"),
        ("7", "hour", "object"),
        ("all", "week", "model"),
        ("all", "month", "category"),
    ],
)
def test_each_point_has_the_views_of_its_interval(
    period: str, by: str, filtered: str, views: Views, admin_client: Client
) -> None:
    post = views.posts[0]
    given = {
        "model": {"model": "site.post"},
        "category": {"category": f"site.category:{views.section.pk}"},
        "object": {"object": subject_of(post)},
    }
    context = opened(admin_client, period=period, by=by, **given[filtered]).context
    data = context["data"]
    subject = subject_of(post) if filtered == "object" else ""
    assert data.scope.by == by
    assert [one.label for one in context["intervals"] if one.is_chosen] == [INTERVALS[by]]
    ends = [*data.starts[1:], data.scope.span.until]
    for start, end, point in zip(data.starts, ends, data.chart.points, strict=True):
        span = data.scope.span._replace(since=start, until=end)
        assert point.views == views.between(span, subject)
    if data.scope.before:
        [before] = [one.before for one in context["figures"] if one.label == "Views"]
        # There is no point for what is left out because today has not come to it yet.
        compared = [point.views for point in data.chart.points_before if point is not None]
        assert before == f"{sum(compared):,}"
    if by == "month":
        assert all(timezone.localtime(start).day == 1 for start in data.starts[1:])


def test_visitors_have_the_same_points(admin_client: Client) -> None:
    Views(3, days=420)
    today = timezone.localdate()
    for age in (0, 1, 8, 20):
        add_people(["site.post"], ["ann", f"on {age}"], day=today - age * buckets.DAY)
    for by, number in (("day", 28), ("week", 5)):
        context = opened(admin_client, period="28", by=by, model="site.post").context
        visitors = context["data"].people.by_point
        assert number - 1 <= len(visitors) <= number
        assert max(visitors) >= 2
    context = opened(admin_client, period="7", by="hour", model="site.post").context
    assert context["data"].people.by_point == []


def test_the_address_keeps_the_interval(admin_client: Client) -> None:
    Views(4, days=420)
    context = opened(admin_client, period="90", by="week").context
    links = [choice.address for choice in (*context["periods"], *context["tabs"])]
    links += [choice.address for choice in context["comparisons"]]
    links += [figure.address for figure in context["figures"] if figure.address]
    links += [address for file in context["files"] for address in file.addresses.values()]
    assert all("by=week" in link for link in links)
    assert ("by", "week") in context["kept"]
    file = admin_client.get(DASHBOARD + context["files"][0].addresses["json"])
    rows = json.loads(b"".join(file.streaming_content))["rows"]  # type: ignore[attr-defined]
    assert len(rows) == len(context["chart"].rows)
    assert len(rows) <= 14
    chosen = {choice.label: choice for choice in context["intervals"]}
    assert [choice.label for choice in chosen.values() if choice.is_chosen] == [INTERVALS["week"]]
    assert "by=" not in chosen[INTERVALS[""]].address
    # A day has no weeks. The address keeps the choice for other periods.
    today = opened(admin_client, period="today", by="week")
    assert today.context["data"].scope.by == "hour"
    assert "by=week" in today.context["periods"][2].address
    assert "Interval:" not in today.text


def test_hours_of_several_days_have_their_days(admin_client: Client) -> None:
    Views(6, days=420)
    with override("en"):
        context = opened(admin_client, period="7", by="hour").context
    labels = [start for start, _ in context["chart"].rows]
    assert len({*labels}) == len(labels) > 140
    day = date_format(timezone.localdate(), "DATE_FORMAT")
    assert f"{day} midnight" in labels
    today = opened(admin_client, period="today").context["chart"].rows[0][0]
    assert today == "midnight"  # which has no need of it


def test_reads_of_hours_are_compared_unless_the_period_is_a_day(admin_client: Client) -> None:
    Views(7, days=420)
    for days_ago, reads in ((10, 1), (2, 2)):
        hour = buckets.hour_index(buckets.now() - timedelta(days=days_ago))
        history.store({"reads:site.post": RowCounts(reads, 0)}, hour=hour)
    for period, by, is_compared in (("7", "hour", True), ("7", "", True), ("today", "", False)):
        context = opened(admin_client, period=period, by=by, model="site.post").context
        [before] = [one.before for one in context["figures"] if one.name == "reads"]
        assert (before is not None) == is_compared


@each_row(("period", "by"), [("7", "hour"), ("year", "day"), ("all", "month")])
@each_row("filtered", ["model", "object"])
def test_more_points_cost_no_query_and_no_trip_more(
    period: str, by: str, filtered: str, viewed: Views, admin_client: Client, wire: Wire
) -> None:
    path = DASHBOARD
    if filtered == "object":
        path = f"{DASHBOARD}object/{subject_of(viewed.posts[0])}/"
    given = {"period": period, "by": by, "model": "site.post"}
    admin_client.get(path, given)
    with wire.counted() as trips, CaptureQueriesContext(connection) as queries:
        page: Any = admin_client.get(path, given)
    assert page.context["data"].scope.by == by
    most_queries, most_trips = limits_of(page)
    assert trips[0] <= most_trips
    assert len(queries) - OF_THE_ADMIN <= most_queries
