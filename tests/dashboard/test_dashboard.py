"""The dashboard and the count column in the admin."""

import re
from datetime import datetime, timedelta, timezone

import pytest
from django.contrib.auth.models import Permission
from django.db.models import F
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from readtrack import buckets, tracker
from readtrack.dashboard.context import RANGES, dashboard_context
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.models import FlushRun
from readtrack.store.skips import skip_buffer
from readtrack.subjects import counted_models, subject_of
from tests.conftest import Start
from tests.site.models import Page, Post, Product
from tests.support import factories
from tests.support.pseudo import unmarked
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"
FLUSHES = "/admin/readtrack/flushrun/"


def staff(*permissions: str) -> Client:
    """Returns a client that is signed in as staff with these permissions only."""
    user = factories.user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return factories.browser(user)


def content(page: str) -> str:
    """Returns the part of an admin page that is readtrack's."""
    return page[page.index('id="content-main"') :]


def test_an_empty_site_is_told_what_to_do(admin_client: Client) -> None:
    page = content(admin_client.get(DASHBOARD).text)
    for words in ("never", "manage.py readtrack flush", "Nothing has been flushed yet", "No views in the last hour"):
        assert words in page


def test_the_most_viewed_rows_are_those_of_all_models() -> None:
    post, product = factories.post(view_count=3), Product.objects.create(name="x", view_count=9)
    factories.post()
    shown = dashboard_context("day")
    assert (shown["top"], shown["all_views"]) == ([(product, "9"), (post, "3")], "12")


@pytest.mark.parametrize(("history", "known"), [(True, ["51", "52"]), (False, ["50", "51"])])
def test_views_of_all_time_are_live_as_those_of_a_range(settings: Settings, history: bool, known: list[str]) -> None:
    settings.READTRACK = {"HISTORY": history}
    post = factories.post(view_count=50)
    for hours, shown in zip((30, 0), known, strict=True):
        tracker.record(factories.hit(f"site.post:{post.pk}", at=buckets.now() - timedelta(hours=hours)))
        assert {dashboard_context(name)["all_views"] for name in RANGES} == {shown}
        flush()
    assert dashboard_context("year")["all_views"] == "52"


def test_an_empty_site_has_nothing_to_report() -> None:
    shown = dashboard_context("day")
    assert (shown["top"], shown["all_views"], shown["last_flush"]) == ([], "0", None)


def test_the_last_flush_is_the_newest_that_ended() -> None:
    flush()
    ended = flush()
    FlushRun.objects.create(started=buckets.now())
    assert dashboard_context("day")["last_flush"] == ended


@pytest.mark.parametrize(("seconds", "is_late"), [(0, False), (150, False), (181, True)])
def test_a_flush_is_late_after_three_intervals(seconds: int, is_late: bool) -> None:
    ended = buckets.now() - timedelta(seconds=seconds)
    FlushRun.objects.create(started=ended, ended=ended)
    assert dashboard_context("day")["is_late"] is is_late


def test_the_dashboard_shows_totals_the_day_the_top_and_what_is_trending(admin_client: Client) -> None:
    top, trending = factories.post(title="Top", view_count=12_345), Product.objects.create(name="Gadget")
    for _ in range(3):
        tracker.record(factories.hit(f"site.product:{trending.pk}"))
    flush()
    page = content(admin_client.get(DASHBOARD).text)
    assert "12,348" in page
    assert re.search(
        rf'<a href="{top.get_absolute_url()}" referrerpolicy="same-origin">Top</a>\s*</td>\s*<td[^>]*>12,345<', page
    )
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
    skip_buffer.send()
    flush()
    pages += [admin_client.get(DASHBOARD, {"range": chosen}).text for chosen in RANGES]
    for page in pages:
        text = re.sub(r"<code>.*?</code>|<[^>]*>|&\w+;", " ", content(page).partition(">")[2].partition("<footer")[0])
        assert unmarked(text) == []
    assert "⟦seen by the same visitor already⟧" in pages[-1]
    record = admin_client.get(FLUSHES).text
    assert "⟦took⟧" in record


def bars(page: str) -> dict[str, str]:
    """Returns the values of the bars of the wide chart by their labels."""
    return dict(re.findall(r'class="bar"><title>(.*?): ([\d,]+)</title>', page[: page.index("readtrack-narrow")]))


def numbers(page: str) -> dict[str, str]:
    """Returns the values of the table below the chart by their labels."""
    return dict(re.findall(r'<th scope="row">(.*?)</th>\s*<td[^>]*>(.*?)<', page))


@pytest.mark.parametrize("chosen", RANGES)
def test_the_numbers_of_a_chart_can_be_read_without_a_mouse(chosen: str, admin_client: Client) -> None:
    post = factories.post()
    for _ in range(2):
        tracker.record(factories.hit(f"site.post:{post.pk}"))
    for _ in range(3):
        tracker.record(factories.hit(f"site.post:{post.pk}", visitor=Visitor("a")))
    skip_buffer.send()
    page = content(admin_client.get(DASHBOARD, {"range": chosen}).text)
    assert numbers(page) == bars(page)
    assert list(numbers(page).values())[-1] == "3"
    assert re.search(r'<p class="readtrack-summary">[^<]*; 3 in all', page)
    assert re.search(r'aria-hidden="true"></meter> 100 %<', page)


