"""The dashboard's page: totals, chart and tables of a scope, without Redis too, and as files."""

import csv
import html
import json
import re
from datetime import date, datetime, timedelta
from io import StringIO
from itertools import product
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import override
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, reports, tracker
from readtrack.access import numbers_url
from readtrack.dashboard.navigation import TABS
from readtrack.dashboard.panels import FILES
from readtrack.dashboard.timeline import FORMATS, change_of
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.models import FlushRun
from readtrack.numbers import loading, local_time, objects, sources, tables
from readtrack.numbers.models import History, Note, Popular
from readtrack.numbers.options import numbers_options
from readtrack.numbers.scope import PERIODS, Scope
from readtrack.numbers.sql import breakdown_history, history, popular
from readtrack.numbers.tables import NOT_KNOWN
from readtrack.numbers.totals import SERIES
from readtrack.script.robots import mark_robots
from readtrack.sql import raising, row_counts
from readtrack.sql.row_counts import RowCounts
from readtrack.store import skips
from readtrack.store.circuit import Circuit
from readtrack.store.skips import skip_buffer
from readtrack.subjects import subject_of
from readtrack.texts import title_of
from tests.conftest import Start
from tests.site.models import Article, Gadget, Manual, Page, Post, Product, Topic
from tests.support import counts, factories
from tests.support.costs import limits_of
from tests.support.depth import some
from tests.support.factories import BROWSER
from tests.support.frozen import freeze_time
from tests.support.past import begin_history
from tests.support.people import add_people
from tests.support.pseudo import unmarked
from tests.support.waiting import comes_true
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"
OF_THE_ADMIN = 2  # queries: the session and its user


@pytest.fixture(autouse=True)
def accounts() -> None:
    """Forgets how many accounts the test before had."""
    loading._accounts.cache_clear()


def content(page: str) -> str:
    """Returns the part of an admin page that is readtrack's."""
    return page[page.index('id="content-main"') :]


def opened(client: Client, **given: str) -> Any:
    """Returns the response; with an object that of its page."""
    return client.get(DASHBOARD, given, follow=True)


def shown(client: Client, **given: str) -> dict[str, Any]:
    """Returns what the page shows: the totals by name, with those before, and the tables' rows as
    text.
    """
    return told(opened(client, **given).context)


def told(context: Any) -> dict[str, Any]:
    """Returns what the page of that context shows."""
    return {
        **{figure.label: (figure.value, figure.before) for figure in context.get("figures", ())},
        **{
            one["table"].name: [
                [head["text"], *map(written, cells)] for head, cells, *_ in one["rows"]
            ]
            for one in context["tables"]
        },
    }


def written(cell: dict[str, Any]) -> str:
    """Returns what is written in a cell; a small line is drawn there."""
    return "" if cell["column"].value_kind == "trend" else str(cell["text"])


def exported(client: Client, name: str, kind: str, **given: str) -> str:
    answer: Any = client.get(DASHBOARD, {"table": name, "format": kind, **given})
    return b"".join(answer.streaming_content).decode("utf-8-sig" if kind == "csv" else "utf-8")


def add_views(obj: Any, days_ago: int, views: int, *, visitors: int = 0, reads: int = 0) -> None:
    """Adds to the history of an object and of its model, as flushes of that day would have."""
    hour = buckets.hour_index(buckets.now() - timedelta(days=days_ago))
    label = obj._meta.label_lower
    rows = {f"{label}:{obj.pk}": (views, visitors), label: (views, 0)}
    rows |= {
        f"reads:{label}": (reads, 0),
        f"reads:{label}:{obj.pk}": (reads, 0),
    }
    for subject, (more, new) in rows.items():
        last = History.objects.filter(subject=subject).order_by("hour").last()
        before = (last.views, last.visitors) if last else (0, 0)
        history.store({subject: RowCounts(before[0] + more, before[1] + new)}, hour=hour)
    if visitors:
        people = [f"v{number}" for number in range(visitors)]
        day = timezone.localdate() - timedelta(days=days_ago)
        add_people([label, f"{label}:{obj.pk}"], people, day=day)


def test_an_empty_site_is_told_what_to_do(admin_client: Client) -> None:
    page = content(admin_client.get(DASHBOARD).text)
    for words in (
        "never",
        "manage.py readtrack flush",
        "No views in this period.",
        "No views in the last hour",
    ):
        assert words in page
    assert shown(admin_client)["Views"] == ("0", NOT_KNOWN)


