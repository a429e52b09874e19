"""The admin's pages of readtrack besides the dashboard's numbers, and the count column."""

import re
from datetime import datetime, timedelta, timezone

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from readtrack.flush.run import flush
from readtrack.models import FlushRun
from tests.site.models import Page
from tests.support import factories

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"
FLUSHES = "/admin/readtrack/flushrun/"


def staff(*permissions: str) -> Client:
    """Returns a client that is signed in as staff with these permissions only."""
    user = factories.user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return factories.browser(user)


@pytest.mark.parametrize(
    ("page", "permission"), [(DASHBOARD, "view_numbers"), (FLUSHES, "view_flushrun")]
)
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


def test_a_flush_has_the_date_of_the_other_pages_and_its_seconds(admin_client: Client) -> None:
    started = datetime(2026, 11, 20, 9, 15, 5, tzinfo=timezone.utc)
    FlushRun.objects.create(started=started, ended=started + timedelta(milliseconds=4_257))
    FlushRun.objects.create(started=started - timedelta(days=1))
    page = admin_client.get(FLUSHES).text
    assert "Nov. 20, 2026, 09:15:05" in page  # before: 11/20/2026
    # Before: 0:00:04.257000
    assert re.findall(r'"field-time_taken[^>]*>([^<]+)<', page) == ["4.26\N{NO-BREAK SPACE}s", "-"]


def test_the_sites_own_list_has_a_sortable_count_column(admin_client: Client) -> None:
    few, many = (
        factories.post(title="Few", view_count=1),
        factories.post(title="Many", view_count=1234),
    )
    page = admin_client.get("/admin/site/post/").text
    assert "column-linked_views" in page
    assert "1,234" in page
    position = re.search(r'class="[^"]*sortable column-linked_views.*?\?o=(\d+)', page, re.DOTALL)
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
