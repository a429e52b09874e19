"""The values of dimensions of a category, which are kept by the day: what they are compared with, and of
which views the source is not known.
"""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.formats import date_format
from pytest_django import Settings

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.numbers import local_time, objects
from readtrack.numbers.data import ScopeData
from readtrack.numbers.loading import load
from readtrack.numbers.models import BreakdownHistory, DayBreakdown, History
from readtrack.numbers.scope import Scope
from readtrack.numbers.tables import caption_of_unknown, table_named
from readtrack.numbers.verdict import verdict_of
from readtrack.subjects import subject_of
from tests.site.models import Article, Category, Post
from tests.support import factories, usual

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def dimensions(settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["campaign", "browser"]}}


def data_of(section: Category, *names: str, **asked: str) -> ScopeData:
    """Returns the numbers of the tables for a category, of the last seven days."""
    scope = Scope.parse({"period": "7", "category": subject_of(section), **asked})
    return load(scope, names, row_limit=10)


def campaigns(section: Category, *, since: int, dimension: str = "campaign") -> None:
    """Stores the views of an article of each of the last 14 days, which campaigns have brought since so
    many days ago. They may be values of another dimension.
    """
    usual.begin()
    made = Article.objects.create(category=section)
    today = local_time.today()
    for age in range(14, 0, -1):
        day = today - timedelta(days=age)
        hour = local_time.first_hour_of(day) + 9
        for name in (subject_of(made), "site.article"):
            History.objects.create(subject=name, hour=hour, views=10 * (15 - age), visitors=0)
        if age <= since:
            values = {"kind": f"views:{dimension}", "field": "spring", "count": 10}
            DayBreakdown.objects.create(subject=subject_of(made), day=day, **values)
            BreakdownHistory.objects.create(subject="site.article", hour=hour, **values)
    flush()


def earlier_campaign(dimension: str = "campaign") -> None:
    """Stores a view of another campaign, from before the days that are compared."""
    BreakdownHistory.objects.create(
        subject="site.article",
        kind=f"views:{dimension}",
        hour=buckets.hour_index(buckets.now()) - 15 * 24,
        field="winter",
        count=1,
    )


@pytest.mark.parametrize("is_of_section", [True, False])
@pytest.mark.parametrize("tables", [["over-time", "most-viewed", "by-browser"], ["by-browser"]])
def test_a_dimension_is_not_compared_with_days_before_it_was_turned_on(
    tables: list[str],
    is_of_section: bool,
) -> None:
    section = factories.category()
    campaigns(section, since=10, dimension="browser")
    asked = {} if is_of_section else {"category": "", "model": "site.article"}
    data = data_of(section, *tables, **asked)
    table = table_named("by-browser", data)
    [row] = table.rows
    assert row.values[:4] == ("spring", 60, None, None)  # before: 30, 100 %
    first = date_format(local_time.today() - timedelta(days=10), "DATE_FORMAT")
    text = f"First counted on {first}, so there is nothing to compare with."
    assert table.caption.endswith(text)
    assert data.is_before_known
    earlier_campaign("browser")
    table = table_named("by-browser", data_of(section, *tables, **asked))
    [row] = table.rows
    assert row.values[:4] == ("spring", 60, 30, 100)
    assert "First counted" not in table.caption


@pytest.mark.parametrize(
    "tables", [["over-time", "most-viewed"], ["over-time"], ["most-viewed"], ["grew-most"]]
)
@pytest.mark.parametrize("compare", ["before", "week"])
def test_what_has_a_value_is_not_compared_with_days_before_either(
    tables: list[str], compare: str
) -> None:
    section = factories.category()
    campaigns(section, since=10, dimension="browser")
    asked = {"browser": "spring", "compare": compare}
    if compare == "week":
        last = local_time.today() - buckets.DAY
        asked |= {"from": f"{last - 4 * buckets.DAY}", "to": f"{last}", "period": ""}
    data = data_of(section, *tables, **asked)
    assert not data.is_before_known
    if data.chart is not None:
        assert (data.chart.total.views, data.chart.is_before_whole) in [(60, False), (50, False)]
    earlier_campaign("browser")
    assert data_of(section, *tables, **asked).is_before_known


@pytest.mark.parametrize("is_of_section", [True, False])
def test_a_first_campaign_is_no_dimension_that_was_turned_on(*, is_of_section: bool) -> None:
    section = factories.category()
    campaigns(section, since=3)
    asked = {} if is_of_section else {"category": "", "model": "site.article"}
    data = data_of(section, "over-time", "most-viewed", "by-campaign", **asked)
    table = table_named("by-campaign", data)
    [row] = table.rows
    assert row.values[:4] == ("spring", 30, 0, None)  # before: None, None
    assert "First counted" not in table.caption
    data = data_of(section, "over-time", "most-viewed", campaign="spring", **asked)
    assert data.is_before_known  # before: the whole page was not compared
    assert data.chart is not None
    assert data.chart.is_before_whole


