"""What an object, or an hour, usually has."""

import random
from datetime import date, datetime, timedelta, timezone

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import override
from pytest_django import Settings

from readtrack import buckets
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import History
from readtrack.numbers.reports import usual_views
from readtrack.numbers.sql import usual_week
from readtrack.subjects import subject_of
from tests.site.models import Article, Product
from tests.support import counts, factories, usual

pytestmark = pytest.mark.django_db
HOURS_50 = timedelta(hours=50)


def test_an_object_is_compared_with_its_section() -> None:
    politics, sport = factories.category(), factories.category()
    usual.peers(views=20, category=politics)
    usual.peers(views=200, category=sport)
    one, other = (usual.article(HOURS_50, views=50, category=own) for own in (politics, sport))
    usual.renew()
    comparison = numbers_reports.usual(one)
    assert comparison is not None
    assert comparison.views == 50
    assert comparison.age == pytest.approx(50, abs=0.01)
    assert [comparison.low, comparison.usual, comparison.high] == pytest.approx([20] * 3)
    assert comparison.section == subject_of(politics)
    assert numbers_reports.times_usual([one, other]) == pytest.approx({one: 2.5, other: 0.25})


@pytest.mark.parametrize("hours", [1.6, 5, 25, 30, 47, 100, 300])
def test_an_object_is_none_of_its_own_peers(hours: float) -> None:
    views_of_peers = [10, 10, 20, 20, 30, 30, 40, 40, 1000, 1000]
    usual.begin()
    for number, views in enumerate(views_of_peers):
        usual.article(timedelta(hours=400 + number), views=views)
    large = usual.article(timedelta(hours=hours), views=5000)
    usual.renew()
    comparison = numbers_reports.usual(large)
    assert comparison is not None
    # The middle half of the ten others: 20 to 40. With its own views it would be more.
    assert (comparison.low, comparison.high) == (20, 40)
    assert comparison.times == pytest.approx(5000 / 30)


def test_live_views_count() -> None:
    usual.peers(views=4)
    one = usual.article(HOURS_50, views=7)
    usual.renew()
    counts.view(one)
    assert numbers_reports.times_usual([one]) == {one: 2}


def test_without_enough_peers_in_the_section_it_is_compared_with_the_model() -> None:
    usual.peers(views=10)
    one = usual.article(HOURS_50, views=5, category=factories.category())
    usual.renew()
    comparison = numbers_reports.usual(one)
    assert comparison is not None
    assert (comparison.times, comparison.section) == (0.5, "")


def test_it_has_none_when_nothing_is_known() -> None:
    assert numbers_reports.usual(factories.post()) is None  # has no time of publication
    assert numbers_reports.times_usual([]) == {}
    usual.peers(views=10)
    new = usual.article(timedelta(minutes=59), views=5)
    old = usual.article(timedelta(days=3000), views=5)
    draft = Article.objects.create()
    usual.renew()
    assert numbers_reports.times_usual([new, old, draft]) == {}
    assert numbers_reports.usual(new) is None
    with pytest.raises(TypeError):
        numbers_reports.usual(factories.category())
    with pytest.raises(TypeError):
        numbers_reports.times_usual(new)  # type: ignore[arg-type]


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/Los_Angeles"])
def test_a_date_of_publication_begins_at_the_same_hour_for_everybody(
    zone: str, settings: Settings
) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    article = Article.objects.create()
    article.published_at = date(2026, 7, 5)  # as a DateField has it
    with override(zone):
        [rated] = usual_views.rated([article]).values()
    assert rated.published == datetime(2026, 7, 4, 22, tzinfo=timezone.utc)


def test_nothing_is_a_multiple_of_less_than_one_view() -> None:
    usual.peers(views=0)
    one = usual.article(HOURS_50, views=5)
    usual.renew()
    assert numbers_reports.usual(one) is None


def test_views_before_the_publication_do_not_count() -> None:
    usual.peers(views=10)
    one = usual.article(HOURS_50, views=120)
    hour = buckets.hour_index(buckets.now())
    History.objects.create(subject=subject_of(one), hour=hour - 60, views=100, visitors=0)
    usual.renew()
    assert numbers_reports.times_usual([one]) == {one: 2}


def test_it_costs_one_query_more_than_views() -> None:
    usual.peers(views=10)
    articles = [usual.article(HOURS_50, views=number) for number in range(20)]
    usual.renew()
    loaded = [*Article.objects.all()]
    with CaptureQueriesContext(connection) as queries:
        assert len(numbers_reports.times_usual(loaded)) >= len(articles)
    assert len(queries) == 1


def test_without_history_nothing_is_usual(settings: Settings) -> None:
    usual.peers(views=10)
    one = usual.article(HOURS_50, views=5)
    usual.renew()
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {"history": False}}
    assert numbers_reports.usual(one) is None
    assert numbers_reports.usual_hours() == {}


def test_hours_of_the_week_are_those_of_the_site_and_of_a_model(settings: Settings) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    present = buckets.hour_index(buckets.now())
    chance = random.Random(5)
    for label, times in (("site.article", 1), ("site.product", 10)):
        total = 0
        rows = []
        for hour in range(present - 70 * 24, present):
            total += times * (usual_week.slot_of(hour) + chance.randrange(2))
            rows.append(History(subject=label, hour=hour, views=total, visitors=0))
        History.objects.bulk_create(rows)
    usual.renew()
    with CaptureQueriesContext(connection) as queries:
        of_products = numbers_reports.usual_hours(Product)
    assert len(queries) == 1
    of_site = numbers_reports.usual_hours()
    assert {*of_site} == {*of_products} == {(day, hour) for day in range(7) for hour in range(24)}
    assert 850 <= of_products[3, 13].usual <= 860
    assert 11 * 85 <= of_site[3, 13].usual <= 11 * 86
    assert of_site[3, 13].low <= of_site[3, 13].usual <= of_site[3, 13].high
