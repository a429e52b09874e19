"""A source, a country or a device as a filter: right against a count by hand in any period, and a
number that is not known says so.
"""

import csv
import json
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from io import StringIO
from itertools import product
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.formats import date_format
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django import Settings

from readtrack import buckets, tracker
from readtrack.access import numbers_url
from readtrack.dashboard.navigation import TABS
from readtrack.flush.run import flush
from readtrack.numbers import by_value, loading, local_time, objects, tables
from readtrack.numbers.models import BreakdownHistory, DayBreakdown, History, Popular
from readtrack.numbers.scope import Scope
from readtrack.numbers.sql import breakdown_history, popular
from readtrack.numbers.tables import NOT_KNOWN
from readtrack.sql.faults import Faults
from readtrack.subjects import label_of, subject_of
from tests.site.models import Article, Post
from tests.support import factories
from tests.support.costs import limits_of
from tests.support.depth import examples
from tests.support.past import begin_history
from tests.support.rows import each_row, pairs
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db(transaction=True)

DASHBOARD = "/admin/readtrack/dashboard/"
OF_THE_ADMIN = 2  # queries: the session and its user
SOURCES = ["direct", "a.example", "b.example"]


@pytest.fixture(autouse=True)
def dimensions(settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer", "device"], "funnels": True}}
    loading._accounts.cache_clear()


class Past:
    """A past of some objects: the views by age in days, number of the object and source."""

    def __init__(self, views: list[tuple[int, int, str, int]]) -> None:
        for model in (BreakdownHistory, DayBreakdown, History, Popular, Post, Article):
            model._default_manager.all().delete()
        section = factories.category()
        self.section = subject_of(section)
        self.objects = [
            factories.post(title="0", category=section),
            factories.post(title="1", category=section),
            factories.post(title="2"),
            Article.objects.create(title="3", category=section),
        ]
        self.views: Counter[tuple[date, int, str]] = Counter()
        self.today = timezone.localdate()
        for age, number, source, count in views:
            self.views[self.today - timedelta(days=age), number, source] += count
        self._store()
        popular.renew(at=buckets.now(), faults=Faults())

    def _store(self) -> None:
        by_hour: Counter[tuple[str, int, str]] = Counter()
        totals: Counter[str] = Counter()
        for (day, number, source), count in sorted(self.views.items()):
            obj = self.objects[number]
            hour = buckets.hour_index(local_time.day_start(day))
            by_hour[label_of(type(obj)), hour, source] += count
            subject = subject_of(obj)
            totals[subject] += count
            History.objects.update_or_create(
                subject=subject, hour=hour, defaults={"views": totals[subject], "visitors": 0}
            )
            DayBreakdown.objects.create(
                subject=subject, kind="views:referrer", day=day, field=source, count=count
            )
            type(obj)._default_manager.filter(pk=obj.pk).update(view_count=totals[subject])
        for (label, hour, source), count in by_hour.items():
            BreakdownHistory.objects.create(
                subject=label, kind="views:referrer", hour=hour, field=source, count=count
            )

    def of(self, ages: Sequence[int], source: str, numbers: list[int]) -> Counter[int]:
        """Returns the views with a source on the days of these ages, by object."""
        found: Counter[int] = Counter()
        for (day, number, source_of_views), count in self.views.items():
            if source_of_views == source and (self.today - day).days in ages:
                found[number] += count if number in numbers else 0
        return +found


VIEWS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 3), st.sampled_from(SOURCES), st.integers(1, 9)),
    max_size=14,
)
#: Periods that are over or compared by whole days, as ages: of the period, and of the one before.
PERIODS: dict[str, tuple[dict[str, Any], range, range]] = {
    "7": ({"period": "7"}, range(7), range(8, 14)),  # compared without today
    "yesterday": ({"period": "yesterday"}, range(1, 2), range(8, 9)),  # a week earlier
    "range": ({}, range(3, 8), range(8, 13)),
}


