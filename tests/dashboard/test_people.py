"""Visitors on the dashboard are the different people of the period."""

import csv
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.translation import override
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, tracker
from readtrack.dashboard import page as dashboard_page
from readtrack.dashboard import people
from readtrack.dashboard.scope import Scope
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.models import History
from readtrack.subjects import subject_of
from tests.site.models import Product
from tests.support import factories
from tests.support.people import add_people

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"
LANGUAGES = ("de", "es", "fr", "ja", "pt-br", "ar")


def view(obj: Any, *visitors: str) -> None:
    for visitor in visitors:
        tracker.record(factories.hit(subject_of(obj), visitor=Visitor(visitor)))


def figures(client: Client, path: str = DASHBOARD, **given: str) -> dict[str, Any]:
    context: Any = client.get(path, given).context
    return {figure.label: figure for figure in context["figures"]}


def points(client: Client, **given: str) -> list[Any]:
    """Returns the visitors of each point of the chart."""
    context: Any = client.get(DASHBOARD, given).context
    return list(context["chart"].values("visitors"))


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
    assert "3 visitors" in context["summary"]


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
    assert "Visitors" not in figures(admin_client, **given)  # too many sketches for a page
    assert set(points(admin_client, **given)) == {None}


def test_a_period_of_28_days_is_compared_and_a_shorter_one_up_to_now_is_not(
    admin_client: Client,
) -> None:
    post = factories.post()
    view(post, "ann")
    flush()
    today = timezone.localdate()
    old_hour = buckets.hour_index(buckets.now() - timedelta(days=90))
    History.objects.create(subject="site.post", hour=old_hour, views=1, visitors=0)
    add_people(["site.post"], ["ann", "bob"], day=today - timedelta(days=30))
    add_people(["site.post"], ["bob", "eve"], day=today - timedelta(days=33))
    month = figures(admin_client, period="28")["Visitors"]
    assert (month.value, month.before, month.trend) == ("1", "3", "down")
    assert figures(admin_client, period="7")["Visitors"].before is None
    past = {"from": str(today - timedelta(days=31)), "to": str(today - timedelta(days=30))}
    of_two_days = figures(admin_client, **past)["Visitors"]
    assert (of_two_days.value, of_two_days.before) == ("2", "2")


def test_hours_have_no_visitors_of_their_own(admin_client: Client) -> None:
    view(factories.post(), "ann")
    flush()
    assert figures(admin_client, period="today")["Visitors"].value == "1"
    assert set(points(admin_client, period="today")) == {None}
    page = admin_client.get(DASHBOARD, {"period": "today"}).text
    assert "series=visitors" not in page
    assert "series=visitors" in admin_client.get(DASHBOARD).text


def test_without_redis_visitors_are_not_known(admin_client: Client, settings: Settings) -> None:
    view(factories.post(), "ann")
    flush()
    settings.CACHES = {
        "default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}
    }
    context: Any = admin_client.get(DASHBOARD).context
    assert [figure.label for figure in context["figures"]] == ["Views", "Reads"]
    assert set(context["chart"].values("visitors")) == {None}


def test_with_partitions_people_are_united(
    admin_client: Client, settings: Settings, redis: Redis
) -> None:
    settings.READTRACK = {"PARTITIONS": 4, "RATE": (0, 10)}
    for post in [factories.post() for _ in range(6)]:
        view(post, "ann", "bob")
    flush()
    assert figures(admin_client)["Visitors"].value == "2"
    assert not redis.keys("*united*")


@pytest.mark.parametrize("options", [{"UNIQUE": "none"}, {"HISTORY": False}])
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
    for age in range(400):
        day = today - timedelta(days=age)
        add_people(["site.post"], [f"of {day:%Y %m}"], day=day)
    given = {"from": str(today - timedelta(days=380)), "to": str(today)}
    scope = Scope.parse(given)
    months = {f"{today - timedelta(days=age):%Y %m}" for age in range(381)}
    assert scope.by == "week"
    assert figures(admin_client, **given)["Visitors"].value == str(len(months) + 1)
    assert set(points(admin_client, **given)) <= {1, 2, 3}


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_number_has_a_definition_in_each_language(language: str) -> None:
    for name, definition in dashboard_page.DEFINITIONS:
        with override("en"):
            english = (str(name), str(definition))
        with override(language):
            translated = (str(name), str(definition))
        assert translated[0] != english[0]
        assert translated[1] != english[1]


def test_definitions_are_one_click_away_on_every_tab(admin_client: Client) -> None:
    for tab in ("", "growth", "reading", "refused"):
        page = admin_client.get(DASHBOARD, {"tab": tab}).text
        assert "<summary>What the numbers mean</summary>" in page
        assert "is one visitor" in page
