"""What the admin tells and lets be done without permission, and what its import brings along."""

import json
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.urls import path
from pytest_django import Settings

from readtrack import reports, tracker
from readtrack.admin import reset_counts
from readtrack.flush.run import flush
from readtrack.subjects import subject_of
from tests.site.models import Article, Post
from tests.site.urls import urlpatterns as urls_of_site
from tests.support import counts, factories
from tests.support.forks import Forks
from tests.support.rows import each_row

DASHBOARD = "/admin/readtrack/dashboard/"


def staff(*permissions: str) -> User:
    user = factories.user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return user


def sees_objects(user: Any, obj: Any) -> bool:
    """A site's rule."""
    return obj is not None and obj.pk % 2 == 0


@pytest.mark.django_db
@pytest.mark.parametrize("rule", ["", f"{__name__}.sees_objects"])
@pytest.mark.parametrize("ending", ["", "?format=csv&table=over-time", "?period=28"])
def test_the_answer_does_not_tell_staff_without_permission_what_exists(
    rule: str, ending: str, settings: Settings
) -> None:
    settings.READTRACK = {"VIEW_NUMBERS": rule}
    other = Article.objects.create(pk=7, author=factories.user())
    client = factories.browser(staff("view_article", "change_article"))
    names = [
        subject_of(other),
        "site.article:999",
        "site.article:9" + 30 * "9",
        "site.article:x",
        "site.category:1",  # is not counted
        "site.nothing:1",
        "nothing",
        "%00",
    ]
    answers = [client.get(f"{DASHBOARD}object/{name}/{ending}") for name in names]
    assert {answer.status_code for answer in answers} == {403}
    assert len({answer.content for answer in answers}) == 1


@pytest.mark.django_db
def test_those_who_may_see_all_are_told_what_does_not_exist(admin_client: Any) -> None:
    for name in ("site.article:999", "site.nothing:1", "nothing"):
        assert admin_client.get(f"{DASHBOARD}object/{name}/").status_code == 404


@pytest.fixture
def viewed(db: None) -> Post:
    """Returns a post that a flush has put on the list of what was viewed most."""
    post = factories.post()
    counts.view(post)
    flush()
    return post


@each_row(
    "url",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        " javascript:alert(1)",
        "\x01javascript:alert(1)",
        "java\nscript:alert(1)",
        "\tjavascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:x",
        "file:///etc/passwd",
        "http://[",
        "/\ud800/",
        "/" + 3_000 * "a",
    ],
)
def test_an_address_that_is_no_page_is_no_link(
    url: str, viewed: Post, admin_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Post, "get_absolute_url", lambda post: url)
    page = admin_client.get(DASHBOARD)
    [(_, _, _, shown), *_] = page.context["tables"][0]["rows"]
    assert shown == ""
    assert 'class="readtrack-out"' not in page.text
    assert "View on site" not in admin_client.get(f"{DASHBOARD}object/{subject_of(viewed)}/").text


@each_row("url", ["/a/?b=c:d", "https://example.com/", "//example.com/a", "a:b/"])
def test_only_what_a_browser_opens_as_a_page_is_a_link(
    url: str, viewed: Post, admin_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Post, "get_absolute_url", lambda post: url)
    text = admin_client.get(f"{DASHBOARD}object/{subject_of(viewed)}/").text
    assert (f'href="{url}" referrerpolicy' in text) is (url != "a:b/")


def reset(user: User, address: str, obj: Any) -> Any:
    data = {"action": "reset_counts", "_selected_action": [obj.pk], "confirmed": "yes"}
    return factories.browser(user).post(address, data, follow=True)


RESETS = {  # the permissions of a member of the staff, and whether they may reset
    "may change posts": (("view_post", "change_post"), False),
    "may reset, but not change posts": (("view_post", "reset_counts"), False),
    "both": (("view_post", "change_post", "reset_counts"), True),
}


@pytest.mark.django_db
@pytest.mark.parametrize("name", RESETS)
def test_a_reset_needs_a_permission_of_its_own(name: str) -> None:
    permissions, may = RESETS[name]
    user = staff(*permissions)
    post = factories.post(view_count=5)
    page = factories.browser(user).get("/admin/site/post/").text
    assert ('value="reset_counts"' in page) is may
    reset(user, "/admin/site/post/", post)
    assert Post.objects.get().view_count == (0 if may else 5)


@pytest.mark.django_db
def test_superusers_may_reset() -> None:
    post = factories.post(view_count=5)
    reset(User.objects.create_superuser("root"), "/admin/site/post/", post)
    assert Post.objects.get().view_count == 0


class PlainAdmin(admin.ModelAdmin):
    """An admin that does not extend TrackedAdmin."""

    actions = [reset_counts]


plain = admin.AdminSite("plain")
plain.register(Post, PlainAdmin)
urlpatterns = [*urls_of_site, path("plain/", plain.urls)]


@pytest.mark.django_db
@pytest.mark.urls(__name__)
def test_a_reset_in_an_admin_of_another_base_needs_the_permission_too() -> None:
    post = factories.post(view_count=5)
    answer = reset(staff("view_post", "change_post"), "/plain/site/post/", post)
    assert answer.status_code == 403
    assert Post.objects.get().view_count == 5
    reset(staff("view_post", "change_post", "reset_counts"), "/plain/site/post/", post)
    assert Post.objects.get().view_count == 0


@pytest.mark.django_db(transaction=True)
def test_whoever_may_change_a_post_may_publish_it_again() -> None:
    category = factories.category()
    reader = factories.user()
    post = factories.post(category=category)
    tracker.mark_read(reader, [category])
    data = {"action": "publish_again", "_selected_action": [post.pk], "confirmed": "yes"}
    factories.browser(staff("view_post", "change_post")).post("/admin/site/post/", data)
    assert reports.unread(reader, [category]) == {category}


def test_the_admin_brings_no_library_that_only_long_commands_need(forks: Forks) -> None:
    code = """
import json, sys
import django
django.setup()
import readtrack.admin
from django.conf import settings
from django.test import Client
settings.ALLOWED_HOSTS = ["testserver"]
from django.core.management import load_command_class
load_command_class("readtrack", "readtrack").create_parser("manage.py", "readtrack")
page = Client().get("/admin/login/")
print(json.dumps([page.status_code, "tqdm" in sys.modules]))
"""
    ended = forks.run(code)
    assert ended.code == 0
    assert json.loads(ended.output) == [200, False]