@hypothesis_settings(max_examples=examples(15))
@given(VIEWS, st.sampled_from([*PERIODS]), st.sampled_from(SOURCES), st.booleans())
def test_each_number_with_a_source_is_that_of_a_count_by_hand(
    views: list[tuple[int, int, str, int]], period: str, source: str, is_listed: bool
) -> None:
    past = Past(views)
    begin_history(Post, Article, kinds=["views:referrer"])
    given, ages, ages_before = PERIODS[period]
    if not given:
        days = [past.today - timedelta(days=age) for age in (ages[-1], ages[0])]
        given = {"from": str(days[0]), "to": str(days[1])}
    numbers = [0, 1, 3] if is_listed else [0, 1, 2, 3]
    category = {"category": past.section} if is_listed else {}
    scope = Scope.parse({**given, **category, "referrer": source})
    now = past.of(ages, source, numbers)
    before = past.of(ages_before, source, numbers)

    data = loading.load(scope, ["over-time", "most-viewed", "trending", "now"], row_limit=10)
    assert data.chart is not None
    assert data.chart.total.views == now.total()
    assert data.chart.total_before is not None
    assert data.chart.total_before.views == before.total()
    by_day = [past.of(range(age, age + 1), source, numbers).total() for age in reversed(ages)]
    if scope.by == "day":
        assert [point.views for point in data.chart.points] == by_day
    rows = {str(row.values[0]): row.values[1:3] for row in tables.most_viewed(data).rows}
    assert rows == {str(past.objects[number]): (now[number], before[number]) for number in now}
    ordered = tables.most_viewed(data).values("views")
    assert ordered == sorted(ordered, reverse=True)

    grown = tables.grew_most(loading.load(scope, ["grew-most"], row_limit=10))
    compared = past.of([age for age in ages if age], source, numbers)
    expected = {number: compared[number] - before[number] for number in now}
    assert {str(row.values[0]): row.values[1] for row in grown.rows} == {
        str(past.objects[number]): growth for number, growth in expected.items() if growth > 0
    }

    sources = tables.table_named("by-referrer", loading.load(scope, ["by-referrer", "by-device"]))
    assert [row.values[:3] for row in sources.rows] == (
        [(source, now.total(), before.total())] if now else []
    )


@hypothesis_settings(max_examples=examples(10))
@given(VIEWS, st.sampled_from([*PERIODS]))
def test_the_sources_of_an_object_are_those_of_a_count_by_hand(
    views: list[tuple[int, int, str, int]], period: str
) -> None:
    past = Past(views)
    begin_history(Post, Article, kinds=["views:referrer"])
    given, ages, ages_before = PERIODS[period]
    if not given:
        days = [past.today - timedelta(days=age) for age in (ages[-1], ages[0])]
        given = {"from": str(days[0]), "to": str(days[1])}
    for number in (0, 3):
        fixed = {"object": subject_of(past.objects[number])}
        scope = Scope.parse(given, fixed=fixed)
        table = tables.table_named("by-referrer", loading.load(scope, ["by-referrer"]))
        expected = {
            source: (
                past.of(ages, source, [number]).total(),
                past.of(ages_before, source, [number]).total(),
            )
            for source in SOURCES
        }
        assert {row.values[0]: row.values[1:3] for row in table.rows} == {
            source: counts for source, counts in expected.items() if counts[0]
        }


@hypothesis_settings(max_examples=examples(10))
@given(VIEWS, st.sampled_from([*PERIODS]), st.sampled_from(SOURCES))
def test_the_page_of_an_object_has_the_numbers_of_a_source_in_a_count_by_hand(
    views: list[tuple[int, int, str, int]], period: str, source: str
) -> None:
    past = Past(views)
    given, ages, ages_before = PERIODS[period]
    if not given:
        days = [past.today - timedelta(days=age) for age in (ages[-1], ages[0])]
        given = {"from": str(days[0]), "to": str(days[1])}
    for number in (0, 3):
        fixed = {"object": subject_of(past.objects[number])}
        scope = Scope.parse({**given, "referrer": source}, fixed=fixed)
        data = loading.load(scope, ["over-time", "by-referrer", "by-device", "now"])
        assert data.chart is not None
        assert data.chart.total_before is not None
        assert data.chart.total.views == past.of(ages, source, [number]).total()
        assert data.chart.total_before.views == past.of(ages_before, source, [number]).total()
        assert [point.views for point in data.chart.points] == [
            past.of(range(age, age + 1), source, [number]).total() for age in reversed(ages)
        ]
        assert [row.values[0] for row in tables.table_named("by-referrer", data).rows] == (
            [source] if data.chart.total.views else []
        )


