"""The page of the admin with the counts that the last flush stored."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin import AdminSite
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client, modify_settings
from django.test.utils import CaptureQueriesContext
from django.urls import path
from django.utils import timezone
from pytest_django import Settings

from readtrack import tracker
from readtrack.access import counts_url
from readtrack.admin import FlushRunAdmin, TrackedAdmin, ViewCounts, ViewCountsAdmin
from readtrack.flush.run import flush
from readtrack.models import FlushRun
from readtrack.subjects import counted_models, subject_of
from readtrack.view_counts import page_context
from tests.site.models import Page, Post
from tests.support import factories
from tests.support.pseudo import unmarked

pytestmark = pytest.mark.django_db

PAGE = "/admin/readtrack/viewcounts/"

bare = AdminSite("bare")  # as on a site with no other part
bare.register(FlushRun, FlushRunAdmin)
bare.register(ViewCounts, ViewCountsAdmin)
bare.register(Post, TrackedAdmin)
urlpatterns = [path("bare/", bare.urls)]


def viewer(*permissions: str, is_staff: bool = True) -> User:
    """Returns a user with these permissions, by default with that to see all numbers."""
    user = factories.user(is_staff=is_staff)
    names = permissions or ("view_numbers",)
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return user


@pytest.fixture
def client() -> Client:
    return factories.browser(viewer())


def content(page: Any) -> str:
    """Returns the part of the page that is readtrack's, without the footer."""
    text: str = page.text
    return text[text.index('<div id="content-main"') :].partition("<footer")[0]


def tables(page: Any) -> dict[str, list[list[str]]]:
    """Returns the rows of each table as texts, by the label of its model."""
    found: dict[str, list[list[str]]] = {}
    for label, section in re.findall(
        r'<section class="module" id="(.*?)"(.*?)</section>', content(page), re.S
    ):
        rows = re.findall(r"<tr>\s*(<th scope=\"row\">.*?)</tr>", section, re.S)
        found[label] = [texts(row) for row in rows]
    return found


def texts(markup: str) -> list[str]:
    return [text for text in re.sub(r"<[^>]*>", "\n", markup).split("\n") if text.strip()]


def no_form(obj: Any) -> str:
    return ""


def test_each_counted_model_has_a_table_of_its_most_viewed_objects(
    client: Client, settings: Settings
) -> None:
    settings.READTRACK = {"MODELS": {"site.Category": {"counted": True}}}
    category, other = factories.category(name="News"), factories.category(name="Unseen")
    for _visitor in range(2):
        tracker.record(factories.hit(subject_of(category)))
    flush()
    factories.post(title="Second", view_count=1_000, visitor_count=10)
    factories.post(title="<First>", view_count=3_000, visitor_count=1_234)
    factories.post(title="None")
    page = client.get(PAGE)
    assert tables(page) == {
        "site.category": [["News", "2", "2", "100%"]],
        "site.post": [
            ["&lt;First&gt;", "3,000", "1,234", "75%"],
            ["Second", "1,000", "10", "25%"],
        ],
    }
    assert other.name not in page.text


def test_a_table_has_twenty_objects_and_the_chart_ten_of_all_models() -> None:
    for number in range(1, 25):
        factories.post(title=f"Post {number}", view_count=number)
    Page.objects.create(slug="page", view_count=23, visitor_count=7)
    context = page_context(no_form)
    by_label = {section.label: section.rows for section in context["sections"]}
    assert [row.counts.views for row in by_label["site.post"]] == [*range(24, 4, -1)]
    bars = context["bars"]
    assert [bar.views for bar in bars[:3]] == ["24 views", "23 views", "23 views"]
    assert len(bars) == 10
    assert {(bar.views_length, bar.visitors_length) for bar in bars[:3]} >= {(100, 0), (95, 29)}


@pytest.mark.parametrize(
    ("views", "share", "length"), [(1, "<1%", 1), (500, "33%", 50), (1_000, "50%", 100)]
)
def test_a_share_is_of_the_views_of_the_table(views: int, share: str, length: int) -> None:
    factories.post(view_count=views)
    factories.post(view_count=1_000)
    [section] = page_context(no_form)["sections"]
    assert (section.rows[-1].share, section.rows[-1].length) == (share, length)


def test_titles_lead_to_forms_that_the_user_may_see() -> None:
    post, page = factories.post(view_count=2), Page.objects.create(slug="1", view_count=1)
    for permissions, links in (
        (("view_numbers",), []),
        (("view_numbers", "view_post"), [f"/admin/site/post/{post.pk}/change/"]),
    ):
        shown = content(factories.browser(viewer(*permissions)).get(PAGE))
        assert re.findall(r'href="([^"]*/change/)"', shown) == links
        assert str(page) in shown


