"""The page of an object begins at its publication."""

from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as zones

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.numbers.models import History
from readtrack.numbers.published import published_at
from readtrack.numbers.scope import PUBLISHED, Scope
from readtrack.subjects import subject_of
from tests.dashboard.test_comparison import FRIDAY, OF_THE_ADMIN
from tests.site.models import Article
from tests.support import counts, factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"


def article(age: timedelta) -> Article:
    """Returns an article of that age with 7 views in each hour since its publication."""
    published = buckets.now() - age
    made = Article.objects.create(
        title="News", category=factories.category(), published_at=published
    )
    first = buckets.hour_index(published)
    last = buckets.hour_index(buckets.now())
    History.objects.bulk_create(
        History(subject=subject_of(made), hour=hour, views=7 * (hour - first + 1), visitors=0)
        for hour in range(first, last)
    )
    return made


def opened(client: Client, obj: Any, **given: str) -> Any:
    return client.get(f"{DASHBOARD}object/{subject_of(obj)}/", given)


@pytest.mark.parametrize(
    ("age", "by"),
    [
        (timedelta(minutes=1), "hour"),
        (timedelta(hours=50), "hour"),
        (timedelta(hours=160), "hour"),
        (timedelta(hours=200), "day"),
        (timedelta(days=200), "week"),
    ],
)
def test_the_chart_begins_at_the_publication(age: timedelta, by: str, admin_client: Client) -> None:
    news = article(age)
    context = opened(admin_client, news).context
    data = context["data"]
    first_hour = buckets.hour_index(buckets.now() - age)
    hours = buckets.hour_index(buckets.now()) - first_hour
    assert (data.scope.period, data.scope.by) == (PUBLISHED, by)
    assert data.starts[0] == buckets.hour_start(first_hour)
    assert data.chart.total.views == 7 * hours
    if by == "hour":
        assert [point.views for point in data.chart.points] == [7] * hours + [0]
    assert context["period"] == "Since publication"
    assert context["comparisons"] == []  # nothing was there before


def test_another_period_and_another_interval_can_be_chosen(admin_client: Client) -> None:
    news = article(timedelta(hours=50))
    page = opened(admin_client, news, by="day")
    assert page.context["data"].scope.by == "day"
    [chosen] = [one for one in page.context["periods"] if one.is_chosen]
    assert "period=published" in chosen.address
    month = opened(admin_client, news, period="28")
    assert month.context["data"].scope.period == "28"
    [row] = [row for row in month.context["periods"] if row.label == "Since publication"]
    assert "period=published" in row.address
    given = {"from": f"{zones.localdate()}", "to": f"{zones.localdate()}"}
    assert opened(admin_client, news, **given).context["data"].scope.period == "range"


def test_a_page_without_a_publication_has_no_such_period(admin_client: Client) -> None:
    post = factories.post()
    for obj in (post, Article.objects.create(title="Draft", category=factories.category())):
        context = opened(admin_client, obj, period="published").context
        assert context["data"].scope.period == "7"
        assert "Since publication" not in [choice.label for choice in context["periods"]]
    future = article(-timedelta(days=3))
    assert opened(admin_client, future).context["data"].scope.period == "7"
    assert admin_client.get(DASHBOARD, {"period": "published"}).context["scope"].period == "7"


def test_the_row_of_what_is_new_leads_to_its_numbers_since_publication(
    admin_client: Client,
) -> None:
    new, old = article(timedelta(days=2)), article(timedelta(days=40))
    flush()
    context = admin_client.get(DASHBOARD, {"model": "site.article", "by": "hour"}).context
    [table] = [one for one in context["tables"] if one["table"].name == "most-viewed"]
    links = {row.link.partition("?")[0]: row.link for row in table["rows"]}
    periods = {}
    for obj in (new, old):
        [link] = [links[path] for path in links if subject_of(obj) in path.replace("%3A", ":")]
        assert "by=hour" in link
        periods[obj.pk] = admin_client.get(link).context["data"].scope.period
    assert periods == {new.pk: PUBLISHED, old.pk: "7"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2026, 3, 1, 9, 30, tzinfo=timezone.utc), "2026-03-01 09:30"),
        (date(2026, 3, 1), "2026-03-01 00:00"),
        (datetime(1, 1, 1, tzinfo=timezone.utc), "1990-01-01 00:00"),
        (datetime(9999, 12, 31, 23, tzinfo=timezone.utc), None),
        (None, None),
    ],
)
def test_any_value_of_the_field_is_a_time_or_none(value: Any, expected: str | None) -> None:
    news = Article(title="x")
    news._state.adding = False
    news.published_at = value
    published = published_at(news)
    assert (published and f"{published:%Y-%m-%d %H:%M}") == expected


def test_in_a_zone_with_half_hours_the_first_hour_is_whole() -> None:
    with zones.override("Asia/Kolkata"):
        published = FRIDAY - timedelta(hours=5, minutes=10)
        scope = Scope.parse({}, published=published, at=FRIDAY)
        assert scope.span.hours.start == buckets.hour_index(published)
        assert len(scope.span.starts("hour")) == len(scope.span.hours)


def test_it_costs_no_query_more(admin_client: Client, wire: Wire) -> None:
    news = article(timedelta(days=2))
    counts.view(news)
    flush()
    opened(admin_client, news)
    with wire.counted() as trips, CaptureQueriesContext(connection) as queries:
        assert opened(admin_client, news).context["data"].scope.period == PUBLISHED
    assert trips[0] <= 2
    assert len(queries) - OF_THE_ADMIN <= 5