def refer(obj: Any, source: str, *, times: int = 1, device: str = "phone") -> None:
    for _ in range(times):
        hit = factories.hit(subject_of(obj), dimensions=(("referrer", source), ("device", device)))
        assert tracker.record(hit).counted


@pytest.fixture
def posts() -> list[Post]:
    """Creates three posts of a category with views from two sources today, and flushes them."""
    section = factories.category()
    posts = [factories.post(title=f"Story {number}", category=section) for number in range(3)]
    refer(posts[0], "a.example", times=2)
    refer(posts[0], "direct", times=5)
    refer(posts[1], "a.example", times=3, device="tablet")
    refer(posts[2], "direct")
    earlier = buckets.hour_index(buckets.now()) - 5
    for post in posts:  # so that there are lists of the most viewed
        History.objects.create(subject=subject_of(post), hour=earlier, views=1, visitors=1)
    flush()
    tracker.refresh_trending()
    return posts


def opened(client: Client, **given: str) -> Any:
    return client.get(DASHBOARD, given)


def tables_of(page: Any) -> dict[str, tables.Table]:
    return {one["table"].name: one["table"] for one in page.context["tables"]}


@pytest.mark.parametrize(
    ("asked", "is_offered"),
    [
        ({"period": "7", "referrer": "b.example"}, True),
        ({"period": "all", "referrer": "b.example"}, False),
        ({"period": "7", "referrer": "a.example"}, False),
        ({"period": "7"}, False),
    ],
)
def test_a_value_without_views_in_the_period_leads_to_all_time(
    asked: dict[str, str], is_offered: bool, admin_client: Client
) -> None:
    Past([(300, 0, "b.example", 4), (2, 0, "a.example", 3)])
    page = opened(admin_client, **asked)
    said = [(sentence.text, link) for sentence, link in page.context["lead"].sentences]
    nothing = ("No views of b.example in these days.", "")
    all_time = ("All time", "?referrer=b.example&period=all")
    assert (said == [nothing, all_time]) is is_offered
    assert (all_time in said) is is_offered


@pytest.mark.usefixtures("posts")
@pytest.mark.parametrize("period", ["today", "7", "28", "90", "year", "all"])
def test_a_filter_by_source_works_on_each_tab_in_each_period(
    admin_client: Client, period: str
) -> None:
    given = {"period": period, "referrer": "a.example"}
    page = opened(admin_client, **given)
    figures = {figure.name: figure for figure in page.context["figures"]}
    assert figures["views"].value == "5"
    assert [figures[name].value for name in ("visitors", "reads")] == [NOT_KNOWN] * 2
    assert {figures[name].remark for name in ("visitors", "reads")} == {
        "Not known for this filter."
    }
    assert page.context["recent"] == NOT_KNOWN
    found = tables_of(page)
    assert [(str(row.values[0]), row.values[1]) for row in found["most-viewed"].rows] == [
        ("Story 1", 3),
        ("Story 0", 2),
    ]
    assert {
        value for name in ("visitors", "reads") for value in found["most-viewed"].values(name)
    } == {None}
    assert "Not known for this filter." in found["trending"].empty
    assert (len(found["trending"].rows), "Story 2" in page.text) == (0, False)
    assert [choice.label for choice in page.context["tabs"]] == [
        label for tab, label in TABS.items() if not (tab == "growth" and period == "all")
    ]
    found = tables_of(opened(admin_client, tab="sources", **given))
    assert [row.values[:2] for row in found["by-referrer"].rows] == [("a.example", 5)]
    assert (len(found["by-device"].rows), "Not known" in found["by-device"].empty) == (0, True)
    found = tables_of(opened(admin_client, tab="reading", **given))
    for table in found.values():
        assert (len(table.rows), "Not known for this filter." in table.empty) == (0, True)
    found = tables_of(opened(admin_client, tab="refused", **given))
    assert all("Of the whole site" in table.caption for table in found.values())


