"""The overview: a panel for each question, and the list of all stories behind the first ones."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from readtrack import buckets, tracker
from readtrack.dashboard.panels import gauge_of
from readtrack.flush.run import flush
from readtrack.numbers import tables
from readtrack.numbers.loading import load
from readtrack.numbers.scope import Scope
from readtrack.store import skips
from readtrack.store.skips import skip_buffer
from readtrack.subjects import subject_of
from tests.support import counts, factories
from tests.support.rows import each_row
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"


def viewed(count: int) -> None:
    """Makes posts, the first of which has most views."""
    for number in range(count):
        post = factories.post(title=f"Story {number:02}")
        counts.view(*[post] * (1 + (count - number) % 3))
    flush()
    tracker.refresh_trending()


def stories(client: Client, **given: str) -> Any:
    page: Any = client.get(DASHBOARD, {"tab": "stories", **given})
    return page.context["list"]


def titles(found: Any) -> list[str]:
    return [row.head["text"] for row in found.rows]


def test_the_first_screen_costs_five_queries_and_two_round_trips(
    admin_client: Client, wire: Wire
) -> None:
    viewed(15)
    scope = Scope.parse({"model": "site.post"})
    names = ["over-time", "most-viewed", "trending", "now"]
    with wire.counted() as trips, CaptureQueriesContext(connection) as queries:
        load(scope, names, row_limit=tables.ROWS_ON_PAGE)
    assert trips[0] <= 2
    assert len(queries) <= 5


def test_the_list_of_stories_is_as_long_as_one_wants(admin_client: Client) -> None:
    viewed(60)
    page: Any = admin_client.get(DASHBOARD)
    assert len(page.context["list"].rows) == 10
    first = admin_client.get(DASHBOARD + page.context["list"].more.address)
    found = first.context["list"]
    assert (len(found.rows), found.more.label) == (50, "Show 10 more")
    more: Any = admin_client.get(DASHBOARD + found.more.address)
    assert (len(more.context["list"].rows), more.context["list"].more) == (60, None)
    assert all(row.cells[-2]["text"] != "" for row in found.rows)


def test_a_heading_sorts_the_list_and_a_second_click_turns_it_round(admin_client: Client) -> None:
    viewed(5)
    found = stories(admin_client, order="title")
    assert titles(found) == [f"Story {number:02}" for number in range(5)]
    [by_title] = [heading for heading in found.headings if heading.column.name == "title"]
    assert by_title.sort == "ascending"
    turned: Any = admin_client.get(DASHBOARD + by_title.address)
    assert titles(turned.context["list"]) == [f"Story {number:02}" for number in range(5)][::-1]
    for heading in found.headings:
        if heading.address:
            answer = admin_client.get(DASHBOARD + heading.address)
            assert answer.status_code == 200
    numbers = [int(row.cells[0]["text"]) for row in stories(admin_client, dir="up").rows]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(("count", "has_more"), [(10, False), (11, True)])
def test_the_overview_leads_to_more_stories_if_there_are_more(
    count: int, has_more: bool, admin_client: Client
) -> None:
    viewed(count)
    assert ("More stories" in admin_client.get(DASHBOARD).text) == has_more


def test_a_table_has_one_name_on_the_overview_and_among_the_files(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"funnels": True}}
    viewed(1)
    page: Any = admin_client.get(DASHBOARD)
    assert page.context["funnel"].title == "After reading"
    assert {"Top stories", "After reading"} <= {file.title for file in page.context["files"]}
    assert "Most viewed" not in page.text
    assert "Funnel" not in page.text


def test_a_search_finds_titles_with_all_its_words(admin_client: Client) -> None:
    viewed(12)
    assert titles(stories(admin_client, q="story 07")) == ["Story 07"]
    nothing = stories(admin_client, q="no such words")
    assert (nothing.rows, nothing.search) == ([], "no such words")
    assert nothing.empty == "No story of the period has these words in its title."
    page: Any = admin_client.get(
        DASHBOARD, {"tab": "stories", "q": "<b>", "order": "x", "rows": "-1"}
    )
    assert "<b>" not in page.context["list"].caption
    assert 'value="&lt;b&gt;"' in page.text


@pytest.mark.needs_parts("alerts")
def test_an_editor_who_may_see_numbers_sees_alerts_too() -> None:
    editor = factories.user(is_staff=True)
    editor.user_permissions.set(Permission.objects.filter(codename="view_numbers"))
    browser = factories.browser(editor)
    page: Any = browser.get(DASHBOARD)
    [link] = [address for label, address in page.context["links"] if label == "Alerts: off"]
    assert browser.get(link).status_code == 200


@pytest.mark.needs_parts("alerts", "digest")
def test_the_menu_of_files_ends_with_the_last_mail(
    admin_client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"DIGEST": {"to": ["staff"]}}
    page: Any = admin_client.get(DASHBOARD, {"tab": "sections"})
    assert page.context["files"] == []  # so there is no such menu
    assert page.text.index("The last mail") < page.text.index("readtrack-bar")
    viewed(1)
    page = admin_client.get(DASHBOARD)
    assert page.text.count("The last mail") == 1
    assert page.text.index("as a file: csv") < page.text.index("The last mail")
    assert page.text.index("Alerts: off") < page.text.index("readtrack-bar")


def test_people_now_are_counted_in_words(admin_client: Client) -> None:
    page: Any = admin_client.get(DASHBOARD)
    assert (page.context["recent"], page.context["now"].caption) == ("0", "people now")
    counts.view(factories.post())
    page = admin_client.get(DASHBOARD)
    assert (page.context["recent"], page.context["now"].caption) == ("1", "person now")
    given = {"category": subject_of(factories.category())}
    page = admin_client.get(DASHBOARD, given)
    assert page.context["now"].caption == "views in the last five minutes"


@each_row(
    ("times", "level"),
    [(8.1, "far-above"), (2.0, "above"), (1.0, "usual"), (0.6, "below"), (0.1, "far-below")],
)
def test_a_gauge_says_in_a_word_how_a_story_does(times: float, level: str) -> None:
    gauge = gauge_of(times)
    assert gauge is not None
    assert gauge.level == level
    assert 0 <= gauge.start <= gauge.start + gauge.length <= 100
    assert gauge_of(0.0) is not None
    assert gauge_of(None) is None


def test_each_panel_leads_to_all_of_its_rows(admin_client: Client, settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer", "channel", "campaign"]}}
    post = factories.post(category=factories.category())
    for number in range(8):
        values = (("referrer", f"{number}.example"), ("channel", "other"))
        hit = factories.hit(f"site.post:{post.pk}", dimensions=values)
        tracker.record(hit)
    flush()
    page: Any = admin_client.get(DASHBOARD)
    sources = page.context["sources"]
    assert (len(sources.rows), sources.more.label) == (5, "All 8")
    assert admin_client.get(DASHBOARD + sources.more.address).context["tab"] == "sources"
    assert [part.length for part in sources.strip] == [100]
    assert "Add ?utm_campaign=spring to a link" in page.text
    # The links of the sources are between them and the campaigns; before: below the campaigns.
    places = [page.text.index(text) for text in ("0.example", "All 8", "Campaigns</h3>")]
    assert places == sorted(places)
    assert [field.name for field in page.context["fields"]] == ["category", "referrer", "channel"]
    one: Any = admin_client.get(DASHBOARD, {"referrer": "1.example"})
    assert one.context["chips"][0].value == "1.example"
    # Before: each of them was a panel that said so; "Sources" had the chosen source alone.
    names = ("sources", "campaigns", "countries", "groups", "ages", "trending")
    assert {one.context[name] for name in names} == {None}
    assert one.context["looks"] == []
    assert one.context["unknown"] == (
        "Not known for this filter: Below usual · Still read · Opened, hardly read · Now · Campaigns"
        " · Categories · Age of what was read."
    )
    assert one.context["unknown"] in one.text
    assert page.context["unknown"] == ""


def test_a_new_site_has_no_chart_but_is_told_how_to_get_one(admin_client: Client) -> None:
    page: Any = admin_client.get(DASHBOARD)
    assert "readtrack-plot" not in page.text
    assert "Open a page of the site in a private window" in page.text
    viewed(1)
    page = admin_client.get(DASHBOARD)
    assert "readtrack-plot" in page.text
    assert "in a private window" not in page.text


def test_what_is_still_read_is_old_and_not_of_a_single_day(admin_client: Client) -> None:
    viewed(1)
    [still_read] = [
        look for look in admin_client.get(DASHBOARD).context["looks"] if look.title == "Still read"
    ]
    # Before: "published 90 days before the period".
    assert still_read.remark == "more than 90 days old when the period began"


def test_tables_of_flushes_deny_no_views_that_the_page_has(admin_client: Client) -> None:
    counts.view(factories.post(category=factories.category()))
    page: Any = admin_client.get(DASHBOARD, {"period": "7"})
    assert page.context["data"].chart.total.views == 1
    empty = {str(page.context[name].empty) for name in ("groups", "ages")}
    assert empty == {"None yet. Views of the last hour may be missing."}  # before: no views
    past: Any = admin_client.get(DASHBOARD, {"period": "last-week"})
    assert str(past.context["groups"].empty) == "No views in this period."


@each_row(
    ("asked", "words"),
    [
        ({"period": "7"}, "in the 6 days that are over"),
        ({"period": "28"}, "in the 27 days that are over"),
        ({"period": "last-week"}, ""),
        ({"period": "yesterday"}, ""),
        ({"period": "7", "compare": "none"}, ""),
    ],
)
def test_what_grew_says_of_which_days_it_is(
    asked: dict[str, str], words: str, admin_client: Client
) -> None:
    viewed(3)
    looks = admin_client.get(DASHBOARD, asked).context["looks"]
    assert [look.remark for look in looks if look.title == "Grew most"] in ([words], [])


@each_row(
    ("period", "title"),
    [
        ("7", "Not counted in the last 48 hours"),
        ("all", "Not counted in the last 48 hours"),
        ("today", "Not counted"),
    ],
)
def test_what_is_not_counted_says_of_which_hours_it_is(
    period: str, title: str, admin_client: Client
) -> None:
    skip_buffer.add(skips.key_of(buckets.now()), ["bot", "repeat"])
    skip_buffer.send_rest()
    page: Any = admin_client.get(DASHBOARD, {"period": period})
    assert str(page.context["refused"].title) == title
    of_list: Any = admin_client.get(DASHBOARD, {"period": period, "tab": "refused"})
    days = "Today" if period == "today" else "The last 48 hours"  # before: "7 days"
    assert f"<title>Not counted, {days} |" in of_list.text
    assert f">{title}</h2>" in page.text


def test_groups_and_ages_say_that_they_are_older_than_the_totals_above(
    admin_client: Client,
) -> None:
    for period, is_said in (("7", True), ("today", True), ("last-week", False)):
        page = admin_client.get(DASHBOARD, {"period": period})
        captions = {page.context[name].caption for name in ("groups", "ages")}
        expected = "Views of the last hour may be missing." if is_said else ""
        assert captions == {expected}, period


@pytest.mark.parametrize("tab", ["numbers", "stories", "refused"])
def test_a_heading_has_the_class_of_its_cells_by_which_phones_leave_both_out(
    tab: str, admin_client: Client
) -> None:
    viewed(2)
    skip_buffer.add(skips.key_of(buckets.now()), ["bot"])
    skip_buffer.send_rest()
    page: Any = admin_client.get(DASHBOARD, {"tab": tab})
    lists = re.findall(r"<thead>(.*?)</thead>\s*<tbody>(.*?)</tr>", page.text, re.DOTALL)
    lines = [(head.count("readtrack-trend"), row.count("readtrack-trend")) for head, row in lists]
    assert any(cells for _, cells in lines)
    assert all(headings == cells for headings, cells in lines)  # before: a heading without cells