@pytest.mark.parametrize("chosen", RANGES)
def test_without_redis_the_dashboard_says_so_and_makes_nothing_up(
    chosen: str, admin_client: Client, start_redis: Start
) -> None:
    valkey, top = start_redis(), factories.post(title="Top", view_count=7)
    for _ in range(3):
        tracker.record(factories.hit(f"site.post:{top.pk}"))
    flush()
    FlushRun.objects.update(started=F("started") - timedelta(hours=2))
    valkey.stop()
    page = content(admin_client.get(DASHBOARD, {"range": chosen}).text)
    assert re.search(r'class="errornote" role="alert">Redis does not answer', page)
    assert "manage.py readtrack doctor" in page
    assert re.search("<dt>Views, last 24 hours</dt>\\s*<dd>\N{EN DASH}</dd>", page)
    assert re.search(r"<dt>Views, all time</dt>\s*<dd>10</dd>", page)
    assert re.search(r">Top</a>\s*</td>\s*<td[^>]*>10<", page)
    assert page.count("Not known without Redis.") == 2
    for falsehood in ("No views in the last hour", "Every hit counted"):
        assert falsehood not in page


def test_without_redis_hours_that_were_not_flushed_have_no_bar(admin_client: Client, start_redis: Start) -> None:
    valkey = start_redis()
    flush()
    assert len(bars(content(admin_client.get(DASHBOARD).text))) == 24
    FlushRun.objects.update(started=F("started") - timedelta(hours=2))
    assert len(bars(content(admin_client.get(DASHBOARD).text))) == 24
    valkey.stop()
    page = content(admin_client.get(DASHBOARD).text)
    assert len(bars(page)) == 22
    assert list(numbers(page).values())[-2:] == ["\N{EN DASH}"] * 2
    FlushRun.objects.all().delete()
    assert bars(content(admin_client.get(DASHBOARD).text)) == {}


def test_with_redis_back_the_dashboard_is_live_again(
    admin_client: Client, start_redis: Start, settings: Settings
) -> None:
    settings.READTRACK = {"CIRCUIT": 0.0}
    valkey = start_redis()
    valkey.stop()
    assert "Redis does not answer" in admin_client.get(DASHBOARD).text
    valkey.start()
    page = content(admin_client.get(DASHBOARD).text)
    assert "Redis does not answer" not in page
    assert "Every hit counted." in page
    assert re.search(r"<dt>Views, last 24 hours</dt>\s*<dd>0</dd>", page)


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
    assert "Redis does not answer" not in page


def test_the_dashboard_costs_few_queries_however_many_posts(
    admin_client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(30):
        post = factories.post(view_count=number)
        tracker.record(factories.hit(f"site.post:{post.pk}"))
    with django_assert_max_num_queries(6 + 2 * len(counted_models())):
        assert admin_client.get(DASHBOARD).status_code == 200


@pytest.mark.parametrize(("page", "permission"), [(DASHBOARD, "view_numbers"), (FLUSHES, "view_flushrun")])
def test_only_who_may_sees_it(page: str, permission: str) -> None:
    assert staff().get(page).status_code == 403
    assert staff("view_post").get(page).status_code == 403
    assert staff(permission).get(page).status_code == 200
    assert factories.browser(factories.user()).get(page).status_code == 302
    assert factories.browser().get(page).status_code == 302


def test_the_dashboard_is_in_the_app_list_of_users_who_may_see_it() -> None:
    assert DASHBOARD in staff("view_numbers").get("/admin/").text
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


def test_flushes_of_one_minute_are_told_apart(admin_client: Client) -> None:
    for second in (5, 20):
        FlushRun.objects.create(started=datetime(2026, 11, 20, 9, 15, second, tzinfo=timezone.utc))
    assert re.findall(r"09:15:\d\d", admin_client.get(FLUSHES).text) == ["09:15:20", "09:15:05"]


def test_most_viewed_and_trending_say_what_they_count(admin_client: Client) -> None:
    post = factories.post()
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    flush()
    page = admin_client.get(DASHBOARD).text
    assert re.findall(r"<caption>(.*?)</caption>", page) == [
        "Of all time, as stored by the last flush.",
        "Live views of the last hour, some 30 seconds old.",
    ]


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


def test_the_last_24_hours_are_never_more_than_all_time(admin_client: Client) -> None:
    post = factories.post()
    for flushed in (False, True):
        tracker.record(factories.hit(subject_of(post)))
        if flushed:
            flush()
            Post.objects.update(view_count=1)  # as if the rest were of a row that was deleted
        page = admin_client.get("/admin/readtrack/dashboard/").content.decode()
        all_time, day = re.findall(r"<dt>Views, [^<]*</dt>\s*<dd>([^<]+)</dd>", page)
        assert int(all_time) >= int(day) == 1 + flushed