def test_a_campaign_says_when_its_first_and_last_views_of_the_period_were(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["campaign"]}}
    today = local_time.today()
    for age in (20, 8, 3):
        hour = local_time.first_hour_of(today - timedelta(days=age))
        breakdown_history.add_gains({("site.post", "views:campaign", "spring"): 5}, hour=hour + 9)
    first, last = (date_format(today - timedelta(days=age), "DATE_FORMAT") for age in (20, 3))

    def said(**given: str) -> str:
        return str(opened(admin_client, **given).context["seen_between"])

    assert said(campaign="spring", period="28") == (
        f"In this period, its first view was on {first}, and its last one on {last}."
    )
    assert last in said(campaign="spring", period="7")
    assert first not in said(campaign="spring", period="7")
    assert said(campaign="spring", period="yesterday") == ""  # no view
    of_one_day = f"In this period, it was viewed on {last} only."
    assert said(campaign="spring", period="7") == of_one_day
    assert said(campaign="spring", period="7", by="hour") == of_one_day
    day = f"{today - timedelta(days=3):%Y-%m-%d}"
    assert said(campaign="spring", period="", **{"from": day, "to": day}) == ""
    assert said(campaign="spring", period="28", by="week") == ""
    assert said(period="28") == ""


@pytest.mark.usefixtures("posts")
def test_of_two_values_each_is_known_by_itself(admin_client: Client) -> None:
    given = {"referrer": "a.example", "device": "phone"}
    page = opened(admin_client, **given)
    assert [figure.value for figure in page.context["figures"]] == [NOT_KNOWN] * 3
    found = tables_of(page)
    assert [tuple(map(str, row.values)) for row in found["most-viewed"].rows] == [
        ("Story 0", "2", "7")
    ]
    for name in ("over-time", "trending"):
        assert (len(found[name].rows), "Not known for this filter." in found[name].empty) == (
            0,
            True,
        )
    for tab in ("growth", "sources", "reading"):
        for table in tables_of(opened(admin_client, tab=tab, **given)).values():
            assert (len(table.rows), "Not known for this filter." in table.empty) == (0, True)


@pytest.mark.usefixtures("posts")
def test_files_follow_the_filter(admin_client: Client) -> None:
    def exported(name: str, file_format: str, **given: str) -> str:
        parameters = {"table": name, "format": file_format, **given}
        answer: Any = admin_client.get(DASHBOARD, parameters)
        return b"".join(answer.streaming_content).decode("utf-8-sig")

    rows = [*csv.DictReader(StringIO(exported("most-viewed", "csv", referrer="a.example")))]
    assert [(row["Title"], row["Views"], row["Visitors"], row["Reads"]) for row in rows] == [
        ("Story 1", "3", "", ""),
        ("Story 0", "2", "", ""),
    ]
    chart = json.loads(exported("over-time", "json", referrer="a.example"))
    assert [row[1] for row in chart["rows"]] == [0, 0, 0, 0, 0, 0, 5]
    assert {row[3] for row in chart["rows"]} == {None}
    assert json.loads(exported("now", "json", referrer="a.example"))["rows"] == [[None]]
    for name in ("by-device", "really-read", "trending", "funnel"):
        assert json.loads(exported(name, "json", referrer="a.example"))["rows"] == []
    assert json.loads(exported("over-time", "json", referrer="a", device="phone"))["rows"] == []


