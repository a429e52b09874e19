"""Visitors on the dashboard are the different people of the period."""

import csv
from datetime import date, datetime, time, timedelta
from datetime import timezone as zone
from io import StringIO
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.translation import override
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, tracker
from readtrack.dashboard.definitions import DEFINITIONS
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.numbers import local_time, people
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import History
from readtrack.numbers.options import NumbersOptions
from readtrack.numbers.scope import Scope
from readtrack.numbers.tables import NOT_KNOWN
from readtrack.subjects import subject_of
from tests.site.models import Product
from tests.support import factories
from tests.support.frozen import freeze_time
from tests.support.people import add_people

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"
LANGUAGES = ("de", "es", "fr", "ja", "pt-br", "ar")


def view(obj: Any, *visitors: str) -> None:
    for visitor in visitors:
        tracker.record(factories.hit(subject_of(obj), visitor=Visitor(visitor)))


def figures(client: Client, path: str = DASHBOARD, **given: str) -> dict[str, Any]:
    return figures_in(client.get(path, given))


def figures_in(answer: Any) -> dict[str, Any]:
    return {figure.label: figure for figure in answer.context["figures"]}


def points(client: Client, **given: str) -> list[Any]:
    """Returns the visitors of each point of the chart."""
    context: Any = client.get(DASHBOARD, given).context
    return list(context["chart"].table.values("visitors"))


@pytest.fixture(autouse=True)
def _no_rate(settings: Settings) -> None:
    settings.READTRACK = {"RATE": (0, 10)}


def test_a_person_who_reads_two_posts_on_two_days_is_one_visitor(admin_client: Client) -> None:
    one, two = factories.post(title="One"), factories.post(title="Two")
    product = Product.objects.create(name="x")
    view(one, "ann")
    view(two, "ann", "bob")
    view(product, "ann")
    flush()
    today = timezone.localdate()
    add_people(["site.post", subject_of(one)], ["ann", "eve"], day=today - timedelta(days=1))
    assert figures(admin_client)["Visitors"].value == "3"
    assert points(admin_client)[-2:] == [2, 2]
    context: Any = admin_client.get(DASHBOARD).context
    rows = {table["table"].name: table["table"] for table in context["tables"]}
    most_viewed = rows["most-viewed"]
    titles = [str(title) for title in most_viewed.values("title")]
    assert dict(zip(titles, most_viewed.values("visitors"), strict=True)) == {
        "One": 2,
        "Two": 2,
        str(product): 1,
    }
    of_products = figures(admin_client, model="site.product")
    assert of_products["Visitors"].value == "1"
    assert "3 visitors" in context["chart"].summary


