"""The dashboard and the count column, as staff see them."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from readtrack import buckets, tracker
from readtrack.admin import RANGES
from readtrack.flush import flush
from readtrack.models import FlushRun
from readtrack.store.skips import tally
from readtrack.visitors import Visitor
from tests import factories
from tests.pseudo import unmarked
from tests.site.models import Page, Product
from tests.wire import Wire

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"
FLUSHES = "/admin/readtrack/flushrun/"


def staff(*permissions: str) -> Client:
    """Somebody with these permissions only."""
    user = factories.user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return factories.browser(user)


def content(page: str) -> str:
    """What is ours of an admin page."""
    return page[page.index('id="content-main"') :]


def test_an_empty_site_is_told_what_to_do(admin_client: Client) -> None:
    page = content(admin_client.get(DASHBOARD).text)
    for words in ("never", "manage.py readtrack flush", "Nothing has been flushed yet", "No views in the last hour"):
        assert words in page


def test_the_dashboard_shows_totals_the_day_the_top_and_what_is_trending(admin_client: Client) -> None:
    top, trending = factories.post(title="Top", view_count=12_345), Product.objects.create(name="Gadget")
    for _ in range(3):
        tracker.record(factories.hit(f"site.product:{trending.pk}"))
    flush()
    page = content(admin_client.get(DASHBOARD).text)
    assert "12,348" in page
    assert re.search(rf'<a href="{top.get_absolute_url()}">Top</a>\s*</td>\s*<td[^>]*>12,345<', page)
    assert re.search(rf"{re.escape(str(trending))}\s*</td>\s*<td[^>]*>3<", page)
    assert "1 read, 1 written" in page


def test_a_flush_that_failed_says_why(admin_client: Client) -> None:
    now = buckets.now()
    FlushRun.objects.create(started=now, ended=now + timedelta(seconds=1), error="ConnectionError: <gone>")
    assert "ConnectionError: &lt;gone&gt;" in admin_client.get(DASHBOARD).text


def test_titles_cannot_break_out_of_the_page(admin_client: Client) -> None:
    factories.post(title="<script>alert(1)</script>", view_count=5)
    assert "<script>alert" not in admin_client.get(DASHBOARD).text


def test_the_chart_is_a_described_drawing_without_script_and_style(admin_client: Client) -> None:
    page = content(admin_client.get(DASHBOARD).text)
    chart = page[page.index("<svg") : page.index("</svg>")]
    assert re.match(r"<svg[^>]* role=\"img\"[^>]*>\s*<title>[^<]+</title>\s*<desc>[^<]+</desc>", chart)
    assert "<script" not in page
    assert "<style" not in page
    assert "style=" not in page


@pytest.mark.usefixtures("pseudo")
def test_every_word_of_the_dashboard_is_marked_for_translation(admin_client: Client) -> None:
    pages = [admin_client.get(DASHBOARD).text]
    post = factories.post(title="1")
    visitor = Visitor("a")
    for _ in range(2):
        tracker.record(factories.hit(f"site.post:{post.pk}", visitor=visitor))
    tally.send()
    flush()
    pages += [admin_client.get(DASHBOARD, {"range": chosen}).text for chosen in RANGES]
    for page in pages:
        text = re.sub(r"<code>.*?</code>|<[^>]*>|&\w+;", " ", content(page).partition(">")[2].partition("<footer")[0])
        assert unmarked(text) == []
    assert "⟦seen by the same visitor already⟧" in pages[-1]
    record = admin_client.get(FLUSHES).text
    assert "⟦took⟧" in record


def test_the_dashboard_is_there_without_redis(admin_client: Client, wire: Wire) -> None:
    factories.post(title="Top", view_count=7)
    wire.cut()
    response = admin_client.get(DASHBOARD)
    assert response.status_code == 200
    assert "Top" in response.text


@pytest.mark.parametrize("chosen", RANGES)
def test_every_chart_and_the_day_are_one_question_to_redis(chosen: str, admin_client: Client, wire: Wire) -> None:
    flush()
    for _ in range(3):
        tracker.record(factories.hit("site.post:1"))
    admin_client.get(DASHBOARD)
    with wire.counted() as trips:
        page = admin_client.get(DASHBOARD, {"range": chosen}).text
    # Those of the site's hours, of what is trending and of what did not count.
    assert trips == [3]
    assert re.search(r"<dt>Views, last 24 hours</dt>\s*<dd>3</dd>", page)
    assert "; 3 in all." in page


def test_the_dashboard_costs_few_queries_however_many_posts(
    admin_client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(30):
        post = factories.post(view_count=number)
        tracker.record(factories.hit(f"site.post:{post.pk}"))
    with django_assert_max_num_queries(20):
        assert admin_client.get(DASHBOARD).status_code == 200


@pytest.mark.parametrize(("page", "permission"), [(DASHBOARD, "view_dashboard"), (FLUSHES, "view_flushrun")])
def test_only_who_may_sees_it(page: str, permission: str) -> None:
    assert staff().get(page).status_code == 403
    assert staff("view_post").get(page).status_code == 403
    assert staff(permission).get(page).status_code == 200
    assert factories.browser(factories.user()).get(page).status_code == 302
    assert factories.browser().get(page).status_code == 302


def test_the_dashboard_is_in_the_app_list_of_who_may_see_it() -> None:
    assert DASHBOARD in staff("view_dashboard").get("/admin/").text
    assert DASHBOARD not in staff("view_post").get("/admin/").text


def test_the_record_of_flushes_is_read_only(admin_client: Client) -> None:
    run = flush()
    assert admin_client.get(FLUSHES).status_code == 200
    assert admin_client.get(f"{FLUSHES}add/").status_code == 403
    page = admin_client.get(f"{FLUSHES}{run.pk}/change/")
    assert page.status_code == 200
    assert 'name="_save"' not in page.text
    assert admin_client.post(f"{FLUSHES}{run.pk}/change/", {"error": "x"}).status_code == 403
    assert admin_client.post(f"{FLUSHES}{run.pk}/delete/", {"post": "yes"}).status_code == 403


def test_the_sites_own_list_has_a_sortable_count_column(admin_client: Client) -> None:
    few, many = factories.post(title="Few", view_count=1), factories.post(title="Many", view_count=1234)
    page = admin_client.get("/admin/site/post/").text
    assert "column-stored_views" in page
    assert "1,234" in page
    position = re.search(r'class="[^"]*sortable column-stored_views.*?\?o=(\d+)', page, re.DOTALL)
    assert position
    descending = admin_client.get(f"/admin/site/post/?o=-{position[1]}").text
    assert descending.index(many.title) < descending.index(few.title)


def test_a_count_cannot_be_edited_in_the_admin(admin_client: Client) -> None:
    post = factories.post(view_count=5, title="Old")
    data = {"title": "New", "category": str(factories.category().pk), "view_count": "0"}
    assert admin_client.post(f"/admin/site/post/{post.pk}/change/", data).status_code == 302
    post.refresh_from_db()
    assert (post.title, post.view_count) == ("New", 5)


def test_the_column_mixes_with_other_classes(admin_client: Client) -> None:
    Page.objects.create(slug="a b*", view_count=4321)
    page = admin_client.get("/admin/site/page/").text
    assert "column-slug" in page
    assert "4,321" in page