def test_with_a_value_counting_began_when_its_dimension_was_turned_on() -> None:
    section = factories.category()
    campaigns(section, since=10, dimension="browser")
    today = local_time.today()
    for age, value in ((12, "autumn"), (3, "winter")):
        BreakdownHistory.objects.create(
            subject="site.article",
            kind="views:browser",
            hour=local_time.first_hour_of(today - timedelta(days=age)),
            field=value,
            count=10,
        )
    asked = {"category": "", "model": "site.article", "browser": "winter"}
    found = verdict_of(data_of(section, "over-time", "most-viewed", **asked))
    assert found.is_older_than_history
    assert found.began == today - timedelta(days=12)  # before: that of the value, 3 days ago


@pytest.mark.parametrize("has_funnel", [True, False])
def test_stages_are_compared_where_views_of_models_outside_are_the_first(
    settings: Settings, *, has_funnel: bool
) -> None:
    settings.READTRACK = {"NUMBERS": {"funnels": has_funnel}}
    section = factories.category()
    campaigns(section, since=0)
    for age in (13, 10, 3):  # none before the days that are compared
        BreakdownHistory.objects.create(
            subject="site.article",
            kind="funnel",
            hour=local_time.first_hour_of(local_time.today() - timedelta(days=age)),
            field="click",
            count=10,
        )
    table = table_named("funnel", data_of(section, "funnel", category="", model="site.article"))
    compared = [row.values[1:4] for row in table.rows[:2]]
    if has_funnel:  # each pass adds a view to the funnel, so it was turned on 13 days ago
        assert compared == [(10, None, None), (10, None, None)]
        assert "First counted on" in table.caption  # before: nothing told what the dashes are
    else:
        assert compared == [(60, 60, 0), (10, 20, -50)]  # before: dashes
        assert "First counted on" not in table.caption


def test_campaigns_of_earlier_days_are_told_where_there_is_none_in_the_period(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer", "campaign"]}}

    def empty(**given: str) -> tuple[str, str]:
        page: Any = admin_client.get("/admin/readtrack/dashboard/", {"period": "7", **given})
        panel = page.context["campaigns"]
        assert not panel.rows
        assert panel.empty in page.text.replace("&#x27;", "'")
        return panel.empty, panel.more.address if panel.more else ""

    section = factories.category()
    campaigns(section, since=0)
    assert empty()[0].startswith("No campaigns yet.")
    earlier_campaign()
    first = date_format(local_time.today() - timedelta(days=15), "DATE_FORMAT")
    none = "No views from campaigns in this period."
    assert empty() == (f"{none} The first ones were on {first}.", "?period=all&tab=sources")
    filters = {"category": subject_of(section)}  # of which the first ones are not known
    assert empty(**filters)[0] == none
    assert empty(compare="none")[0].startswith(none)
    page = admin_client.get("/admin/readtrack/dashboard/" + empty()[1])
    assert "winter" in page.text
    numbers = {"dimensions": ["referrer", "campaign"], "years": 1}
    settings.READTRACK = {"NUMBERS": numbers}
    assert empty()[0] == f"{none} The first ones were on {first}."
    oldest = buckets.now() - timedelta(days=365.25)
    row = BreakdownHistory.objects.filter(kind="views:campaign")
    row.update(hour=buckets.hour_index(oldest) + 12)
    assert empty()[0] == none  # before: a day, though rows of earlier ones may have been deleted


def test_lists_without_changes_do_not_ask_where_history_begins() -> None:
    section = factories.category()
    for name in ("sections", "not-counted"):
        with CaptureQueriesContext(connection) as queries:
            data_of(section, name, category="")
        assert not [query for query in queries if "flushrun" in query["sql"]], name


def test_views_of_objects_whose_values_are_not_added_up_are_not_said_to_have_no_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(objects, "MOST", 1)
    section = factories.category()
    hour = local_time.first_hour_of(local_time.today() - buckets.DAY) + 9
    for made in (Post(category=section, view_count=8), Article(category=section, view_count=8)):
        made.save()
        History.objects.create(subject=subject_of(made), hour=hour, views=8, visitors=0)
    flush()
    data = data_of(section, "over-time", "most-viewed", "by-campaign")
    assert (data.chart and data.chart.total.views, len(data.objects.first)) == (16, 1)
    assert caption_of_unknown(data, 8) == ""
    assert caption_of_unknown(data, 5).startswith("3 more views")