def test_the_sentence_below_the_chart_names_the_filters(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer", "device"]}}
    section = factories.category(name="Sport")
    post = factories.post(category=section)
    tracker.record(factories.hit(subject_of(post), dimensions=(("referrer", "a.example"),)))
    flush()
    day = date_format(timezone.localdate(), "DATE_FORMAT")
    given: dict[str, str]
    for given, expected in (
        ({}, f"1 view, 1 visitor and 0 reads; {day}."),
        ({"referrer": "a.example"}, f"1 view; {day}. Filtered by Source: a.example."),
        ({"referrer": "b.example"}, f"0 views; {day}. Filtered by Source: b.example."),
        (
            {"category": subject_of(section)},
            f"1 view, 1 visitor and 0 reads; {day}. Filtered by Category: Sport.",
        ),
        (
            {"category": subject_of(section), "referrer": "a.example"},
            f"1 view; {day}. Filtered by Category: Sport; Source: a.example.",
        ),
    ):
        page = opened(admin_client, period="today", **given)
        assert page.context["chart"].summary == expected
    assert "With the filter by Source: a.example only the views are known." in page.text
    both = opened(admin_client, referrer="a.example", device="phone").text
    words = (
        "Views are known with each of these filters by itself: Source: a.example; Device: Phone."
    )
    assert words in both


@pytest.mark.parametrize(
    ("views", "words"),
    [(0, "0 مشاهدة"), (1, "مشاهدة واحدة"), (2, "مشاهدتان"), (3, "3 مشاهدات"), (11, "11 مشاهدة")],
)
def test_the_sentence_below_the_chart_has_the_plural_forms_of_its_language(
    views: int, words: str, admin_client: Client
) -> None:
    if views:
        add_views(factories.post(), 1, views)
    with override("ar"):
        assert words in opened(admin_client).context["chart"].summary


def test_it_is_said_that_only_days_that_are_over_are_compared(admin_client: Client) -> None:
    words = "Changes compare the 6 days that are over with "
    post = factories.post()
    for days_ago in (20, 10):
        add_views(post, days_ago, 1)
    assert words in opened(admin_client, period="7").text
    for period in ("yesterday", "all"):
        assert words not in opened(admin_client, period=period).text


@pytest.mark.parametrize("period", some(["today", "yesterday", "7", "all"], deep=PERIODS))
def test_totals_chart_table_and_file_have_the_same_numbers_flushed_or_not(
    period: str, admin_client: Client
) -> None:
    post, product = factories.post(title="Top"), Product.objects.create(name="x")
    counts.view(post, post, product)
    flush()
    counts.view(post)
    page = opened(admin_client, period=period)
    found = told(page.context)
    views = [0, 0, 0] if period in ("yesterday", "last-week") else [4, 3, 1]
    assert found["Views"][0] == str(views[0])
    assert [row[1] for row in found["most-viewed"]] == [str(count) for count in views[1:] if count]
    rows = list(csv.DictReader(StringIO(exported(admin_client, "over-time", "csv", period=period))))
    assert sum(int(row["Views"]) for row in rows) == views[0]
    assert sum(int(values[0]) for _, values in page.context["chart"].rows) == views[0]
    drawn = page.context["chart"].drawn
    rows = json.loads(exported(admin_client, "over-time", "json", period=period))["rows"]
    assert drawn.values == [row[1] for row in rows]
    one = shown(admin_client, period=period, object=f"site.post:{post.pk}")
    assert one["Views"][0] == str(views[1])


def test_each_number_has_that_of_the_period_before_and_the_change(admin_client: Client) -> None:
    post, other = factories.post(title="A"), factories.post(title="B")
    add_views(post, 20, 1)
    add_views(post, 10, 40, visitors=20, reads=10)
    add_views(other, 3, 5)
    add_views(post, 2, 60, visitors=30, reads=15)
    page = admin_client.get(DASHBOARD)
    assert [(f.value, f.before, f.change, f.trend) for f in page.context["figures"]] == [
        ("65", "40", "+62%", "up"),
        ("30", "20", "+50%", "up"),
        ("15", "10", "+50%", "up"),
    ]
    assert page.context["tables"][0]["rows"] == []  # no list yet: the next full flush makes it
    flush()
    found = shown(admin_client)
    assert found["most-viewed"] == [
        ["A", "60", "+50%", "30", "15", ""],
        ["B", "5", "new", "0", "0", ""],
    ]
    assert shown(admin_client, object=f"site.post:{post.pk}")["Reads"] == ("15", "10")


@pytest.mark.usefixtures("pseudo")
def test_every_word_of_the_dashboard_is_marked_for_translation(admin_client: Client) -> None:
    pages = [admin_client.get(DASHBOARD, {"tab": tab}).text for tab in TABS]
    post = factories.post(title="1")
    visitor = Visitor("a")
    for _ in range(2):
        tracker.record(factories.hit(f"site.post:{post.pk}", visitor=visitor))
    skip_buffer.send()
    flush()
    pages += [
        admin_client.get(DASHBOARD, {"period": chosen}).text
        for chosen in some(["today", "all"], deep=PERIODS)
    ]
    given: dict[str, str]
    for given in ({}, {"object": f"site.post:{post.pk}"}, {"device": "phone"}):
        pages += [opened(admin_client, tab=tab, **given).text for tab in TABS]
    for page in pages:
        text = re.sub(
            r"<code>.*?</code>|<[^>]*>|&\w+;",
            " ",
            content(page).partition(">")[2].partition("<footer")[0],
        )
        assert set(unmarked(text)) <= {"CSV", "JSON", *numbers_options().funnel}
    assert any("⟦seen by the same visitor already⟧" in page for page in pages)


def test_the_chart_is_a_described_drawing_and_the_page_has_no_script_and_style_of_its_own(
    admin_client: Client,
) -> None:
    counts.view(factories.post())
    page = content(admin_client.get(DASHBOARD).text)
    assert re.search(
        r'class="readtrack-chart" role="group" aria-label="Views over time: 1 view, [^"]+"', page
    )
    assert not re.search(r"<script(?![^>]* src=)|<style|style=|\son\w+=", page)


def test_titles_cannot_break_out_of_the_page_nor_become_a_formula(admin_client: Client) -> None:
    counts.view(
        factories.post(title="<script>alert(1)</script>"),
        factories.post(title='=cmd|" /C calc"!A1'),
    )
    flush()
    assert "<script>alert" not in admin_client.get(DASHBOARD).text
    rows = list(csv.reader(StringIO(exported(admin_client, "most-viewed", "csv"))))
    assert {row[0] for row in rows[1:]} == {"<script>alert(1)</script>", """'=cmd|" /C calc"!A1"""}


@pytest.mark.parametrize(
    "begin", ["=", "\n=", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH COMMERCIAL AT}"]
)
def test_a_title_that_a_spreadsheet_would_compute_is_marked_as_text(
    begin: str, admin_client: Client
) -> None:
    counts.view(factories.post(title=f"{begin}1+1"))
    flush()
    rows = list(csv.reader(StringIO(exported(admin_client, "most-viewed", "csv"))))
    assert rows[1][0] == begin.replace("\n", " ")[:-1] + f"'{begin[-1]}1+1"


def test_titles_and_addresses_are_made_of_shown_rows_and_a_failing_one_is_a_row_without_link(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[str] = []

    def address(post: Any) -> str | None:
        made.append(post.title)
        return {"lost": None}[post.title]  # raises KeyError for others

    def title(post: Any) -> str:
        made.append("title")
        return {"lost": "Lost"}[post.title]

    posts = [factories.post(title="lost"), *(factories.post(title="broken") for _ in range(11))]
    counts.view(*posts, *posts[:2], posts[0])
    flush()
    monkeypatch.setattr(type(posts[0]), "get_absolute_url", address)
    monkeypatch.setattr(type(posts[0]), "__str__", title)
    page = admin_client.get(DASHBOARD)
    rows = page.context["list"].rows
    assert [(head["text"], url) for head, _, _, url in rows[:2]] == [
        ("Lost", ""),
        (f"Post object ({posts[1].pk})", ""),
    ]
    assert "None" not in content(page.text).replace("None yet.", "")
    assert [len(rows), len(page.context["trending"].rows)] == [10, 7]
    assert (made.count("title"), len(made)) == (17, 34)
    assert len([one for one in caplog.records if "failed" in one.getMessage()]) == 2
    made.clear()
    assert "Post object" in exported(admin_client, "most-viewed", "csv")
    assert "Post object" in exported(admin_client, "most-viewed", "json")
    assert made.count("title") == 24
    assert len(made) == 48  # and as many addresses
    page = admin_client.get(f"{DASHBOARD}object/site.post:{posts[1].pk}/")
    assert page.context["title"] == f"Post object ({posts[1].pk})"


def test_a_file_of_a_table_has_all_rows_and_json_has_the_same_values(admin_client: Client) -> None:
    posts = [factories.post() for _ in range(12)]
    counts.view(*posts, posts[0])
    flush()
    assert len(shown(admin_client)["most-viewed"]) == 10
    rows = list(csv.reader(StringIO(exported(admin_client, "most-viewed", "csv"))))
    found = json.loads(exported(admin_client, "most-viewed", "json"))
    assert len(rows) == 13
    assert rows[1][:2] == [posts[0].title, "2"]
    assert found["headings"] == rows[0]
    assert [[title, str(views)] for title, views, *_ in found["rows"]] == [
        row[:2] for row in rows[1:]
    ]
    for name in ("no", "", "by-nothing"):
        assert admin_client.get(DASHBOARD, {"table": name, "format": "csv"}).status_code == 404


def test_a_share_in_a_file_is_in_per_cent_as_on_the_page_with_two_more_digits(
    admin_client: Client,
) -> None:
    skip_buffer.add(skips.key_of(buckets.now()), ["bot", "bot", "repeat"])
    skip_buffer.send_rest()
    rows = list(csv.reader(StringIO(exported(admin_client, "not-counted", "csv"))))
    found = json.loads(exported(admin_client, "not-counted", "json"))
    assert [row[2] for row in rows[1:]] == ["66.67", "33.33"]
    assert [row[2] for row in found["rows"]] == [66.67, 33.33]


def test_the_columns_of_a_file_are_those_of_the_page_with_its_headings_and_units(
    admin_client: Client, settings: Settings
) -> None:
    begin_history(Post, kinds=["views:device", "funnel"])
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"], "funnels": True}}
    post = factories.post(category=factories.category())
    for days_ago, device in ((10, "phone"), (2, "tablet"), (2, "=1+1")):
        add_views(post, days_ago, 30, visitors=20, reads=10)
        add_gain(days_ago, "views:device", model="site.post", **{device: 30})
        add_gain(days_ago, "funnel", view=30, click=10)
    flush()
    tracker.refresh_trending()
    for tab in TABS:
        for one in admin_client.get(DASHBOARD, {"tab": tab}).context["tables"]:
            name, headings = one["table"].name, [column.heading for column in one["table"].columns]
            file = json.loads(exported(admin_client, name, "json", tab=tab))
            # Before: "rate" and 0.3333 for "Of the first stage" and "33%".
            assert (
                next(csv.reader(StringIO(exported(admin_client, name, "csv", tab=tab))))
                == file["headings"]
            )
            assert file["headings"][: len(headings)] == headings
            of_objects = ["Address", "Category", "Author", "Published"]
            assert file["headings"][len(headings) :] in ([], of_objects)
            assert len(file["columns"]) == len(file["headings"])
    row = json.loads(exported(admin_client, "funnel", "json"))
    assert (row["headings"][1], row["rows"][1]) == ("Passes", ["click", 20, 10, 100, 33.33, 33.33])
    # A visitor may have made up the value.
    lines = [*csv.reader(StringIO(exported(admin_client, "most-viewed", "csv", device="=1+1")))]
    assert lines[0][:3] == ["Title", "Views", "Before"]
    lines = [*csv.reader(StringIO(exported(admin_client, "by-device", "csv", device="=1+1")))]
    assert lines[1][:2] == ["'=1+1", "30"]


def test_a_file_made_without_redis_says_that_it_is_incomplete(
    admin_client: Client, start_redis: Start
) -> None:
    def made(kind: str) -> tuple[bool, str | None, str]:
        answer: Any = admin_client.get(DASHBOARD, {"table": "most-viewed", "format": kind})
        body = b"".join(answer.streaming_content).decode()
        return (
            "-incomplete." in answer["Content-Disposition"],
            answer.get("X-Readtrack-Complete"),
            body,
        )

    valkey, post = start_redis(), factories.post(title="Top")
    counts.view(post)
    flush()
    assert made("csv")[:2] == (False, None)
    assert json.loads(made("json")[2])["is_complete"] is True
    before = made("csv")[2]
    valkey.stop()
    # Before: the same name and fields as of a whole one.
    assert made("csv") == (True, "false", before)
    *named, body = made("json")
    assert (named, json.loads(body)["is_complete"]) == ([True, "false"], False)


def test_a_flush_that_failed_says_why(admin_client: Client) -> None:
    now = buckets.now()
    FlushRun.objects.create(
        started=now, ended=now + timedelta(seconds=1), error="ConnectionError: <gone>"
    )
    FlushRun.objects.create(started=now + timedelta(seconds=2))  # has not ended
    assert "ConnectionError: &lt;gone&gt;" in admin_client.get(DASHBOARD).text


@pytest.mark.parametrize(("seconds", "is_late"), [(0, False), (150, False), (200, True)])
def test_a_flush_is_late_after_three_intervals(
    seconds: int, is_late: bool, admin_client: Client
) -> None:
    ended = buckets.now() - timedelta(seconds=seconds)
    FlushRun.objects.create(started=ended, ended=ended)
    assert admin_client.get(DASHBOARD).context["is_late"] is is_late


def test_without_redis_the_dashboard_says_so_and_makes_nothing_up(
    admin_client: Client, start_redis: Start
) -> None:
    valkey, top = start_redis(), factories.post(title="Top")
    counts.view(top, top, top)
    flush()
    valkey.stop()
    page = content(admin_client.get(DASHBOARD).text)
    assert re.search(r'class="errornote" role="alert">Redis does not answer', page)
    assert "manage.py readtrack doctor" in page
    found = shown(admin_client)
    assert (found["Views"][0], found["most-viewed"][0][:2], found["trending"]) == (
        "3",
        ["Top", "3"],
        [],
    )
    for tab in ("numbers", "refused"):
        page = admin_client.get(DASHBOARD, {"tab": tab}).text
        assert "Not known at the moment." in page
    for falsehood in ("No views in the last hour", "No refused"):
        assert falsehood not in page


def test_without_redis_hours_that_were_not_flushed_have_no_number(
    admin_client: Client, start_redis: Start, settings: Settings
) -> None:
    def known() -> list[bool]:
        rows = (
            admin_client.get(DASHBOARD, {"from": f"{day:%Y-%m-%d}", "to": f"{day:%Y-%m-%d}"})
            .context["chart"]
            .rows
        )
        return [values[0] != "\N{EN DASH}" for _, values in rows]

    day = buckets.now() - buckets.DAY
    valkey = start_redis()
    flush()
    assert known() == [True] * 24
    valkey.stop()
    assert known() == [True] * 24
    FlushRun.objects.update(
        started=datetime(day.year, day.month, day.day, 21, 30, tzinfo=day.tzinfo)
    )
    assert known() == [True] * 22 + [False] * 2
    FlushRun.objects.all().delete()
    assert known() == [False] * 24


def test_with_redis_back_the_dashboard_is_live_again(
    admin_client: Client, start_redis: Start
) -> None:
    Circuit.longest_pause = 0.0
    valkey = start_redis()
    valkey.stop()
    assert "Redis does not answer" in admin_client.get(DASHBOARD).text
    valkey.start()
    page = content(admin_client.get(DASHBOARD, {"tab": "refused"}).text)
    assert "Redis does not answer" not in page
    assert "No refused hit is known of this period. They are kept for 48 hours." in page


@pytest.mark.django_db(transaction=True)
def test_lost_read_state_is_told_until_a_flush_has_restored_it(
    admin_client: Client, redis: Redis
) -> None:
    lost = "Redis lost what readers have read"
    redis.flushdb()
    assert lost not in admin_client.get(DASHBOARD).text  # a new site has lost nothing
    flush()
    tracker.mark_read(factories.user(), [factories.category()])
    flush()
    assert lost not in admin_client.get(DASHBOARD).text
    redis.flushdb()
    assert lost in admin_client.get(DASHBOARD).text
    flush()
    with CaptureQueriesContext(connection) as queries:
        assert lost not in admin_client.get(DASHBOARD).text
    assert not any("readtrack_readstate" in query["sql"] for query in queries)  # on a good day


@pytest.mark.parametrize(
    ("period", "filtered"),
    some(
        [
            ("today", ""),
            (
                "all",
                "object",
            ),  # before: 6 queries, as the row was read for the permission and again
            ("all", "category"),
        ],
        deep=[("7", ""), ("all", ""), ("7", "category"), ("year", "object")],
    ),
)
def test_a_page_costs_at_most_five_queries_and_two_round_trips(
    period: str, filtered: str, admin_client: Client, wire: Wire
) -> None:
    category = factories.category()
    posts = [factories.post(category=category) for _ in range(30)]
    counts.view(*posts)
    flush()
    tracker.refresh_trending()
    counts.view(*posts[:20])
    given = {"period": period, "model": "site.post"}  # the rows of each further model cost a query
    if filtered == "category":
        given["category"] = f"site.category:{category.pk}"
    path = DASHBOARD if filtered != "object" else numbers_url(posts[0])
    admin_client.get(path, given)  # keeps the short lists for some minutes
    for tab in [""] if filtered == "object" else TABS:  # the page of an object has one
        given["tab"] = tab
        with wire.counted() as trips, CaptureQueriesContext(connection) as queries:
            page = admin_client.get(path, given)
        assert page.context["data"].is_live
        most_queries, most_trips = limits_of(page)
        assert trips[0] <= most_trips, tab
        assert len(queries) - OF_THE_ADMIN <= most_queries, [
            tab,
            *(query["sql"][:200] for query in queries),
        ]


@pytest.mark.parametrize(
    ("period", "most"),
    some([("all", 5), ("7", 1000)], deep=product(("today", "7", "all"), (5, 1000))),
)
def test_a_category_of_all_models_and_an_author_cost_as_few(
    period: str, most: int, admin_client: Client, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "MOST", most)
    section, author = factories.category(name="Sport"), factories.user(username="ann")
    posts = [factories.post(category=section) for _ in range(7)]
    is_mixed = most > 5 and period != "all"  # rows that are shown cost a query for each model
    articles = [
        Article.objects.create(category=section, author=author) for _ in range(3 if is_mixed else 0)
    ]
    counts.view(*posts, *articles)
    flush()
    tracker.refresh_trending()
    counts.view(*posts)
    for chosen, name in (
        ({"category": f"site.category:{section.pk}"}, "Sport"),
        ({"author": str(author.pk)}, "ann"),
    ):
        admin_client.get(DASHBOARD, {**chosen, "period": period})  # keeps the short lists
        for tab in TABS.keys() - {"sections"}:  # a query for each model of categories
            given = {**chosen, "period": period, "tab": tab}
            with wire.counted() as trips, CaptureQueriesContext(connection) as queries:
                page = admin_client.get(DASHBOARD, given)
            assert page.context["chips"][0][1] == name
            most_queries, most_trips = limits_of(page)
            assert trips[0] <= most_trips, tab
            assert len(queries) - OF_THE_ADMIN <= most_queries, [
                tab,
                *(query["sql"][:200] for query in queries),
            ]


@pytest.mark.parametrize(
    ("period", "most"),
    some([("7", 5), ("28", 1000)], deep=product(("today", "7", "year", "all"), (5, 1000))),
)
def test_the_overview_of_a_category_of_three_models_costs_as_few(
    period: str,
    most: int,
    admin_client: Client,
    settings: Settings,
    wire: Wire,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer", "device", "campaign"]}}
    monkeypatch.setattr(objects, "MOST", most)
    section, author = factories.category(name="Sport"), factories.user(username="ann")
    factories.category(name="Chess")
    posts: list[Any] = [factories.post(category=section) for _ in range(6)]
    for age in (1, 2, 3, 200, 300, 400):
        published = timezone.now() - timedelta(days=age)
        posts.append(
            Article.objects.create(category=section, author=author, published_at=published)
        )
    posts += [Page.objects.create(slug=str(number), section=section) for number in range(6)]
    counts.view(*posts)
    flush()
    tracker.refresh_trending()
    counts.view(*posts)
    given = {"category": f"site.category:{section.pk}", "period": period}
    admin_client.get(DASHBOARD, given)
    with wire.counted() as trips, CaptureQueriesContext(connection) as queries:
        page = admin_client.get(DASHBOARD, given)
    most_queries, most_trips = limits_of(page)
    assert trips[0] <= most_trips
    assert len(queries) - OF_THE_ADMIN <= most_queries, [  # before: 14
        query["sql"][:200] for query in queries
    ]
    unread = page.context["unread"]
    assert [row.head["text"] for row in unread.rows] == ["Sport"]  # before: those of all models


def test_a_category_without_read_state_has_nothing_unread(admin_client: Client) -> None:
    page = admin_client.get(DASHBOARD, {"category": "site.nothing:1"})
    assert page.context["unread"].rows == []


def test_a_shown_row_that_is_deleted_meanwhile_is_its_key(admin_client: Client) -> None:
    section = factories.category()
    gone, other = (factories.post(category=section, title=title) for title in ("Gone", "Other"))
    counts.view(gone, gone, other)
    flush()
    scope = Scope.parse({"category": f"site.category:{section.pk}"})
    found = loading.load(scope, ["most-viewed"])
    table = tables.most_viewed(found)
    Post.objects.filter(pk=gone.pk).delete()
    found.objects.load([subject_of(other)])
    assert [title_of(row.values[0]) for row in table.rows] == ["", "Other"]
    assert table.rows[0].values[0].pk == gone.pk


def test_a_category_without_rows_has_no_first_day(admin_client: Client) -> None:
    found = shown(admin_client, category=f"site.category:{factories.category().pk}", period="all")
    assert (found["Views"], found["most-viewed"]) == (("0", None), [])


def test_a_category_that_rows_are_linked_to_by_many_has_its_name(admin_client: Client) -> None:
    topic = Topic.objects.create(name="Elections")
    article = Article.objects.create(title="a")
    article.topics.add(topic)
    counts.view(article)
    flush()
    page = admin_client.get(DASHBOARD, {"category": f"site.topic:{topic.pk}"})
    assert page.context["chips"][0][1] == str(topic)
    assert [row[0]["text"] for row in page.context["tables"][0]["rows"]] == [str(article)]


def test_accounts_are_counted_once_in_some_minutes(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.category()
    for now, expected in ((600, "1"), (899, "1"), (900, "3")):
        monkeypatch.setattr(loading, "monotonic", lambda now=now: now)
        assert {row[2] for row in shown(admin_client, tab="sections")["sections"]} == {expected}
        factories.user()


def test_each_tenant_has_its_own_number_of_accounts(
    admin_client: Client, settings: Settings
) -> None:
    factories.category()
    for tenant, expected in (("red:", "1"), ("blue:", "2"), ("red:", "1")):
        settings.READTRACK = {"PREFIX": tenant}
        assert {row[2] for row in shown(admin_client, tab="sections")["sections"]} == {expected}
        factories.user()


def test_long_and_past_periods_have_the_best_of_the_lists_and_cost_no_more_queries(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, other = (
        factories.post(title="Old"),
        factories.post(title="New"),
        Product.objects.create(name="x"),
    )
    add_views(old, 400, 50)
    add_views(new, 40, 9)
    add_views(old, 40, 4)
    raising.write(Post, {old.pk: RowCounts(54, 0), new.pk: RowCounts(9, 0)})
    counts.view(other)
    flush()
    assert (
        not Popular.objects.filter(days=popular.EVER, subject=subject_of(new))
        .exclude(views=9)
        .exists()
    )
    monkeypatch.setattr(popular, "most", None)  # adds up all history of the period
    day = buckets.now() - 40 * buckets.DAY
    past = {"from": f"{day - buckets.DAY:%Y-%m-%d}", "to": f"{day + buckets.DAY:%Y-%m-%d}"}
    for given, found in (
        ({"period": "all"}, [["Old", "54"], ["New", "9"]]),
        (past, [["New", "9"], ["Old", "4"]]),
    ):
        with CaptureQueriesContext(connection) as queries:
            rows = shown(admin_client, model="site.post", **given)["most-viewed"]
        assert [row[:2] for row in rows] == found
        assert len(queries) - OF_THE_ADMIN <= 12


def test_hits_that_did_not_count_are_shown_by_reason_and_hour(admin_client: Client) -> None:
    post = factories.post()
    for _ in range(3):
        tracker.record(factories.hit(f"site.post:{post.pk}", visitor=Visitor("a")))
    skip_buffer.send()
    found = shown(admin_client, tab="refused")["not-counted"]
    assert found == [
        ["seen by the same visitor already", "2", "100%", NOT_KNOWN, ""]
    ]  # none of yesterday is known
    rows = json.loads(exported(admin_client, "not-counted", "json", period="today"))["rows"]
    assert rows[0][:3] == ["seen by the same visitor already", 2, 100.0]
    assert rows[0][4][-1] == 2


@pytest.mark.parametrize("seconds", [0, 0.01])
def test_robots_that_were_refused_have_names(
    seconds: float, admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"BUFFER": {"seconds": seconds}}
    path = f"/posts/{factories.post().pk}/"
    for agent in ("Mozilla/5.0 (compatible; bingbot/2.0)", "curl/8.5.0", "curl/8.6.0", "", BROWSER):
        factories.browser(headers={"User-Agent": agent}).get(path)
    skip_buffer.send()
    for number in range(20):
        tracker.skip(["a"], "bot", is_alone=False, agent=f"Made-up-{number}/1.0")
    yesterday = buckets.now() - buckets.DAY
    tracker.skip(["a", "b"], "bot", is_alone=False, agent="GPTBot/1.0", at=yesterday)
    tracker.skip(["a"], "rate", is_alone=False, agent="GPTBot/1.0", at=yesterday)
    skip_buffer.send()
    day = f"{yesterday:%Y-%m-%d}"
    robots = ["robot, by its name", "26", "96%", "2", ""]
    # With BUFFER a thread may have taken some to send, which has not been answered yet.
    assert comes_true(lambda: robots in shown(admin_client, tab="refused").get("not-counted", ()))
    found = shown(admin_client, tab="refused")
    assert len(found["robots"]) == 20
    for name in ("robots", "not-counted"):  # before: to be added up by hand
        rows = json.loads(exported(admin_client, name, "json", period="today"))
        assert rows["caption"].startswith("24 hits by robots and assistants in all.")
    assert found["robots"][:2] == [["GPTBot", "2", "8%", "2", ""], ["curl", "2", "8%", "0", ""]]
    rows = json.loads(exported(admin_client, "robots", "json", period="today"))["rows"]
    assert {row[0]: row[1] for row in rows} == {
        **{f"Made-up-{number}": 1 for number in range(20)},
        "curl": 2,
        "bingbot": 1,
        "without a name": 1,
    }
    assert shown(admin_client, tab="refused", **{"from": day, "to": day})["robots"] == [
        ["GPTBot", "2", "100%", "2", ""]
    ]
    long_ago = {"from": "2020-01-01", "to": "2020-01-02"}
    assert (
        "No refused robot is known of this period. They are kept for 48 hours."
        in admin_client.get(DASHBOARD, {"tab": "refused", **long_ago}).text
    )


def test_hits_of_robots_are_not_said_to_be_none_where_they_are_not_known(
    admin_client: Client, start_redis: Start
) -> None:
    valkey = start_redis()
    tracker.skip(["a"], "bot", is_alone=False, agent="GPTBot/1.0")
    skip_buffer.send()

    def captions(**given: str) -> list[str]:
        data = loading.load(Scope.parse(given), ["robots", "not-counted"])
        return [tables.table_named(name, data).caption for name in ("robots", "not-counted")]

    for caption in captions():
        assert caption.startswith("1 hit by robots and assistants in all.")
        assert caption.endswith("They are kept for 48 hours.")
    of_unknown = captions(**{"from": "2020-01-01", "to": "2020-01-02"})
    valkey.stop()
    for caption in [*of_unknown, *captions()]:
        assert "in all" not in caption  # before: "0 hits by robots and assistants in all."


@freeze_time("2026-11-20T12:30:00")  # a Friday
def test_refused_hits_of_a_week_of_which_some_are_kept_say_since_when(admin_client: Client) -> None:
    skip_buffer.add(skips.key_of(buckets.now() - buckets.DAY), ["bot"])
    skip_buffer.send_rest()
    given = {"from": "2026-11-13", "to": "2026-11-19"}
    for page in (opened(admin_client, **given), opened(admin_client, tab="refused", **given)):
        since = "Only since Nov. 18, 2026, 1 p.m., as they are kept for 48 hours."
        assert since in page.text  # before: as if the number were that of the week
    assert "Only since" not in opened(admin_client).text
    assert (
        "Only since" not in opened(admin_client, **{"from": "2026-11-19", "to": "2026-11-19"}).text
    )


@pytest.mark.parametrize(("count", "label"), [(5, "Robots and assistants by name"), (6, "All 6")])
def test_refused_hits_that_the_first_screen_leaves_out_are_told(
    count: int, label: str, admin_client: Client
) -> None:
    for reason in [*tables.REASONS][:count]:
        tracker.skip(["a"], reason, is_alone=False)
    skip_buffer.send()
    page: Any = admin_client.get(DASHBOARD)
    panel = page.context["refused"]
    assert (len(panel.rows), panel.more.label) == (5, label)
    assert "tab=refused" in panel.more.address


def test_a_category_an_author_and_a_model_can_be_chosen_and_given_up(admin_client: Client) -> None:
    author, section = factories.user(username="ann"), factories.category(name="Sport")
    own = Article.objects.create(title="a", author=author, category=section)
    other, post = Article.objects.create(title="b"), factories.post(title="post", category=section)
    counts.view(own, other, post, post)
    flush()
    category, first, second = f"site.category:{section.pk}", str(own), str(other)
    for chosen, titles, views in (
        ({}, ["post", first, second], "4"),
        ({"model": "site.article"}, [first, second], "2"),
        ({"category": category}, ["post", first], "3"),
        ({"author": str(author.pk)}, [first], "1"),
        ({"category": category, "author": str(author.pk), "model": "site.article"}, [first], "1"),
        ({"author": "987654321"}, [], "0"),
    ):
        given: dict[str, str] = dict(chosen)
        page = opened(admin_client, **given)
        found = told(page.context)
        assert (sorted(row[0] for row in found["most-viewed"]), found["Views"][0]) == (
            sorted(titles),
            views,
        )
        assert len(page.context["chips"]) == len(chosen)
        for _, _, link, _ in page.context["chips"]:
            assert len(admin_client.get(DASHBOARD + link).context["chips"]) == len(chosen) - 1
    page = admin_client.get(DASHBOARD, {"category": category, "author": str(author.pk)})
    assert [chip.value for chip in page.context["chips"]] == ["Sport", "ann"]
    type(author).objects.filter(pk=author.pk).update(
        first_name="Ann", last_name="Lee", is_staff=True
    )
    page = admin_client.get(DASHBOARD, {"author": str(author.pk)})
    assert [chip.value for chip in page.context["chips"]] == ["Ann Lee"]  # before: "ann"
    author.refresh_from_db()
    report = factories.browser(author).get(f"{DASHBOARD}author/")
    assert report.context["title"] == "Numbers of Ann Lee"
    # A filter that an object's page does not take is not handed on either.
    links = opened(admin_client, object=subject_of(own), period="28", model="site.article").context[
        "links"
    ]
    assert links[-1] == ("All by this author", f"{DASHBOARD}?period=28&author={author.pk}")


def test_models_that_are_not_the_sites_own_are_there_too(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"MODELS": {"site.Manual": {"counted": True}}}
    manual, page = Manual.objects.create(title="A"), Page.objects.create(slug="a b*")
    counts.view(manual, page)
    flush()
    for period in ("7", "all"):
        assert len(shown(admin_client, period=period)["most-viewed"]) == 2
        assert (
            shown(admin_client, period=period, object=f"site.manual:{manual.pk}")["Views"][0] == "1"
        )
    counts.view(manual)
    assert shown(admin_client, object=f"site.manual:{manual.pk}")["Views"][0] == "2"
    assert shown(admin_client, object="site.page:a%20b%2A")["Views"][0] == "1"


def test_a_category_has_rows_of_models_that_are_not_the_sites_own(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {
        "MODELS": {"site.Gadget": {"counted": True, "news_for": ["category"]}},
    }
    section = factories.category()
    gadget = Gadget.objects.create(category=section)
    counts.view(gadget)
    flush()
    for period in ("today", "all"):
        with CaptureQueriesContext(connection) as queries:
            found = shown(admin_client, period=period, category=f"site.category:{section.pk}")
        assert (found["Views"][0], found["most-viewed"][0][1]) == ("1", "1")
        # Before: 8, because its counts and its row were read again.
        assert len(queries) - OF_THE_ADMIN <= 12


def test_sources_of_an_object_and_of_a_model_are_those_of_the_period(
    admin_client: Client, settings: Settings
) -> None:
    begin_history(Post, kinds=["views:referrer", "views:device"])
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer", "device", "shop.tracking.plan"]}}
    one, two = factories.post(title="One"), factories.post(title="Two")
    for post, source, device in (
        (one, "a.example", "phone"),
        (one, "direct", "phone"),
        (two, "direct", "tablet"),
    ):
        values = (("referrer", source), ("device", device))
        tracker.record(factories.hit(f"site.post:{post.pk}", dimensions=values))
    flush()
    found = shown(admin_client, tab="sources")
    assert found["by-referrer"] == [
        ["Direct", "2", "new", "67%"],
        ["a.example", "1", "new", "33%"],
    ]
    assert found["by-plan"] == []
    for given in ({"from": "2026-01-01", "to": "2026-01-31"}, {"model": "site.article"}):
        assert shown(admin_client, tab="sources", **given)["by-referrer"] == []
    numbers = settings.READTRACK["NUMBERS"]
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {**numbers, "history": False}}
    found = shown(admin_client, tab="sources")
    assert found["by-referrer"] == [["Direct", "2", "67%"], ["a.example", "1", "33%"]]
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": numbers}
    found = shown(admin_client, tab="sources", object=f"site.post:{two.pk}")
    assert found["by-device"] == [["Tablet", "1", "new", "100%"]]
    found = shown(admin_client, object=f"site.post:{two.pk}", period="all")
    assert found["by-device"] == [["Tablet", "1", "100%"]]
    page = admin_client.get(DASHBOARD, {"referrer": "direct", "device": "phone"})
    assert [chip.value for chip in page.context["chips"]] == ["Direct", "Phone"]
    assert "Views with each value by itself" in page.text
    rows = shown(admin_client, referrer="direct")["most-viewed"]
    assert [row[:2] for row in rows] == [["Two", "1"], ["One", "1"]]  # the newer one first
    assert shown(admin_client, referrer="direct", device="phone")["most-viewed"] == [
        ["One", "1", "2"]
    ]
    assert shown(admin_client, referrer="no.example")["most-viewed"] == []
    rows = list(csv.reader(StringIO(exported(admin_client, "by-referrer", "csv"))))
    assert rows == [
        ["Source", "Views", "Before", "Change", "Share"],
        ["direct", "2", "0", "", "66.67"],
        ["a.example", "1", "0", "", "33.33"],
    ]


def test_channels_and_campaigns_have_names_for_people(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["channel", "campaign"]}}
    for channel in sources.CHANNELS:
        values = (("channel", channel), ("campaign", "letter / may"))
        subject = f"site.post:{factories.post().pk}"
        tracker.record(factories.hit(subject, visitor=Visitor(channel), dimensions=values))
    flush()
    found = shown(admin_client, tab="sources")
    assert {row[0] for row in found["by-channel"]} == {
        "Direct",
        "Internal",
        "Search engines",
        "Social networks",
        "Mail",
        "Assistants",
        "Other sites",
    }
    assert found["by-campaign"][0][:2] == ["letter / may", "7"]
    with override("de"):
        found = shown(admin_client, tab="sources")
    assert "Suchmaschinen" in {row[0] for row in found["by-channel"]}
    rows = csv.reader(StringIO(exported(admin_client, "by-channel", "csv")))
    assert {row[0] for row in rows} == {"Channel", *sources.CHANNELS}


def add_gain(days_ago: int, kind: str, *, model: str = "site.post", **gains: int) -> None:
    """Adds what a model gained by value, as flushes of that day would have."""
    hour = buckets.hour_index(buckets.now() - timedelta(days=days_ago))
    with transaction.atomic():
        breakdown_history.add_gains(
            {(model, kind, field): count for field, count in gains.items()}, hour=hour
        )


def test_sources_obey_the_period_beside_the_one_before(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device", "referrer"]}}
    begin_history(Post, Article)
    add_gain(200, "views:referrer", direct=1)
    add_gain(200, "views:device", phone=1000)
    add_gain(10, "views:device", phone=40, tablet=5)
    add_gain(2, "views:device", phone=60, desktop=30)
    add_gain(2, "views:device", model="site.article", phone=10)
    add_gain(2, "views:referrer", direct=7)
    for given, expected in (
        ({}, [["Phone", "70", "+75%", "70%"], ["Desktop", "30", "new", "30%"]]),
        ({"model": "site.article"}, [["Phone", "10", NOT_KNOWN, "100%"]]),
        ({"period": "today"}, []),
        (
            {"period": "28"},
            [
                ["Phone", "110", "new", "76%"],
                ["Desktop", "30", "new", "21%"],
                ["Tablet", "5", "new", "3%"],
            ],
        ),
        (
            {"period": "all"},
            [
                ["Phone", "1,110", "97%"],
                ["Desktop", "30", "3%"],
                ["Tablet", "5", "<1%"],
            ],
        ),
    ):
        found = shown(admin_client, tab="sources", **given)["by-device"]
        assert found == expected, given
    rows = json.loads(exported(admin_client, "by-device", "json"))["rows"]
    assert rows == [["phone", 70, 40, 75, 70.0], ["desktop", 30, 0, None, 30.0]]
    table = admin_client.get(DASHBOARD, {"tab": "sources"}).context["tables"][0]["table"]
    assert (table.caption, table.empty) == (
        "Of all stories in the period; the last minutes may be missing.",
        "None yet. Views of the last hour may be missing.",
    )


def test_a_title_leads_to_the_objects_page_which_has_its_sources_first(
    admin_client: Client, settings: Settings
) -> None:
    begin_history(Post)
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device", "referrer"]}}
    category, old = factories.category(), factories.post()
    post = factories.post(title="Grew", category=category)
    hit = factories.hit(
        subject_of(post), dimensions=(("device", "phone"), ("referrer", "a.example"))
    )
    tracker.record(hit)
    flush()
    add_views(post, 1, 1)  # what grew is of hours that are over
    tracker.refresh_trending()
    counts.view(old)
    given: dict[str, str]
    for given in (
        {},
        {"tab": "growth"},
        {"tab": "reading"},
        {"category": subject_of(category)},
        {"device": "phone"},
    ):
        page = admin_client.get(DASHBOARD, {"period": "28", **given})
        links = {row[0]["text"]: row[2] for one in page.context["tables"] for row in one["rows"]}
        # Before: a filter of the dashboard, on whose next page the tab of sources was to be opened.
        expected = f"{numbers_url(post)}?period=28"
        if "device" in given:
            expected += "&device=phone"
        assert links.get("Grew", "") == ("" if given == {"tab": "reading"} else expected), given
    page = admin_client.get(f"{numbers_url(post)}?period=28&model=site.page")
    tables = page.context["tables"]
    assert [one["table"].name for one in tables] == ["by-referrer", "by-device", "really-read"]
    assert tables[0]["table"].title == "Sources"
    assert [(row[0]["text"], row[2]) for row in tables[0]["rows"]] == [
        ("a.example", "?period=28&referrer=a.example")
    ]
    assert (len(page.context["tabs"]), page.context["chips"]) == (1, [])
    assert 'aria-label="Tables"' not in page.text


IN_SECTION = {"category": "site.category:1"}


def test_the_list_of_what_grew_most_has_the_file_of_each_objects_sources(
    admin_client: Client, settings: Settings
) -> None:
    begin_history(Post, kinds=["views:device", "views:referrer"])
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device", "referrer"]}}
    post = factories.post(title="Grew")
    tracker.record(
        factories.hit(subject_of(post), dimensions=(("device", "phone"), ("referrer", "a.example")))
    )
    flush()
    add_views(post, 1, 1)  # what grew is of hours that are over
    for dimensions, lines in (
        (["device", "referrer"], ['"a.example",1,0,"",100.0']),
        (["device"], ['"phone",1,0,"",100.0']),
        ([], []),
    ):
        settings.READTRACK = {"NUMBERS": {"dimensions": dimensions}}
        [table] = admin_client.get(DASHBOARD, {"tab": "growth"}).context["tables"]
        files = [head["file"] for head, *_ in table["rows"] if "file" in head]
        answers: list[Any] = [admin_client.get(file) for file in files]
        assert [
            b"".join(one.streaming_content).decode().splitlines()[1] for one in answers
        ] == lines


@pytest.mark.parametrize(
    ("period", "filters"),
    some(
        [("today", {}), ("90", {"model": "site.post"}), ("7", IN_SECTION), ("all", IN_SECTION)],
        deep=product(["today", "7", "90", "all"], [{}, {"model": "site.post"}, IN_SECTION]),
    ),
)
def test_a_file_has_the_rows_of_the_page_small_lines_too(
    period: str, filters: dict[str, str], admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer"]}}
    category = factories.category(pk=1)
    posts = [factories.post(title=f"Story {number}", category=category) for number in (1, 2, 3)]
    for day in (120, 60, 9, 3, 2, 0):  # one after the other, because views of a model only rise
        for number, post in enumerate(posts, start=1):
            add_views(post, day, number + day % 4, visitors=1, reads=1)
    for post in posts:
        tracker.record(factories.hit(subject_of(post), dimensions=(("referrer", "a.example"),)))
    flush()
    compared = set()
    for tab in TABS:
        page = opened(admin_client, tab=tab, period=period, **filters)
        for one in page.context["tables"]:
            table = one["table"]
            rows = [[str(row.values[0]), *row.values[1:]] for row in table.rows]
            file = json.loads(exported(admin_client, table.name, "json", period=period, **filters))
            width = len(table.columns)  # the columns about objects come behind
            assert [row[:width] for row in file["rows"]] == [
                [pytest.approx(value, abs=0.01) for value in row] for row in rows
            ], table.name
            compared.add(table.name)
    assert compared >= {"most-viewed", "really-read", "by-referrer", "sections", "not-counted"}


def test_each_question_is_answered_by_a_file_two_clicks_away(
    admin_client: Client, settings: Settings
) -> None:
    begin_history(Post)
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer"]}}
    post = factories.post(category=factories.category())
    add_views(post, 2, 5, reads=3)
    tracker.skip(["a"], "bot", is_alone=False, agent="GPTBot/1.0", at=buckets.now() - buckets.DAY)
    skip_buffer.send()
    flush()
    found = set[str]()
    for _, link, _ in admin_client.get(DASHBOARD).context["tabs"]:
        found |= {
            *re.findall(
                r'href="([^"]+format=csv)" download',
                html.unescape(admin_client.get(DASHBOARD + link).text),
            )
        }
    # Before: neither people now nor, but in three clicks, the sources of what grew most.
    assert f"{numbers_url(post)}?period=7&table=by-referrer&format=csv" in found
    assert ">Sources: CSV</a>" in admin_client.get(DASHBOARD, {"tab": "growth"}).text
    names = {"grew-most", "really-read", "by-referrer", "sections", "robots", "now"}
    assert names <= {link.partition("table=")[2].removesuffix("&format=csv") for link in found}
    [row] = csv.DictReader(StringIO(exported(admin_client, "robots", "csv")))
    assert (row["Robot"], row["Hits"], row["Yesterday"]) == ("GPTBot", "1", "1")


def test_a_click_on_a_source_or_a_category_leads_to_what_it_filters_and_to_nothing_else(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"]}}
    post = factories.post(category=factories.category(name="Sport"))
    tracker.record(factories.hit(subject_of(post), dimensions=(("device", "phone"),)))
    flush()
    for tab, name, expected in (
        ("sources", "Phone", ["most-viewed", "trending"]),
        ("sections", "Sport", ["most-viewed", "trending"]),
    ):
        [table] = admin_client.get(DASHBOARD, {"tab": tab}).context["tables"]
        [link] = [row[2] for row in table["rows"] if row[0]["text"] == name]
        page = admin_client.get(DASHBOARD + link)
        # Before: the same tab, whose numbers the filter did not change.
        assert [one["table"].name for one in page.context["tables"]][:2] == expected
        assert page.context["chart"].title == "Views over time"


def test_no_period_can_be_chosen_for_what_is_of_now(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"]}}
    shows = {
        tab: 'aria-label="Period"' in admin_client.get(DASHBOARD, {"tab": tab}).text for tab in TABS
    }
    assert [tab for tab in TABS if not shows[tab]] == ["sections"]


def test_the_periods_of_what_was_not_counted_are_those_that_are_kept(admin_client: Client) -> None:
    now = buckets.now()
    for hours, times in ((0, 1), (24, 2)):
        for _ in range(times):
            at = now - hours * buckets.HOUR
            tracker.skip(["a"], "bot", is_alone=False, agent="GPTBot/1.0", at=at)
    skip_buffer.send()
    hits = {}
    for given in ({}, {"period": "28"}, {"period": "all"}, {"period": "yesterday"}):
        page = opened(admin_client, tab="refused", **given)
        context = page.context
        assert [str(choice.label) for choice in context["periods"]] == [
            "Today",
            "Yesterday",
            "The last 48 hours",
        ]
        assert (context["comparisons"], 'type="date"' in page.text) == ([], False)
        [chosen] = [choice for choice in context["periods"] if choice.is_chosen]
        assert str(context["period"]) == str(chosen.label)
        assert bool(context["span"]) == (given == {"period": "yesterday"})
        for choice in context["periods"]:
            page = admin_client.get(DASHBOARD + choice.address)
            hits[str(choice.label)] = told(page.context)["robots"][0][1]
        # The tab leads back to the period of the other tabs.
        assert chosen.address.startswith(f"?period={given.get('period', '7')}")
    assert hits == {"Today": "1", "Yesterday": "2", "The last 48 hours": "3"}


def test_on_paper_each_tab_with_a_period_says_which_it_is(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"]}}
    add_views(factories.post(), 9, 3)
    days = {"from": "2026-01-02", "to": "2026-01-05"}
    for tab in TABS:
        page = opened(admin_client, tab=tab, **days)
        paper = re.findall(r'readtrack-on-paper">(.*?)</p>', page.text)
        told_where = [text for text in paper if "Jan. 2, 2026 to Jan. 5, 2026" in text]
        assert len(told_where) == (tab != "sections"), tab


@pytest.mark.parametrize("has_funnels", [True, False])
def test_the_funnel_of_a_model_obeys_the_period_too(
    admin_client: Client, settings: Settings, *, has_funnels: bool
) -> None:
    begin_history(Post, kinds=["funnel"])
    settings.READTRACK = {"NUMBERS": {"funnels": has_funnels}}
    post = factories.post()
    for days_ago, views, clicks in ((10, 40, 10), (2, 60, 30)):
        add_views(post, days_ago, views)
        add_gain(days_ago, "funnel", view=views, click=clicks)
    for given, expected in (
        (
            {},
            [
                ["Viewed", "60", "+50%", "100%", "100%"],
                ["Clicked", "30", "+200%", "50%", "50%"],
            ],
        ),
        ({"period": "all"}, [["Viewed", "100", "100%", "100%"], ["Clicked", "40", "40%", "40%"]]),
        ({"period": "today"}, []),
    ):
        assert shown(admin_client, tab="reading", **given).get("funnel", [])[:2] == expected, given


def test_a_value_that_was_flushed_is_in_the_hour_of_its_flush_and_no_other(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"]}}
    post = factories.post()
    for times in (1, 2):
        for _ in range(times):
            tracker.record(factories.hit(f"site.post:{post.pk}", dimensions=(("device", "phone"),)))
        flush(only_changed=times == 2)
    assert shown(admin_client, tab="sources")["by-device"][0][:2] == ["Phone", "3"]
    tracker.reset_views(post)
    post.delete()
    flush()
    assert shown(admin_client, tab="sources")["by-device"][0][:2] == ["Phone", "3"]


def test_without_redis_sources_are_those_that_are_stored(
    admin_client: Client, settings: Settings, start_redis: Start
) -> None:
    valkey = start_redis()
    begin_history(Post, kinds=["views:device"])
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"]}}
    post = factories.post()
    for _ in range(2):
        tracker.record(factories.hit(f"site.post:{post.pk}", dimensions=(("device", "phone"),)))
    flush()
    valkey.stop()
    assert shown(admin_client, tab="sources")["by-device"] == [["Phone", "2", "new", "100%"]]


def test_really_read_has_reads_their_share_and_the_median_time(
    admin_client: Client, redis: Any
) -> None:
    read, opened, other = (
        factories.post(title="Read"),
        factories.post(title="Opened"),
        factories.post(title="Other"),
    )
    counts.view(*[read] * 4, *[opened] * 3, other)
    for post, fields in (
        (read, {"reads": 2, "engaged": 3, "10": 3, "30": 1}),
        (opened, {"engaged": 2, "10": 1}),
    ):
        redis.hset(f"reading:site.post:{post.pk}", mapping=fields)
    flush()
    found = shown(admin_client, tab="reading")["really-read"]
    assert [row[:2] + row[3:5] for row in found] == [
        ["Read", "2", "4", "50%"],
        ["Opened", "0", "3", "0%"],
    ]
    assert all(row[5].endswith(" s") for row in found)


def test_a_period_in_which_nothing_was_opened_has_nothing_that_was_really_read(
    admin_client: Client, redis: Any
) -> None:
    post = factories.post()
    counts.view(post)
    redis.hset(f"reading:site.post:{post.pk}", mapping={"reads": 1, "engaged": 1, "10": 1})
    flush()
    # Before: rows of zeros, because the time that people spent is stored without a day.
    past = opened(admin_client, tab="reading", **{"from": "2020-01-01", "to": "2020-01-05"})
    assert (past.context["tables"][0]["rows"], "No text was read in this period." in past.text) == (
        [],
        True,
    )
    one = shown(admin_client, object=subject_of(post), period="yesterday")["really-read"]
    assert [row[1:2] + row[3:4] for row in one] == [["0", "0"]]


def test_the_funnel_has_its_rates(admin_client: Client, settings: Settings) -> None:
    for has_funnels in (True, False):
        settings.READTRACK = {"NUMBERS": {"funnels": has_funnels}}
        post = factories.post()
        counts.view(*[post] * 4)
        hit = factories.hit()._replace(steps=((f"site.post:{post.pk}", "click"),))
        tracker.record(hit)
        flush()
        found = shown(admin_client, tab="reading", object=f"site.post:{post.pk}")["funnel"]
        first = 5 if has_funnels else 4
        assert [row[:2] for row in found] == [
            ["Viewed", str(first)],
            ["Clicked", "1"],
            ["Converted", "0"],
        ]
        rate = "20%" if has_funnels else "25%"
        assert found[1][2:] == [NOT_KNOWN, rate, rate]


def test_a_site_that_uses_no_funnel_has_no_empty_table_of_it(
    admin_client: Client, settings: Settings
) -> None:
    counts.view(factories.post())
    for given in ({}, {"NUMBERS": {"funnel": ()}}, {"NUMBERS": {"funnel": (), "funnels": True}}):
        settings.READTRACK = given
        assert "funnel" not in shown(admin_client, tab="reading", model="site.post")
    assert admin_client.get(DASHBOARD, {"table": "funnel", "format": "csv"}).status_code == 404
    settings.READTRACK = {"NUMBERS": {"funnels": True}}
    assert shown(admin_client, tab="reading", model="site.post")["funnel"] == []


def test_captions_of_one_object_speak_of_no_others(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"funnels": True, "dimensions": ["device"]}}
    post = factories.post()
    found = [
        one["table"] for one in opened(admin_client, object=subject_of(post)).context["tables"]
    ]
    assert [one.title for one in found] == [
        "Devices",
        "Really read",
        "After reading",
    ]
    assert not any("objects" in one.caption for one in found)


def test_categories_are_ordered_by_the_accounts_that_they_are_unread_for(
    admin_client: Client, start_redis: Start
) -> None:
    valkey = start_redis()
    read, _ = factories.category(name="Read"), factories.category(name="Unread")
    users = [factories.user() for _ in range(3)]
    for user in users:
        tracker.mark_read(user, [read])
    flush()
    expected = [["Unread", "0", "4", "100%"], ["Read", "3", "1", "25%"]]
    found = [
        row
        for row in shown(admin_client, tab="sections")["sections"]
        if row[0] in {"Read", "Unread"}
    ]
    assert found == expected
    valkey.stop()
    found = [
        row
        for row in shown(admin_client, tab="sections")["sections"]
        if row[0] in {"Read", "Unread"}
    ]
    assert found == expected


@pytest.mark.parametrize("is_flushed", some([True], deep=[False]))
def test_notes_are_on_the_chart_below_it_and_in_its_table(
    is_flushed: bool, admin_client: Client
) -> None:
    if is_flushed:
        flush()
    for day, words in (
        (8, "Too late"),
        (7, "Redesign"),
        (5, "Newsletter <sent>"),
        (5, "Sale"),
        (1, "First"),
    ):
        Note.objects.create(day=date(2026, 3, day), text=words)
    Note.objects.create(day=date(2026, 2, 28), text="Too early")
    week = {"from": "2026-03-01", "to": "2026-03-07"}
    page = admin_client.get(DASHBOARD, week).text
    assert re.findall(r"<li><bdi>(.*?)</bdi></li>", page) == [
        *("First", "Newsletter &lt;sent&gt;", "Sale", "Redesign")
    ]
    assert page.count('<i class="readtrack-note"></i>') == 4 + 1  # the legend
    assert "<td>Newsletter &lt;sent&gt;; Sale</td>" in page
    assert "Too" not in content(page)
    hours, weeks = (
        {"from": "2026-03-05", "to": "2026-03-05"},
        {"from": "2025-03-01", "to": "2026-03-05"},
    )
    for given, points, expected in ((week, 7, 4), (hours, 24, 0), (weeks, 54, 53)):
        rows = list(csv.DictReader(StringIO(exported(admin_client, "over-time", "csv", **given))))
        assert len(rows) == points
        assert [place for place, row in enumerate(rows) if "Sale" in row["Notes"]] == [expected]
        # Before: the first day of the week, or the first hour of the day.
        marks = opened(admin_client, **given).context["chart"].marks
        assert ["Newsletter <sent>", "Sale"] in [
            [note.text for note in mark.notes][-2:] for mark in marks
        ]


def test_tables_of_the_whole_site_say_that_filters_do_not_change_them(admin_client: Client) -> None:
    category, words = factories.category(name="News"), "Of the whole site, whatever the filters."
    given: dict[str, str]
    for given in ({}, {"category": subject_of(category)}, {"author": str(factories.user().pk)}):
        for tab, expected in (
            ("refused", True),
            ("sections", bool(given)),
        ):  # before: all categories below "News"
            captions = [
                one["table"].caption
                for one in opened(admin_client, tab=tab, **given).context["tables"]
            ]
            assert [words in caption for caption in captions] == [expected] * len(captions)


def test_all_time_has_no_column_and_no_line_of_a_period_before(admin_client: Client) -> None:
    for days_ago in (20, 10):
        add_views(factories.post(), days_ago, 1)
    counts.view(factories.post())
    for period, expected in (
        ("7", 1),
        ("all", 0),
    ):  # before: in the legend, and in the table with dashes only
        page = opened(admin_client, period=period)
        assert page.text.count("Views (The period before)</th>") == expected
        assert page.text.count("The period before</li>") == expected
        assert {len(values) for _, values in page.context["chart"].rows} == {
            len(page.context["chart"].columns) - 1
        }


def test_in_a_chart_of_hours_each_day_has_a_label_however_short_it_is(admin_client: Client) -> None:
    def labels(moment: str) -> list[list[tuple[str, int]]]:
        with freeze_time(moment):
            chart = opened(admin_client, period="7", by="hour").context["chart"]
        return [[(label.text, label.twelfths) for label in mark.labels] for mark in chart.marks]

    names = ["Thu 26", "Fri 27", "Sat 28", "Sun 1", "Mon 2"]
    days = [[(name, 12)] for name in names]
    # A finger hits only a mark of some hours. Before: today had no label in the morning.
    assert labels("2026-03-04T06:10") == [*days, [("Tue 3", 12), ("Today", 4)]]
    assert labels("2026-03-04T20:10") == [*days, [("Tue 3", 12)], [("Today", 12)]]


def test_the_chart_and_its_table_write_days_and_times_as_the_rest_of_the_page(
    admin_client: Client,
) -> None:
    # Before: 1 March, 00:00 and 13:00 beside March 1, 2026 and 1 p.m.
    week = opened(admin_client, **{"from": "2026-03-01", "to": "2026-03-07"}).context
    assert [week["chart"].rows[place][0] for place in (0, -1)] == ["March 1, 2026", "March 7, 2026"]
    assert week["chart"].marks[-1].labels[0].text == "Sat 7"
    day = opened(admin_client, **{"from": "2026-03-05", "to": "2026-03-05"}).context
    assert [day["chart"].rows[hour][0] for hour in (0, 13)] == ["midnight", "1 p.m."]
    long = opened(admin_client, **{"from": "2025-03-03", "to": "2026-03-07"}).context["chart"].rows
    assert len({start for start, _ in long}) == len(long)


@pytest.mark.parametrize(
    ("language", "expected"),
    [("en", "March 5"), ("en-gb", "5 March"), ("de", "5. März"), ("ja", "3月5日")],
)
def test_a_day_on_the_axis_is_written_in_the_order_of_the_language(
    language: str, expected: str
) -> None:
    with override(language):
        assert (
            date_format(date(2026, 3, 5), str(FORMATS["day"])) == expected
        )  # before: 5 March in en


WITHOUT_SKETCHES = {"UNIQUE": "none"}


@pytest.mark.parametrize(
    ("options", "partitions"),
    some([({}, 4), (WITHOUT_SKETCHES, 1)], deep=product([{}, WITHOUT_SKETCHES], [1, 4])),
)
def test_people_now_are_the_different_visitors_of_the_last_five_minutes(
    options: dict[str, Any],
    partitions: int,
    admin_client: Client,
    wire: Wire,
    redis: Any,
    settings: Settings,
) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": partitions}, "RATE": (0, 10), **options}
    posts, product, now = (
        [factories.post() for _ in range(5)],
        Product.objects.create(name="x"),
        buckets.now(),
    )
    ann, bob, eve, robot = map(Visitor, ("ann", "bob", "eve", "robot"))
    reload = Visitor("cookie that is not kept", fallback_id="ann", new_cookie="x")
    mark_robots([robot.id])
    for obj, visitor, minutes in (
        *((post, ann, 3) for post in posts),
        *((post, bob, 7) for post in posts),
        *((obj, eve, 8) for obj in (posts[0], product)),
        *((posts[0], visitor, 0) for visitor in (ann, bob, robot, reload)),
    ):
        tracker.record(
            factories.hit(subject_of(obj), visitor=visitor, at=now - minutes * buckets.MINUTE)
        )
    assert sum(reports.views([*posts, product]).values()) == 12
    tracker.record(factories.hit(subject_of(product), visitor=ann))
    tracker.refresh_trending()
    for given, people in (
        ({}, "2"),
        ({"model": "site.post"}, "2"),
        ({"model": "site.product"}, "1"),
    ):
        with wire.counted() as trips:
            page = admin_client.get(DASHBOARD, given)
        assert (page.context["recent"], "People now" in page.text, trips[0] <= 2) == (
            people,
            True,
            True,
        )
    page = opened(admin_client, object=subject_of(posts[0]))
    assert (page.context["recent"], ">view in the last five minutes<" in page.text) == ("1", True)
    sketches = redis.keys("visitors:minute:*")
    assert sketches
    assert all(0 < redis.ttl(name) <= 360 for name in sketches)


def test_how_many_people_there_are_is_asked_for_alone(admin_client: Client, wire: Wire) -> None:
    post = factories.post()
    counts.view(post)
    for path, words, caption in (
        (DASHBOARD, "People now", "person now"),
        (numbers_url(post), "Now", "view in the last five minutes"),
    ):
        page = html.unescape(admin_client.get(path).text)
        [link] = {*re.findall(r'data-url="([^"]+)"', page)}  # one for all places of the number
        with wire.counted() as trips, CaptureQueriesContext(connection) as queries:
            answer: Any = admin_client.get(path + link)
            found = json.loads(b"".join(answer.streaming_content))
        assert (found["headings"], found["rows"], trips[0]) == ([words], [[1]], 1)
        assert found["caption"] == caption
        assert len(queries) - OF_THE_ADMIN <= 2 * (words == "Now")


def test_without_redis_nobody_knows_how_many_people_there_are(
    admin_client: Client, start_redis: Start
) -> None:
    valkey, post = start_redis(), factories.post()
    counts.view(post)
    given: dict[str, str]
    for given in ({}, {"object": subject_of(post)}):
        assert opened(admin_client, **given).context["recent"] == "1"
    valkey.stop()
    assert admin_client.get(DASHBOARD).context["recent"] == NOT_KNOWN
    assert json.loads(exported(admin_client, "now", "json"))["rows"] == [[None]]


@pytest.mark.parametrize(
    ("since", "filtered"), some([(6, False), (7, True)], deep=product([6, 7], [False, True]))
)
def test_what_grew_most_is_found_behind_more_that_are_viewed_more(
    since: int, *, filtered: bool, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_history(Post)
    monkeypatch.setattr(objects, "CANDIDATES", 3)
    category = factories.category()
    steady = [factories.post(title=f"steady {number}", category=category) for number in range(5)]
    fell, rose, new = (
        factories.post(title=title, category=category) for title in ("fell", "rose", "new")
    )
    for posts, before, now in (
        (steady, 1000, 1001),
        ([fell], 3000, 900),
        ([rose], 100, 150),
        ([new], 0, 40),
    ):
        for post in posts:
            if before:
                history.store(
                    {subject_of(post): RowCounts(0, 0)},
                    hour=buckets.hour_index(buckets.now()) - 30 * 24,
                )
                add_views(post, 10, before)
            add_views(post, 2, now)
    flush()
    today = buckets.now()
    period = {
        "from": f"{today - timedelta(days=since):%Y-%m-%d}",
        "to": f"{today:%Y-%m-%d}",
    }  # with a list, or without
    if since == 7:
        period["to"] = f"{today - buckets.DAY:%Y-%m-%d}"
    given = {
        "tab": "growth",
        **period,
        **({"category": subject_of(category)} if filtered else {"model": "site.post"}),
    }
    found = shown(admin_client, **given)["grew-most"]
    assert found[:2] == [
        ["rose", "50", "150", "+50%", ""],
        ["new", "40", "40", "new", ""],
    ]
    rows = list(csv.DictReader(StringIO(exported(admin_client, "grew-most", "csv", **given))))
    assert [(row["Title"], row["More views"]) for row in rows[:2]] == [
        ("rose", "50"),
        ("new", "40"),
    ]
    assert {row["More views"] for row in rows[2:]} == {"1"}
    caption = admin_client.get(DASHBOARD, given).context["tables"][0]["table"].caption
    assert ("Among the 1,000 stories with the most views since " in caption) is not filtered
    assert "Without what was published since " in caption


def test_what_grew_most_is_found_behind_more_that_is_new() -> None:
    begin_history(Article)
    for number in range(8):
        published = buckets.now() - timedelta(days=3)
        article = Article.objects.create(title=f"new {number}", published_at=published)
        add_views(article, 2, 500 + number)
    rose = Article.objects.create(title="rose", published_at=buckets.now() - timedelta(days=90))
    add_views(rose, 10, 100)
    add_views(rose, 2, 150)
    flush()
    scope = Scope.parse({"period": "7", "model": "site.article"})
    data = loading.load(scope, ["grew-most"], row_limit=4, candidates=4)
    assert [entry.subject for entry in tables.grown(data)] == [subject_of(rose)]


@pytest.mark.parametrize(("period", "days_ago"), [("90", 50), ("", 120), ("all", 120)])
def test_what_was_viewed_most_is_shown_though_more_were_viewed_of_late(
    period: str, days_ago: int, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "CANDIDATES", 3)
    for title, days, views in (
        ("best", days_ago, 1000),
        *((f"late {number}", 1, 400) for number in range(4)),
    ):
        post = factories.post(title=title)
        add_views(post, days, views)
        Post.objects.filter(pk=post.pk).update(view_count=views)
    flush()
    since, until = (f"{buckets.now() - timedelta(days=days):%Y-%m-%d}" for days in (200, 0))
    given = {"period": period} if period else {"from": since, "to": until}
    # Before: "late 0" to "late 2", which are in several lists.
    assert shown(admin_client, **given)["most-viewed"][0][:2] == ["best", "1,000"]


def test_reads_of_all_time_are_those_of_the_most_viewed_which_the_table_says(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "CANDIDATES", 2)
    for views, reads in ((30, 1), (20, 1), (10, 9)):
        post = factories.post()
        add_views(post, 2, views, reads=reads)
        Post.objects.filter(pk=post.pk).update(view_count=views)
    flush()
    captions = [
        admin_client.get(DASHBOARD, {"period": "all", "tab": tab})
        .context["tables"][0]["table"]
        .caption
        for tab in ("reading", "numbers")
    ]
    words = "Among the stories with the most views of all time."
    assert [words in caption for caption in captions] == [
        True,
        False,
    ]  # before: in neither, and the best is left out


def test_no_day_is_told_of_a_list_of_all_time(admin_client: Client) -> None:
    begin_history(Post)
    add_views(factories.post(), 2, 5)
    flush()
    since, until = (f"{buckets.now() - timedelta(days=days):%Y-%m-%d}" for days in (120, 0))
    page = admin_client.get(DASHBOARD, {"tab": "growth", "from": since, "to": until})
    table = page.context["tables"][0]["table"]
    first_day_before = local_time.today() - timedelta(days=241)
    said = f"Without what was published since {date_format(first_day_before)}:"
    assert table.values("growth") == [5]
    assert table.caption.startswith(said)  # before: "Of what was viewed since March 7, 1937"


def test_what_is_compared_with_nothing_has_not_grown(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"]}}
    post = factories.post()
    counts.view(post)
    page = admin_client.get(DASHBOARD, {"tab": "growth", "from": "2020-01-01", "to": "2020-01-02"})
    assert "Nothing was counted so early, so there is nothing to compare with." in page.text
    begin_history(Post)
    page = admin_client.get(DASHBOARD, {"tab": "growth", "from": "2020-01-01", "to": "2020-01-02"})
    assert "Nothing was viewed more often than before." in page.text
    given: dict[str, str]
    for given in ({"period": "all"}, {"object": subject_of(post)}):
        assert "Grew most" not in opened(admin_client, tab="growth", **given).text


@pytest.mark.parametrize(
    ("days_ago", "few"), some([(0, 1000), (20, 4)], deep=product([0, 20], [4, 1000]))
)
def test_what_was_viewed_in_the_period_is_among_the_rows_of_an_author_and_of_a_model(
    days_ago: int, few: int, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_counts, "FEW", few)
    monkeypatch.setattr(objects, "MOST", 3)
    monkeypatch.setattr(objects, "CANDIDATES", 3)
    author = factories.user()
    for views in (1000, 1001, 1002, 1003):
        Article.objects.create(title="old", author=author, view_count=views)
    new = Article.objects.create(title="new", author=author, view_count=500)
    Post.objects.bulk_create([Post(title="other", view_count=5000) for _ in range(3)])
    add_views(new, days_ago, 500)
    flush()
    day = f"{buckets.now() - timedelta(days=days_ago):%Y-%m-%d}"
    of_models: list[dict[str, str]] = [
        {"model": "site.article"},
        {},
    ]  # whose lists are of hours that are over
    for filters in ({"author": str(author.pk)}, *(of_models if days_ago else ())):
        found = shown(admin_client, **{"from": day, "to": day}, **filters)
        assert (found["Views"][0], [row[:2] for row in found["most-viewed"]]) == (
            "500",
            [[str(new), "500"]],
        )


def test_the_best_of_today_are_those_of_the_filtered_rows_however_many_others_are_viewed_more(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "MOST", 2)
    monkeypatch.setattr(popular, "LISTED", 1)
    author, other = factories.user(), factories.user()
    for views in (1000, 1001):
        Article.objects.create(title="old", author=author, view_count=views)
    new = Article.objects.create(title="new", author=author, view_count=5)
    add_views(new, 0, 5)
    if connection.vendor == "postgresql":  # others read the history of all objects
        add_views(Article.objects.create(author=other, view_count=50), 0, 50, visitors=50)
    flush()
    found = shown(admin_client, period="today", author=str(author.pk))
    assert [row[:2] for row in found["most-viewed"]] == [[str(new), "5"]]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="reads the history of all objects")
def test_a_model_with_few_rows_in_a_category_lets_nobody_read_the_history_of_all_objects(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "MOST", 2)
    category = factories.category()
    Page.objects.create(slug="about", section=category)  # whose key is a text
    new, _ = (Article.objects.create(title="new", category=category) for _ in range(2))
    add_views(new, 0, 5)
    flush()
    with CaptureQueriesContext(connection) as queries:
        found = shown(admin_client, period="today", category=f"site.category:{category.pk}")
    assert [row[:2] for row in found["most-viewed"]] == [[str(new), "5"]]
    assert not any("subject NOT LIKE" in query["sql"] for query in queries)  # of all objects


def test_it_is_said_where_only_the_most_viewed_of_all_time_were_looked_at(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def captions(**given: str) -> list[bool]:
        tables = [
            admin_client.get(DASHBOARD, {**given, "tab": tab}).context["tables"][0]
            for tab in ("numbers", "reading")
        ]
        return ["most views of all time" in one["table"].caption for one in tables]

    post = factories.post(category=factories.category())
    counts.view(post)
    flush()
    long = {"from": "2020-01-01", "to": "2020-12-31"}
    category = f"site.category:{post.category_id}"
    given = ({"period": "7"}, {"period": "all"}, {"category": category}, long)
    assert [captions(**one) for one in given] == [[False] * 2] * 4
    monkeypatch.setattr(objects, "MOST", 1)
    monkeypatch.setattr(objects, "CANDIDATES", 1)
    # Of all time the most viewed are exact, and what was read is among them.
    assert [captions(**one) for one in given[1:]] == [[False, True], [True] * 2, [True] * 2]


def test_all_time_has_what_was_counted_before_history(admin_client: Client) -> None:
    post = Post.objects.create(title="Old", view_count=10_000)
    given = {"period": "all", "object": f"site.post:{post.pk}"}
    for views in (10_000, 10_001):
        found = shown(admin_client, **given)
        assert found["Views"][0] == f"{views:,}"
        counts.view(post)
    history.begin({"site.post": RowCounts(500, 0)})
    add_views(post, 1, 7)
    history.store({"site.post": RowCounts(507, 0)}, hour=buckets.hour_index(buckets.now()))
    given = {"period": "all", "model": "site.post"}
    rows = list(csv.DictReader(StringIO(exported(admin_client, "over-time", "csv", **given))))
    drawn = sum(int(row["Views"]) for row in rows)
    assert 7 <= drawn < 500
    assert shown(admin_client, **given)["Views"][0] == str(500 + drawn)


def test_what_came_before_history_is_in_no_period(admin_client: Client) -> None:
    history.begin({"site.post": RowCounts(500, 0)})
    post = factories.post()
    add_views(post, 1, 7)
    found = shown(admin_client, **{"from": "1990-01-01", "to": f"{buckets.now():%Y-%m-%d}"})
    assert found["Views"] == ("7", NOT_KNOWN)  # nothing was counted in the period before


def test_it_is_not_said_how_many_accounts_have_not_read_where_visitors_read(
    admin_client: Client, settings: Settings
) -> None:
    section = factories.category(name="Sport")
    reader = factories.user()
    tracker.mark_read(reader, [section])
    assert ["Sport", "1", "1", "50%"] in shown(admin_client, tab="sections")["sections"]
    others = [factories.user() for _ in range(2)]
    for user in others:
        tracker.mark_read(user, [section])
    type(reader).objects.filter(pk__in=[user.pk for user in others]).update(is_active=False)
    assert ["Sport", "3", NOT_KNOWN, NOT_KNOWN] in shown(admin_client, tab="sections")["sections"]
    settings.READTRACK = {"DOTS": {"anonymous": 1_000_000}}
    assert ["Sport", "0", NOT_KNOWN, NOT_KNOWN] in shown(admin_client, tab="sections")["sections"]


def test_breakdowns_are_of_a_bounded_number_of_objects(
    admin_client: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_history(Post, Article, kinds=["views:device"])
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"]}}
    monkeypatch.setattr(objects, "MOST", 1)
    section = factories.category()
    for obj in (
        factories.post(category=section),
        Article.objects.create(title="a", category=section),
    ):
        name = f"{obj._meta.label_lower}:{obj.pk}"
        tracker.record(factories.hit(name, dimensions=(("device", "phone"),)))
    flush()
    given = {"category": f"site.category:{section.pk}"}
    assert shown(admin_client, **given)["Views"][0] == "2"
    [row] = shown(admin_client, tab="sources", **given)["by-device"]
    assert row == ["Phone", "1", "new", "100%"]


def test_numbers_that_full_flushes_add_up_say_so_and_today_is_not_compared_by_them(
    admin_client: Client,
) -> None:
    post = factories.post()
    add_views(factories.post(), 20, 1)
    counts.view(post)
    run = flush()
    run.flushed_until -= 2 * 60 * 1_000_000
    run.save()
    counts.view(post)
    flush(only_changed=True)
    now = timezone.localtime()
    # It adds up nothing of whole models, because the first share does.
    FlushRun.objects.create(
        share="2/8", started=now, ended=now, flushed_until=run.flushed_until + 60 * 1_000_000
    )
    until = timezone.localtime(buckets.time_of(run.flushed_until))
    words = date_format(until, "TIME_FORMAT" if until.date() == now.date() else "DATETIME_FORMAT")
    today = admin_client.get(DASHBOARD, {"period": "today"})
    assert today.text.count(f">as of {words}<") == 1
    assert [figure.before for figure in today.context["figures"][1:]] == [None, None]
    week = admin_client.get(DASHBOARD).context["figures"]
    assert [(figure.before, bool(figure.as_of)) for figure in week] == [
        ("0", False),
        ("0", False),  # visitors
        ("0", True),  # reads, which so few views may well not have
    ]
    of_object = opened(admin_client, object=f"site.post:{post.pk}")
    assert "as of" not in content(of_object.text)


@pytest.mark.parametrize(
    ("total", "change", "trend"),
    [
        (200, "\N{MINUS SIGN}33%", "down"),
        (299, "0%", ""),
        (300, "0%", ""),
        (301, "0%", ""),
        (400, "+33%", "up"),
    ],
)
def test_a_total_that_has_not_changed_has_no_trend(total: int, change: str, trend: str) -> None:
    compared = change_of(total, 300, is_whole=True)
    assert (compared["change"], compared["trend"]) == (change, trend)


def test_a_change_of_more_than_a_thousand_per_cent_is_a_factor(admin_client: Client) -> None:
    post = factories.post()
    for days_ago, views in ((20, 1), (10, 2), (2, 24)):
        add_views(post, days_ago, views)
    flush()
    page = admin_client.get(DASHBOARD)
    factor = "\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}12"
    assert page.context["figures"][0].change == factor
    assert told(page.context)["most-viewed"][0][1:3] == ["24", factor]
    [row] = json.loads(exported(admin_client, "most-viewed", "json"))["rows"]
    assert row[1:4] == [24, 2, 1100]  # per cent in files, where they are computed with
    assert [tables.text(value, "change") for value in (1000, 1001)] == [
        "+1,000%",
        factor[:-2] + "11",
    ]


@pytest.mark.parametrize(
    ("asked", "until"),
    [
        ({"period": "7"}, "until yesterday"),
        ({"period": "last-week"}, ""),
        ({"period": "7", "compare": "none"}, ""),
    ],
)
def test_a_total_says_until_when_its_change_goes(
    asked: dict[str, str], until: str, admin_client: Client
) -> None:
    post = factories.post()
    for days_ago in range(28):
        add_views(post, 27 - days_ago, days_ago + 1)
    flush()
    page = admin_client.get(DASHBOARD, asked)
    views = page.context["figures"][0]
    assert bool(views.change) is (asked.get("compare") != "none")
    assert views.until == until
    assert ('<span class="readtrack-until">until yesterday</span>' in page.text) is bool(until)


def test_a_period_is_not_compared_with_one_in_which_history_began(admin_client: Client) -> None:
    post = factories.post()
    add_views(post, 10, 40)
    add_views(post, 2, 60)
    page = admin_client.get(DASHBOARD)
    assert (page.context["figures"][0].before, page.context["figures"][0].change) == (NOT_KNOWN, "")
    assert "The period before</li>" not in page.text
    assert page.context["chart"].drawn.before == []
    given = {"period": "yesterday", "compare": "before"}
    [views, *_others] = admin_client.get(DASHBOARD, given).context["figures"]
    assert views.before == "60"  # history is older than the day before yesterday


def test_a_card_chooses_the_number_that_the_chart_shows(admin_client: Client) -> None:
    post = factories.post()
    add_views(post, 20, 1)
    add_views(post, 10, 40, visitors=20, reads=7)
    add_views(post, 2, 60, visitors=30, reads=15)
    page = opened(admin_client, period="28")
    titles = []
    for figure in page.context["figures"]:
        page = admin_client.get(DASHBOARD + figure.address)
        titles.append(page.context["chart"].title)
        [chosen] = [one for one in page.context["figures"] if one.is_chosen]
        assert (chosen.label, figure.value) == (figure.label, chosen.value)
        # The card, the period, the comparison, the interval and the groups.
        assert content(page.text).count('aria-current="true"') == 5
        assert "period=28" in figure.address
    assert len(titles) == len(SERIES) - 1  # no view was seen: the posts have no script
    assert titles == ["Views over time", "Visitors", "Reads"]
    assert sum(page.context["chart"].drawn.values) == 22
    links = [address for _label, address, _is_chosen in page.context["periods"]]
    assert all("series=reads" in link for link in links)  # another period of the same number
    assert "series" not in opened(admin_client, series="nonsense").context["periods"][0].address


def test_stories_sorted_by_their_change_begin_with_new_ones(admin_client: Client) -> None:
    begin_history(Post)
    fell, rose, new = (factories.post(title=title) for title in ("fell", "rose", "new"))
    for post, before, now in ((fell, 30, 20), (rose, 10, 25), (new, 0, 5)):
        if before:
            add_views(post, 10, before)
        add_views(post, 2, now)
    flush()

    def sorted_by(**given: str) -> list[tuple[str, str]]:
        page = opened(admin_client, tab="stories", **given)
        names = [heading.column.name for heading in page.context["list"].headings]
        place = names.index("change") - 1
        rows = page.context["list"].rows
        return [(row.head["text"], row.cells[place]["text"]) for row in rows]

    found = [("new", "new"), ("rose", "+150%"), ("fell", "\N{MINUS SIGN}33%")]
    assert sorted_by(order="change") == found  # before: the new one last
    assert sorted_by(order="change", dir="up") == found[::-1]


def test_people_now_are_shown_in_periods_that_include_now(admin_client: Client) -> None:
    for period, is_shown in (("today", True), ("7", True), ("all", True), ("yesterday", False)):
        assert ('class="readtrack-now"' in opened(admin_client, period=period).text) == is_shown


def test_a_range_in_the_future_says_so(admin_client: Client) -> None:
    today = timezone.localdate()
    words = "These days are in the future."
    for since, until, expected in ((1, 9, True), (0, 9, False), (-9, 0, False)):
        days = [today + timedelta(days=days) for days in (since, until)]
        given = dict(zip(("from", "to"), map(str, days), strict=True))
        assert (words in opened(admin_client, **given).text) == expected
    assert words not in opened(admin_client, period="7", **given).text


@pytest.mark.parametrize("has_list", [True, False])
def test_a_row_has_the_day_the_category_and_the_author_and_costs_no_query_more(
    has_list: bool, admin_client: Client
) -> None:
    author = factories.user(first_name="Ada", last_name="Byron")
    noon = datetime(2026, 3, 7, 12, tzinfo=timezone.get_default_timezone())
    for number in range(4):
        category = factories.category(name=f"Section {number}")
        counts.view(
            Article.objects.create(category=category, author=author, published_at=noon, title="A")
        )
    flush()
    if not has_list:
        Popular.objects.all().delete()
    admin_client.get(DASHBOARD, {"model": "site.article"})
    with CaptureQueriesContext(connection) as queries:
        page = admin_client.get(DASHBOARD, {"model": "site.article"})
    assert len(queries) - OF_THE_ADMIN <= 12
    [table, *_others] = page.context["tables"]
    texts = [head["details"] for head, *_ in table["rows"]]
    assert sorted(texts) == [
        ["March 7, 2026", f"Section {number}", "Ada Byron"] for number in range(4)
    ]
    row = next(csv.DictReader(StringIO(exported(admin_client, "most-viewed", "csv"))))
    assert row["Published"] == "2026-03-07"
    assert row["Author"] == "Ada Byron"
    assert row["Category"].startswith("Section")


def test_an_author_whose_full_name_fails_is_shown_by_the_accounts_name(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    author = factories.user(username="ann")
    counts.view(Article.objects.create(author=author))
    flush()

    def fail(user: Any) -> str:
        raise KeyError("name")

    monkeypatch.setattr(type(author), "get_full_name", fail)
    [row] = admin_client.get(DASHBOARD).context["tables"][0]["rows"]
    assert row.head["details"] == ["ann"]


def test_a_bar_is_as_long_as_the_share_of_the_rows_first_number(admin_client: Client) -> None:
    one, two = factories.post(title="A"), factories.post(title="B")
    counts.view(one, one, one, one, two)
    flush()
    page = admin_client.get(DASHBOARD)
    assert [head["bar"] for head, *_ in page.context["tables"][0]["rows"]] == [100, 25]
    [row] = page.context["trending"].rows[1:]
    assert row.head["bar"] == 25


def test_a_spreadsheet_understands_the_file_and_its_times(admin_client: Client) -> None:
    counts.view(factories.post(title="Füße"))
    flush()
    answer: Any = admin_client.get(DASHBOARD, {"table": "most-viewed", "format": "csv"})
    assert b"".join(answer.streaming_content).startswith(b"\xef\xbb\xbf")
    for period, length in (("7", len("2026-03-07")), ("yesterday", len("2026-03-07 09:00"))):
        rows = list(csv.reader(StringIO(exported(admin_client, "over-time", "csv", period=period))))
        assert {len(row[0]) for row in rows[1:]} == {length}
        assert datetime.fromisoformat(rows[1][0]).tzinfo is None
    json_rows = json.loads(exported(admin_client, "over-time", "json"))["rows"]
    assert datetime.fromisoformat(json_rows[0][0]).tzinfo is not None


def test_no_two_files_of_the_menu_have_a_name_that_may_be_of_either(admin_client: Client) -> None:
    post = factories.post(category=factories.category())
    counts.view(post)
    flush()
    titles = [str(file.title) for file in admin_client.get(DASHBOARD).context["files"]]
    assert "Unread by category" in titles
    assert "Categories" not in titles  # before: who has read, beside "Views by category"


def test_one_menu_has_the_files_of_all_tables_with_rows(admin_client: Client) -> None:
    counts.view(factories.post())
    flush()
    page = admin_client.get(DASHBOARD)
    menu = page.text.partition('class="readtrack-files"')[2].partition("</ul>")[0]
    links = re.findall(r'<a href="([^"]+)" download', menu)
    names = [parse_qs(html.unescape(link).removeprefix("?"))["table"][0] for link in links]
    first = ("over-time", "most-viewed", "trending", "now")
    assert names[:8] == [name for name in first for _ in FILES]
    for link in re.findall(r'<a href="([^"]+)" download', page.text):
        assert admin_client.get(DASHBOARD + html.unescape(link)).status_code == 200