def test_a_filtered_page_takes_as_few_queries_and_trips(
    posts: list[Post], admin_client: Client, wire: Wire
) -> None:
    assert posts[0].category
    section = subject_of(posts[0].category)
    of_object = numbers_url(posts[0])
    periods = ("today", "7", "90", "all")
    filters: list[dict[str, str]] = [{}, {"category": section}, {"device": "phone"}]
    pages = [(DASHBOARD, *row) for row in pairs(TABS, periods, filters)]
    # The page of an object has one tab.
    pages += [(of_object, "", *row) for row in product(periods, ({}, {"device": "phone"}))]
    admin_client.get(DASHBOARD)
    for path, tab, period, more in pages:
        given = {"referrer": "a.example", "period": period, "tab": tab, **more}
        with wire.counted() as trips, CaptureQueriesContext(connection) as queries:
            page: Any = admin_client.get(path, given)
        most_queries, most_trips = limits_of(page)
        assert trips[0] <= most_trips, (path, given)
        texts = [query["sql"][:300] for query in queries]
        assert len(queries) - OF_THE_ADMIN <= most_queries, (path, given, texts)


def test_a_source_is_one_click_away_and_an_objects_sources_this_week_too(
    posts: list[Post], admin_client: Client
) -> None:
    given = {"period": "28", "tab": "sources"}
    [table] = [
        one
        for one in opened(admin_client, **given).context["tables"]
        if one["table"].name == "by-referrer"
    ]
    [link] = [row.link for row in table["rows"] if row.head["text"] == "a.example"]
    page = admin_client.get(DASHBOARD + link)
    assert page.context["scope"].period == "28"
    assert page.context["figures"][0].value == "5"
    [table] = [
        one for one in opened(admin_client).context["tables"] if one["table"].name == "most-viewed"
    ]
    [link] = [row.link for row in table["rows"] if row.head["text"] == "Story 0"]
    assert link.startswith(numbers_url(posts[0]))
    page = admin_client.get(link)
    assert page.context["scope"].period == "7"
    assert [row.values[:2] for row in tables_of(page)["by-referrer"].rows] == [
        ("direct", 5),
        ("a.example", 2),
    ]


@pytest.mark.usefixtures("afternoon")
def test_a_day_that_is_not_over_is_not_compared_by_value(
    posts: list[Post], admin_client: Client
) -> None:
    yesterday = timezone.localdate() - timedelta(days=1)
    DayBreakdown.objects.create(
        subject=subject_of(posts[0]),
        kind="views:referrer",
        day=yesterday,
        field="a.example",
        count=9,
    )
    begin_history(Post, kinds=["views:referrer"])
    found = tables_of(opened(admin_client, referrer="a.example", period="today"))
    assert found["most-viewed"].values("before") == [None, None]
    page = opened(admin_client, referrer="a.example", period="today", tab="growth")
    assert "today is compared once it is over" in page.text
    found = tables_of(opened(admin_client, referrer="a.example", period="7"))
    assert dict(
        zip(
            found["most-viewed"].values("views"), found["most-viewed"].values("before"), strict=True
        )
    ) == {11: 0, 3: 0}
    page = admin_client.get(numbers_url(posts[0]), {"period": "today"})
    assert [column.name for column in tables_of(page)["by-referrer"].columns] == [
        "referrer",
        "views",
        "share",
    ]