def test_only_those_who_may_see_all_numbers_see_the_page() -> None:
    assert factories.browser(viewer()).get(PAGE).status_code == 200
    assert factories.browser(viewer("view_flushrun")).get(PAGE).status_code == 403
    assert factories.browser(viewer(is_staff=False)).get(PAGE).status_code == 302
    assert Client().get(PAGE).status_code == 302


@modify_settings(INSTALLED_APPS={"remove": ["readtrack.dashboard"]})
def test_the_page_is_in_the_list_of_apps_for_those_who_may_see_it(client: Client) -> None:
    assert PAGE in client.get("/admin/").text
    other = factories.browser(viewer("view_flushrun"))
    assert PAGE not in other.get("/admin/").text


@pytest.mark.needs_parts("dashboard")
def test_the_page_is_in_no_list_where_a_part_shows_the_numbers(client: Client) -> None:
    assert PAGE not in client.get("/admin/").text
    assert client.get(PAGE).status_code == 200


def test_the_column_of_views_leads_to_the_table_of_the_model(
    client: Client, settings: Settings
) -> None:
    settings.ROOT_URLCONF = "tests.test_view_counts"
    factories.post(view_count=1_234)
    user = viewer("view_numbers", "view_post")
    page = factories.browser(user).get("/bare/site/post/")
    assert '<a href="/bare/readtrack/viewcounts/#site.post">1,234</a>' in page.text
    assert 'id="site.post"' in factories.browser(user).get("/bare/readtrack/viewcounts/").text


def test_an_admin_without_the_page_has_no_address_of_it(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.site.no_urls"
    assert counts_url(Post) == ""


def test_the_page_says_what_the_last_flush_could_not_store(client: Client) -> None:
    now = timezone.now()
    run = FlushRun.objects.create(started=now, ended=now)
    assert "not stored" not in client.get(PAGE).text
    FlushRun.objects.filter(pk=run.pk).update(faults="site.Post: full\nsite.Page: full", error="Oh")
    FlushRun.objects.create(started=now)  # it still runs
    text = content(client.get(PAGE))
    assert "not stored: site.Post: full<br>site.Page: full" in text
    assert '<p class="errornote">Oh</p>' in text
    assert "three intervals" not in text
    FlushRun.objects.update(started=now - timedelta(days=1), ended=now - timedelta(days=1))
    assert "three intervals" in client.get(PAGE).text


def test_without_any_count_the_page_says_how_to_get_there(client: Client) -> None:
    text = " ".join(texts(content(client.get(PAGE))))
    assert "Last saved: never" in text
    assert "Nothing is counted yet" in text
    assert "These models are counted: " in text
    assert "manage.py readtrack flush" in text


def test_a_site_that_counts_no_model_is_told_so(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.view_counts.counted_models", list)
    assert "No model is counted" in client.get(PAGE).text


def test_models_without_views_are_named(client: Client) -> None:
    factories.post(view_count=1)
    text = " ".join(texts(content(client.get(PAGE))))
    assert re.search("Not viewed yet: .*pages", text)


def test_a_model_takes_one_query_however_many_objects_it_has() -> None:
    with CaptureQueriesContext(connection) as queries:
        page_context(no_form)
    assert len(queries) == len(counted_models()) + 1
    for number in range(25):
        factories.post(view_count=number)
        Page.objects.create(slug=str(number), view_count=number)
    with CaptureQueriesContext(connection) as queries:
        page_context(no_form)
    assert len(queries) == len(counted_models()) + 1


def test_a_model_without_own_columns_takes_three_queries(settings: Settings) -> None:
    settings.READTRACK = {"MODELS": {"site.Category": {"counted": True}}}
    for _ in range(3):
        tracker.record(factories.hit(subject_of(factories.category())))
    flush()
    with CaptureQueriesContext(connection) as queries:
        [section] = page_context(no_form)["sections"]
    assert len(section.rows) == 3
    # The counts, the objects, and whether there are more counts.
    assert len(queries) == len(counted_models()) + 3


@pytest.mark.usefixtures("pseudo")
def test_every_word_of_the_page_is_marked_for_translation(client: Client) -> None:
    names_of_models = {str(model._meta.verbose_name_plural) for model in counted_models()}
    names_of_models |= {name.capitalize() for name in names_of_models}
    pages = [client.get(PAGE)]
    factories.post(title="1", view_count=1, visitor_count=1)
    pages.append(client.get(PAGE))
    for page in pages:
        text = re.sub(r"<code>.*?</code>|<[^>]*>|&\w+;", " ", content(page))
        assert {*unmarked(text)} <= names_of_models