def test_each_of_two_periods_may_have_the_most_days(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = factories.category()
    posts = [factories.post(category=section) for _ in range(2)]
    for post in posts:
        view(post, "ann", "bob")
    flush()
    today = timezone.localdate()
    subjects = [*map(subject_of, posts)]
    long_ago = buckets.hour_index(buckets.now()) - 30 * 24
    History.objects.create(subject="site.post", hour=long_ago, views=1, visitors=0)
    add_people(subjects, ["eve"], day=today - timedelta(days=9))
    monkeypatch.setattr(people, "MOST_DAYS", 2)
    given = {"category": f"site.category:{section.pk}", "period": "7"}
    visitors = figures(admin_client, **given)["Visitors"]
    assert (visitors.value, visitors.before) == ("2", "1")
    add_people(subjects, ["eve"], day=today - timedelta(days=10))  # too many to compare with
    visitors = figures(admin_client, **given)["Visitors"]
    assert (visitors.value, visitors.before, visitors.remark) == ("2", None, "")


def test_an_export_has_the_visitors_of_every_object(admin_client: Client) -> None:
    posts = [factories.post(title=f"Post {number}") for number in range(20)]
    for post in posts:
        view(post, "ann", "bob")
    flush()
    answer: Any = admin_client.get(DASHBOARD, {"table": "most-viewed", "format": "csv"})
    rows = list(csv.DictReader(StringIO(b"".join(answer.streaming_content).decode())))
    assert [row["Visitors"] for row in rows] == ["2"] * 20


def test_an_objects_own_page_knows_those_of_this_moment(admin_client: Client) -> None:
    post = factories.post()
    view(post, "ann")
    flush()
    view(post, "bob")
    path = f"{DASHBOARD}object/{subject_of(post)}/"
    assert figures(admin_client, path)["Visitors"].value == "2"


def test_a_category_has_the_people_of_its_objects_together(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = factories.category()
    one, two = factories.post(category=section), factories.post(category=section)
    view(one, "ann", "bob")
    view(two, "bob", "eve")
    view(factories.post(), "zoe")
    flush()
    given = {"category": f"site.category:{section.pk}"}
    assert figures(admin_client, **given)["Visitors"].value == "3"
    monkeypatch.setattr(people, "MOST_DAYS", 1)
    of_many = figures(admin_client, **given)["Visitors"]
    assert (of_many.value, of_many.before, of_many.address) == ("\N{EN DASH}", None, "")
    assert of_many.remark == "too many stories to add up"
    assert of_many.remark in admin_client.get(DASHBOARD, given).text
    assert set(points(admin_client, **given)) == {None}


def add_people_of_ages(people_by_age: dict[int, str]) -> None:
    """Adds the site's visitors, a letter each, by the days since then."""
    old_hour = buckets.hour_index(buckets.now() - timedelta(days=90))
    History.objects.create(subject="site.post", hour=old_hour, views=1, visitors=0)
    for age, visitors in people_by_age.items():
        add_people(["site.post"], [*visitors], day=timezone.localdate() - timedelta(days=age))


@pytest.mark.usefixtures("afternoon")
def test_a_period_up_to_now_is_compared_without_today(admin_client: Client) -> None:
    view(factories.post(), "a", "z")
    flush()
    # The last day of the period before stands for today, and its visitors are not compared either.
    add_people_of_ages({1: "ab", 6: "bc", 7: "vwxyz", 8: "de", 13: "e"})
    week = figures(admin_client, period="7")["Visitors"]
    assert (week.value, week.change, week.before, week.trend) == ("4", "+50%", "2", "up")
    page = admin_client.get(DASHBOARD, {"period": "7"}).text
    assert "Changes compare the 6 days that are over with " in page
    today = figures(admin_client, period="today", compare="week")["Visitors"]
    remark = "compared once the day is over"
    assert (today.value, today.before, today.remark) == ("2", None, remark)


def test_whole_days_of_the_past_are_compared_as_they_are(admin_client: Client) -> None:
    add_people_of_ages({30: "ab", 33: "bcd"})
    today = timezone.localdate()
    past = {"from": str(today - timedelta(days=31)), "to": str(today - timedelta(days=30))}
    of_two_days = figures(admin_client, **past)["Visitors"]
    assert (of_two_days.value, of_two_days.before, of_two_days.remark) == ("2", "3", "")


def test_where_history_is_too_short_visitors_are_not_compared(admin_client: Client) -> None:
    view(factories.post(), "a")
    flush()
    week = figures(admin_client, period="7")["Visitors"]
    assert (week.value, week.before, week.remark) == ("1", "\N{EN DASH}", "")


@given(
    st.dates(date(2025, 1, 1), date(2028, 3, 1)),
    st.sampled_from(["7", "28", "month", "year"]),
    st.sampled_from(["before", "week", "year"]),
    st.integers(0, 23),
)
def test_compared_days_are_as_many_or_end_before_the_period(
    day: date, period: str, compare: str, hour: int
) -> None:
    at = timezone.make_aware(datetime.combine(day, time(hour, 20))).astimezone(zone.utc)
    with freeze_time(f"{at:%Y-%m-%d %H:%M}"):
        scope = Scope.parse({"period": period, "compare": compare})
        days = people.days_of(scope.span)
        compared = people.Compared.of(scope, days)
    if days.first == day:
        assert compared is None
        return
    assert compared is not None
    now, before = compared
    assert (now.first, now.last) == (days.first, day - timedelta(days=1))
    assert before.last < now.first
    is_as_long = before.last - before.first == now.last - now.first
    is_same_day = before.last == local_time.year_before(now.last)  # over a leap day
    assert is_as_long or is_same_day or before.last == now.first - timedelta(days=1)


def test_hours_have_no_visitors_of_their_own(admin_client: Client) -> None:
    view(factories.post(), "ann")
    flush()
    assert figures(admin_client, period="today")["Visitors"].value == "1"
    assert set(points(admin_client, period="today")) == {None}
    assert "series=visitors" in admin_client.get(DASHBOARD, {"period": "today"}).text


@pytest.mark.parametrize(
    ("asked", "label", "address"),
    [
        ({"period": "today"}, "7 days", "?series=visitors&period=7"),
        ({"period": "7", "by": "hour"}, "Day", "?period=7&by=day&series=visitors"),
    ],
)
def test_a_chart_by_the_hour_says_where_that_of_visitors_is(
    admin_client: Client, asked: dict[str, str], label: str, address: str
) -> None:
    view(factories.post(), "ann")
    flush()
    answer: Any = admin_client.get(DASHBOARD, {**asked, "series": "visitors"})
    assert figures_in(answer)["Visitors"].is_chosen
    assert "there is no chart of them by the hour" in answer.text
    assert "<svg" not in answer.text.partition("readtrack-over-time")[2].partition("</section>")[0]
    link = answer.context["chart"].by_day
    assert link.label == label
    assert dict(parse_qsl(link.address[1:])) == dict(parse_qsl(address[1:]))
    by_day: Any = admin_client.get(DASHBOARD + link.address)
    assert by_day.context["chart"].series == "visitors"
    assert by_day.context["chart"].shapes
    assert "there is no chart" not in by_day.text


def test_without_redis_visitors_are_not_known(admin_client: Client, settings: Settings) -> None:
    view(factories.post(), "ann")
    flush()
    settings.CACHES = {
        "default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}
    }
    context: Any = admin_client.get(DASHBOARD).context
    assert [figure.label for figure in context["figures"]] == ["Views", "Reads"]
    assert set(context["chart"].table.values("visitors")) == {None}
    for order in ("views", "visitors"):
        found: Any = admin_client.get(DASHBOARD, {"tab": "stories", "order": order})
        [row] = found.context["list"].rows
        cells = {cell["column"].name: cell["text"] for cell in row.cells}
        # Before: 1, the visitors of the best day.
        assert (cells["views"], cells["visitors"]) == ("1", NOT_KNOWN)


def test_with_partitions_people_are_united(
    admin_client: Client, settings: Settings, redis: Redis
) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": 4}, "RATE": (0, 10)}
    for post in [factories.post() for _ in range(6)]:
        view(post, "ann", "bob")
    flush()
    assert figures(admin_client)["Visitors"].value == "2"
    assert not redis.keys("*united*")


@pytest.mark.parametrize("options", [{"UNIQUE": "none"}, {"NUMBERS": {"history": False}}])
def test_a_site_that_counts_no_days_has_no_number_of_visitors(
    admin_client: Client, settings: Settings, options: dict[str, Any]
) -> None:
    settings.READTRACK = options
    view(factories.post(), "ann")
    flush()
    assert "Visitors" not in figures(admin_client)


def test_weeks_and_months_are_unions_of_their_days(admin_client: Client) -> None:
    view(factories.post(), "ann")
    flush()
    today = timezone.localdate()
    for age in range(130):
        day = today - timedelta(days=age)
        add_people(["site.post"], [f"of {day:%Y %m}"], day=day)
    given = {"from": str(today - timedelta(days=110)), "to": str(today)}
    scope = Scope.parse(given)
    months = {f"{today - timedelta(days=age):%Y %m}" for age in range(111)}
    assert scope.by == "week"
    assert figures(admin_client, **given)["Visitors"].value == str(len(months) + 1)
    assert set(points(admin_client, **given)) <= {1, 2, 3}


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_number_has_a_definition_in_each_language(language: str) -> None:
    for name, definition in DEFINITIONS:
        with override("en"):
            english = (str(name), str(definition))
        with override(language):
            translated = (str(name), str(definition))
        assert translated[0] != english[0]
        assert translated[1] != english[1]


@pytest.mark.parametrize(
    ("options", "views", "visitors"),
    [
        ({}, "because the setting EXCLUDE names none", "people without a cookie are known for one"),
        ({"EXCLUDE": {"staff": True}}, "does not count: staff", "people without a cookie"),
        ({"ANONYMOUS": "hash"}, "EXCLUDE names none", "sets no cookie"),
        ({"ANONYMOUS": "none"}, "EXCLUDE names none", "counts people who are signed in"),
    ],
)
def test_a_definition_says_what_the_settings_of_this_site_do(
    admin_client: Client,
    settings: Settings,
    options: dict[str, Any],
    views: str,
    visitors: str,
) -> None:
    settings.READTRACK = options
    page: Any = admin_client.get(DASHBOARD)
    definitions = dict(page.context_data["definitions"])
    assert views in definitions["Views"]
    assert visitors in definitions["Visitors"]


def test_a_site_without_marked_texts_is_told_how_to_mark_them_in_place_of_no_reads(
    admin_client: Client,
) -> None:
    assert figures(admin_client)["Reads"].value == "0"  # few views may well have no read
    view(factories.post(), *(f"reader {number}" for number in range(30)))
    flush()
    figure = figures(admin_client)["Reads"]
    assert figure.value == NOT_KNOWN
    assert "readtrack_text" in figure.remark


def test_sources_are_told_by_default_and_what_else_can_be(
    client: Client, admin_client: Client, settings: Settings
) -> None:
    names = NumbersOptions._field_defaults["dimensions"]
    settings.READTRACK = {"NUMBERS": {"dimensions": names}}
    post = factories.post()
    client.get(
        f"/posts/{post.pk}/?utm_source=letter&utm_medium=email",
        headers={"User-Agent": factories.BROWSER, "Referer": "https://www.google.com/"},
    )
    found = {name: numbers_reports.breakdown(post, name) for name in names}
    assert found == {
        "channel": {"search": 1},
        "referrer": {"google.com": 1},
        "campaign": {"letter / email": 1},
    }
    page: Any = admin_client.get(DASHBOARD, {"tab": "sources"})
    assert page.context_data["more_dimensions"] == (
        "More can be told: Countries, Devices, Browsers, Systems. In the settings, write"
        ' "NUMBERS": {"dimensions": ["channel", "referrer", "campaign", "country", "device",'
        ' "browser", "os"]}.'
    )
    assert "More can be told" in page.text


def test_definitions_are_one_click_away_on_every_tab(admin_client: Client) -> None:
    for tab in ("", "growth", "reading", "refused"):
        page = admin_client.get(DASHBOARD, {"tab": tab}).text
        assert "<summary>What the numbers mean</summary>" in page
        assert "is one visitor" in page