@pytest.mark.parametrize("more", [{}, {"device": "phone"}])
def test_the_list_of_a_campaign_has_stories_that_are_in_no_list_of_the_most_viewed(
    more: dict[str, str], admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin_client.get(DASHBOARD)  # loads modules with the number as it is, whatever test comes first
    monkeypatch.setattr(objects, "MOST", 3)
    monkeypatch.setattr(popular, "LISTED", 3)
    begin_history(Post)
    posts = [factories.post(title=f"Story {number}") for number in range(16)]
    for post in posts[:4]:
        refer(post, "direct", times=9)
    for post in posts[4:]:
        refer(post, "a.example")
    flush()
    tracker.refresh_trending()
    given = {"referrer": "a.example", "tab": "stories", **more}
    found = opened(admin_client, **given).context["list"]
    assert {row.head["text"] for row in found.rows} == {
        str(post) for post in posts[4:]
    }  # before: none
    assert "Among" not in found.caption
    parameters = {"table": "most-viewed", "format": "json", **given}
    answer: Any = admin_client.get(DASHBOARD, parameters)
    assert len(json.loads(b"".join(answer.streaming_content))["rows"]) == 12
    if not more:
        listed = opened(admin_client, referrer="a.example").context["list"]
        assert "tab=stories" in listed.more.address


def test_of_a_value_of_very_many_objects_the_most_viewed_are_looked_through(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, posts: list[Post]
) -> None:
    monkeypatch.setattr(by_value, "MOST_ROWS", 2)
    monkeypatch.setattr(by_value, "CANDIDATES", 2)
    words = "The list has the stories with the most views of the period."
    for more in ({}, {"device": "phone"}):
        table = tables_of(opened(admin_client, referrer="direct", **more))["most-viewed"]
        assert words in table.caption
        assert table.rows
    monkeypatch.setattr(by_value, "MOST_ROWS", 9)
    table = tables_of(opened(admin_client, referrer="direct"))["most-viewed"]
    assert words not in table.caption


def test_of_all_time_the_list_says_among_which_objects_it_looked(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, posts: list[Post]
) -> None:
    monkeypatch.setattr(by_value, "MOST", 2)
    among = "Among the stories with the most views of all time."
    for more in ({}, {"device": "phone"}):
        found = tables_of(opened(admin_client, referrer="a.example", period="all", **more))
        assert among in found["most-viewed"].caption
        found = tables_of(opened(admin_client, referrer="a.example", **more))
        assert among not in found["most-viewed"].caption


def test_a_filtered_page_is_there_without_redis_and_without_history(
    posts: list[Post], admin_client: Client, settings: Settings
) -> None:
    numbers = settings.READTRACK["NUMBERS"]
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {**numbers, "history": False}}
    page = opened(admin_client, referrer="a.example", period="all")
    assert [row.values[1] for row in tables_of(page)["most-viewed"].rows] == [3, 2]
    settings.CACHES = {
        "default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}
    }
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": numbers}
    for more in ({}, {"device": "phone"}):
        page = opened(admin_client, referrer="a.example", **more)
        assert [row.values[1] for row in tables_of(page)["most-viewed"].rows][-1:] == [2]


@each_row(
    ("days", "is_listed", "more"),
    [
        ({"period": "all"}, True, {}),
        ({"from": "1990-01-01"}, False, {}),
        ({"from": "1990-01-01"}, False, {"device": "phone"}),
    ],
)
def test_no_statement_names_each_day_of_a_long_period(
    posts: list[Post],
    admin_client: Client,
    days: dict[str, str],
    more: dict[str, str],
    *,
    is_listed: bool,
) -> None:
    assert posts[0].category
    section = {"category": subject_of(posts[0].category)} if is_listed else {}
    given = {"referrer": "a.example", "to": str(timezone.localdate()), **days, **more, **section}
    with CaptureQueriesContext(connection) as queries:
        page = opened(admin_client, **given)
    assert "Story 0" in page.text
    # A list of the days took 190,000 characters.
    assert max(len(query["sql"]) for query in queries) < 60_000


def test_growth_is_ranked_without_the_views_of_today() -> None:
    begin_history(Post, kinds=["views:referrer"])
    posts = [factories.post(title=f"Story {number}") for number in range(5)]
    today = timezone.localdate()
    for post, age, count in zip(posts, (0, 0, 0, 1, 1), (9, 9, 9, 3, 2), strict=True):
        DayBreakdown.objects.create(
            subject=subject_of(post),
            kind="views:referrer",
            day=today - timedelta(days=age),
            field="a.example",
            count=count,
        )
    scope = Scope.parse({"referrer": "a.example", "period": "7"})
    rows = tables.grew_most(loading.load(scope, ["grew-most"], row_limit=2, candidates=2)).rows
    # Before: no story, because those of today took the places.
    assert [(str(row.values[0]), row.values[1]) for row in rows] == [("Story 3", 3), ("Story 4", 2)]
