"""Links between pages of the dashboard: they keep the period and the filter."""

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from readtrack import buckets, tracker
from readtrack.access import numbers_url
from readtrack.flush.run import flush
from readtrack.numbers.scope import PUBLISHED
from readtrack.subjects import subject_of
from tests.dashboard.test_published import article
from tests.site.models import Article
from tests.support import factories

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"


@pytest.fixture(autouse=True)
def dimensions(settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer", "device"]}}


def breadcrumb(page: Any) -> str:
    """Returns the address of the dashboard in the breadcrumbs of a page."""
    [link] = re.findall(rf'href="({DASHBOARD}[^"]*)">Dashboard</a>', page.text.partition("<h1>")[0])
    return html.unescape(link)


def link_to(obj: Any, page: Any) -> str:
    """Returns the address of the object's numbers in the table of the most viewed."""
    [table] = [one for one in page.context["tables"] if one["table"].name == "most-viewed"]
    [link] = [row.link for row in table["rows"] if row.head["text"] == str(obj)]
    return str(link)


def refer(obj: Any, source: str) -> None:
    hit = factories.hit(subject_of(obj), dimensions=(("referrer", source), ("device", "phone")))
    assert tracker.record(hit).counted


def test_a_filter_by_a_source_is_kept_on_the_way_to_a_story_and_back(admin_client: Client) -> None:
    post = factories.post()
    refer(post, "a.example")
    refer(post, "b.example")
    flush()
    address = "?period=28&referrer=a.example&compare=none"
    page: Any = admin_client.get(link_to(post, admin_client.get(DASHBOARD + address)))
    assert page.request["PATH_INFO"] == numbers_url(post)
    assert [chip.value for chip in page.context["chips"]] == ["a.example"]
    assert page.context["figures"][0].value == "1"
    assert breadcrumb(page) == DASHBOARD + address
    without = admin_client.get(numbers_url(post) + page.context["chips"][0].address_without)
    assert (without.context["chips"], without.context["figures"][0].value) == ([], "2")


@pytest.mark.parametrize("period", ["today", "28", "all", ""])
def test_the_breadcrumb_has_the_period_of_the_page(period: str, admin_client: Client) -> None:
    page = admin_client.get(numbers_url(factories.post()), {"period": period})
    assert breadcrumb(page) == f"{DASHBOARD}?period={period or '7'}"


def test_the_breadcrumb_has_the_two_days_of_the_page(admin_client: Client) -> None:
    days = {"from": "2026-01-02", "to": "2026-01-05"}
    page = admin_client.get(numbers_url(factories.post()), days)
    assert breadcrumb(page) == f"{DASHBOARD}?from=2026-01-02&to=2026-01-05"


def test_the_page_of_what_is_new_leads_back_to_the_period_that_led_to_it(
    admin_client: Client,
) -> None:
    news = article(timedelta(days=2))
    flush()
    link = link_to(news, admin_client.get(DASHBOARD, {"period": "28"}))
    page = admin_client.get(link)
    assert page.context["scope"].period == PUBLISHED
    assert breadcrumb(page) == f"{DASHBOARD}?period=28"
    [by_day] = [choice for choice in page.context["intervals"] if choice.label == "Day"]
    page = admin_client.get(numbers_url(news) + by_day.address)
    assert (page.context["scope"].period, page.context["scope"].by) == (PUBLISHED, "day")
    assert breadcrumb(page) == f"{DASHBOARD}?by=day&period=28"
    page = admin_client.get(numbers_url(news), {"period": "90"})
    [since] = [choice for choice in page.context["periods"] if "publication" in str(choice.label)]
    assert breadcrumb(admin_client.get(numbers_url(news) + since.address)) == (
        f"{DASHBOARD}?period=90"
    )
    assert breadcrumb(admin_client.get(numbers_url(news))) == DASHBOARD + "?"
    assert breadcrumb(admin_client.get(numbers_url(news), {"back": "x"})) == DASHBOARD + "?"


def test_two_chosen_days_are_those_of_a_story_that_is_younger(admin_client: Client) -> None:
    news = article(timedelta(days=2))
    flush()
    today = timezone.localdate()
    days = f"?from={today - timedelta(days=9)}&to={today}"
    assert link_to(news, admin_client.get(DASHBOARD + days)) == numbers_url(news) + days


def test_all_by_an_author_keep_period_and_filter(admin_client: Client) -> None:
    author = factories.user()
    news = Article.objects.create(author=author, published_at=buckets.now() - timedelta(hours=2))
    page = admin_client.get(numbers_url(news), {"back": "90", "device": "phone"})
    assert page.context["scope"].period == PUBLISHED
    [link] = [link for label, link in page.context["links"] if label == "All by this author"]
    assert link == f"{DASHBOARD}?device=phone&period=90&author={author.pk}"


def test_a_new_story_with_a_filter_is_shown_by_the_day(admin_client: Client) -> None:
    news = article(timedelta(hours=30))
    refer(news, "a.example")
    flush()
    page = admin_client.get(numbers_url(news), {"referrer": "a.example"})
    scope = page.context["scope"]
    assert (scope.period, scope.by, page.context["figures"][0].value) == (PUBLISHED, "day", "1")
