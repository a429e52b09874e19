"""Numbers are for editors, for the authors of what they are about, and for whom the site's rule
names.
"""

import csv
import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin import AdminSite
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.db.models import Model
from django.urls import path
from django.utils.functional import SimpleLazyObject
from django.utils.html import escape
from pytest_django import DjangoAssertNumQueries, Settings

from readtrack import buckets, subjects, tracker
from readtrack.access import may_view_numbers, numbers_url
from readtrack.admin import TrackedAdmin
from readtrack.dashboard.admin import Dashboard, DashboardAdmin
from readtrack.dashboard.navigation import TABS
from readtrack.flush.run import flush
from readtrack.numbers.models import Note
from readtrack.subjects import author_of, subject_of
from tests.site.models import Article, Category, Page, Post, Review
from tests.site.urls import urlpatterns as urls_of_site
from tests.support import factories

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"


def editor() -> User:
    user = factories.user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_numbers"))
    return user


# People by name: how to make one, and the answer for (the site, another's article, an article of
# their own).
PEOPLE: dict[str, tuple[Callable[[], User | None], tuple[bool, bool, bool]]] = {
    "anonymous": (lambda: None, (False, False, False)),
    "reader": (factories.user, (False, False, True)),
    "staff without the permission": (lambda: factories.user(is_staff=True), (False, False, True)),
    "editor": (editor, (True, True, True)),
    "superuser": (lambda: User.objects.create_superuser("root"), (True, True, True)),
}


def article(user: Any) -> Article:
    return Article.objects.create(author=user, category=factories.category())


@pytest.mark.parametrize("name", PEOPLE)
def test_editors_see_all_numbers_and_authors_their_own(name: str) -> None:
    make, expected = PEOPLE[name]
    user = make()
    other = article(factories.user())
    own = article(user)
    asked = user or AnonymousUser()
    assert tuple(may_view_numbers(asked, obj) for obj in (None, other, own)) == expected
    assert not may_view_numbers(None, own)


def test_the_permission_is_for_staff_only() -> None:
    user = editor()
    User.objects.filter(pk=user.pk).update(is_staff=False)
    assert not may_view_numbers(User.objects.get(pk=user.pk))


@pytest.mark.parametrize(
    "make", [factories.post, lambda: Article.objects.create(), factories.category]
)
def test_nobody_is_the_author_of_what_has_none(make: Callable[[], Model]) -> None:
    obj = make()
    assert author_of(obj) == ""
    assert not may_view_numbers(factories.user(), obj)


def test_a_key_to_another_model_names_no_author(monkeypatch: pytest.MonkeyPatch) -> None:
    user = factories.user()
    monkeypatch.setattr(Article, "news_author", "category")
    assert author_of(Article.objects.create(category=factories.category(pk=user.pk))) == ""


def test_a_lazy_object_has_its_author() -> None:
    user = factories.user()
    own = article(user)
    assert author_of(SimpleLazyObject(lambda: own)) == str(user.pk)  # type: ignore[arg-type]
    assert may_view_numbers(user, SimpleLazyObject(lambda: own))  # type: ignore[arg-type]


def test_a_child_is_of_the_author_of_the_parent_whose_numbers_it_shares(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user = factories.user(is_staff=True)
    child = Review.objects.create(title="x", stars=user.pk)
    monkeypatch.setattr(Review, "news_author", "stars")
    fields = {
        Review: Review._meta.get_field("stars")
    }  # in place of a foreign key, which would take another model
    monkeypatch.setattr(subjects, "author_field", fields.get)
    assert author_of(child) == str(user.pk)
    assert not may_view_numbers(user, child)
    assert factories.browser(user).get(page_of(child)).status_code == 403


def test_others_are_refused_without_a_query(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    user, other = factories.user(), article(factories.user())
    with django_assert_num_queries(0):
        assert not may_view_numbers(user, other)


def page_of(obj: Any) -> str:
    return f"/admin/readtrack/dashboard/object/{subject_of(obj)}/"


AUTHORS = "/admin/readtrack/dashboard/author/"
EXPORT = "?table=over-time&format=csv"
SITE_EXPORT = "?table=not-counted&format=csv"
MAY, NOT, LOGIN = 200, 403, 302

# What each of PEOPLE gets: of the site, of another's article, of their own.
PAGES: dict[str, tuple[Callable[[Any, Any], str], dict[str, int]]] = {
    "dashboard": (lambda own, other: DASHBOARD, {"editor": MAY, "superuser": MAY}),
    "its export": (lambda own, other: DASHBOARD + EXPORT, {"editor": MAY, "superuser": MAY}),
    "a filter for their own": (
        lambda own, other: f"{DASHBOARD}?object={subject_of(own)}",
        {"editor": LOGIN, "superuser": LOGIN},  # to its page
    ),
    "another's object": (lambda own, other: page_of(other), {"editor": MAY, "superuser": MAY}),
    "its export, too": (
        lambda own, other: page_of(other) + EXPORT,
        {"editor": MAY, "superuser": MAY},
    ),
    "their own object": (
        lambda own, other: page_of(own),
        dict.fromkeys(("staff without the permission", "editor", "superuser"), MAY),
    ),
    "the export of their own": (
        lambda own, other: page_of(own) + EXPORT,
        dict.fromkeys(("staff without the permission", "editor", "superuser"), MAY),
    ),
    "their report": (
        lambda own, other: AUTHORS,
        dict.fromkeys(("staff without the permission", "editor", "superuser"), MAY),
    ),
}


@pytest.mark.parametrize("name", PEOPLE)
def test_each_page_of_the_admin_is_for_those_who_may_see_its_numbers(name: str) -> None:
    user = PEOPLE[name][0]()
    other, own = article(factories.user()), article(user)
    refused, browser = NOT if user and user.is_staff else LOGIN, factories.browser(user)
    for page, (url, allowed) in PAGES.items():
        response = browser.get(url(own, other))
        assert response.status_code == allowed.get(name, refused), page
        response.getvalue()  # a file comes line by line


def test_an_authors_report_has_nothing_of_others() -> None:
    user = factories.user(is_staff=True)
    someone = factories.user(username="someone")
    own, other = article(user), article(someone)
    Article.objects.filter(pk=own.pk).update(title="Mine")
    for _ in range(7):
        tracker.record(factories.hit(subject_of(other)))
    tracker.record(factories.hit(subject_of(own)))
    flush()
    client, section = factories.browser(user), factories.category(name="Hidden")
    for address in (
        AUTHORS,
        f"{AUTHORS}?object={subject_of(other)}",
        f"{AUTHORS}?author={someone.pk}",
        f"{AUTHORS}?category={subject_of(section)}",
        *(f"{AUTHORS}?tab={tab}" for tab in TABS),
        f"{page_of(own)}?author={someone.pk}&object={subject_of(other)}",
    ):
        page = client.get(address).text
        content = page[page.index('id="content-main"') :]
        assert str(other) not in content, address
        assert "<dd>7</dd>" not in content
        for word in ("someone", "Hidden", "Not counted", "Last saved"):
            assert word not in content
    lines = b"".join(client.get(f"{AUTHORS}?table=most-viewed&format=csv")).decode().splitlines()
    assert [row[:2] for row in csv.reader(lines[1:])] == [[str(own), "1"]]
    assert client.get(AUTHORS + SITE_EXPORT).status_code == 404


def test_an_address_of_no_counted_row_is_not_found(admin_client: Any) -> None:
    for name in (
        "site.article:0",
        "site.category:1",
        "site.post:99999999999999999999",
        "x",
        "site.product:x",
    ):
        assert admin_client.get(f"/admin/readtrack/dashboard/object/{name}/").status_code == 404


def test_keys_of_text_have_a_page(admin_client: Any) -> None:
    page = Page.objects.create(slug="a/b%c é?#")
    tracker.record(factories.hit(subject_of(page)))
    address = numbers_url(page)
    response = admin_client.get(address)
    assert "1 view, " in response.text
    assert f"{escape(str(page))}" in response.text


def test_the_pages_lead_to_each_other(admin_client: Any, settings: Settings) -> None:
    user = factories.user(is_staff=True)
    own = article(user)
    post = factories.post(view_count=1234)
    assert re.search(
        rf'<a href="{page_of(post)}">1,234</a>', admin_client.get("/admin/site/post/").text
    )
    form = admin_client.get(f"/admin/site/post/{post.pk}/change/").text
    assert re.search(rf'<a href="{page_of(post)}"[^>]*>Numbers</a>', form)
    assert "dashboard/object/" not in admin_client.get("/admin/site/post/add/").text
    shown = admin_client.get(page_of(post)).text
    assert (
        f'<a href="{post.get_absolute_url()}" referrerpolicy="same-origin">View on site</a>'
        in shown
    )
    assert "Views of the last hour" not in shown  # which would have one row
    given = {"object": subject_of(post), "period": "28"}
    assert admin_client.get(DASHBOARD, given).url == f"{page_of(post)}?period=28"
    report = f"{DASHBOARD}?period=7&author={user.pk}"
    assert escape(report) in admin_client.get(page_of(own)).text
    assert AUTHORS in factories.browser(user).get(page_of(own)).text
    settings.READTRACK = {"VIEW_NUMBERS": f"{__name__}.sees_objects"}
    client = factories.browser(user)
    assert AUTHORS not in client.get(page_of(own)).text
    assert client.get(AUTHORS).status_code == 403
    assert client.get(page_of(own)).status_code == 200


def test_others_see_no_link_to_numbers() -> None:
    user = factories.user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=("view_post", "change_post")))
    post, client = factories.post(view_count=1234), factories.browser(user)
    assert page_of(post) not in client.get("/admin/site/post/").text
    assert "1,234" in client.get("/admin/site/post/").text
    assert "Numbers" not in client.get(f"/admin/site/post/{post.pk}/change/").text


def sees_objects(user: Any, obj: Any) -> bool:
    """A site's rule."""
    return obj is not None


def knows_category(user: Any, obj: Any) -> Any:
    """A site's rule."""
    if user.username == "broken":
        raise LookupError
    return "yes" if obj is None else isinstance(obj, Category)


def test_the_sites_own_rule_decides_alone(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.READTRACK = {"VIEW_NUMBERS": f"{__name__}.knows_category"}
    user = editor()
    asked = (None, article(user), factories.category())
    assert [may_view_numbers(user, obj) for obj in asked] == [False, False, True]
    assert not may_view_numbers(AnonymousUser(), asked[2])
    with caplog.at_level(logging.ERROR, logger="readtrack"):
        assert not may_view_numbers(factories.user(username="broken"), asked[2])
    assert "the numbers are not shown" in caplog.text


def allow(user: Any, obj: Any) -> bool:
    """Another rule."""
    return True


def is_editor_or_of_the_team(user: Any, obj: Any) -> bool:
    """The rule of docs/howto/numbers.md."""
    return obj is None and bool(user.username == "editor")


def test_whoever_may_see_the_site_may_see_each_object_at_every_address(settings: Settings) -> None:
    settings.READTRACK = {"VIEW_NUMBERS": f"{__name__}.is_editor_or_of_the_team"}
    client, post = (
        factories.browser(factories.user(username="editor", is_staff=True)),
        factories.post(),
    )
    for address in (f"{DASHBOARD}?object={subject_of(post)}", page_of(post)):
        assert client.get(address, follow=True).status_code == 200
    assert factories.browser(factories.user(is_staff=True)).get(page_of(post)).status_code == 403


def test_notes_are_of_the_whole_site() -> None:
    author = factories.user(is_staff=True)
    own = article(author)
    Note.objects.create(day=buckets.now().date(), text="Newsletter sent")
    for user, is_shown in ((author, False), (editor(), True)):
        client = factories.browser(user)
        for address in (page_of(own), AUTHORS):
            assert ("Newsletter sent" in client.get(address).text) is is_shown
            assert (b"Newsletter sent" in b"".join(client.get(address + EXPORT))) is is_shown


def test_an_author_has_no_link_to_the_apps_list() -> None:
    author = factories.user(is_staff=True)
    own = article(author)
    assert 'href="/admin/readtrack/"' not in factories.browser(author).get(page_of(own)).text
    assert factories.browser(author).get("/admin/readtrack/").status_code == 404
    assert 'href="/admin/readtrack/"' in factories.browser(editor()).get(page_of(own)).text


second = AdminSite("second")
second.register(Dashboard, DashboardAdmin)
second.register(Post, TrackedAdmin)
second.register(Article, TrackedAdmin)
urlpatterns = [*urls_of_site, path("second/", second.urls)]


@pytest.mark.urls(__name__)
def test_pages_of_a_second_admin_lead_to_its_own_pages(admin_client: Any) -> None:
    own = article(factories.user())
    for address in (
        "/second/site/article/",
        f"/second/site/article/{own.pk}/change/",
        f"/second/readtrack/dashboard/object/{subject_of(own)}/",
    ):
        page = admin_client.get(address).text
        assert 'href="/second/readtrack/dashboard/' in page
        assert 'href="/admin/' not in page


def test_whom_the_rule_names_has_the_dashboard_in_the_app_list(settings: Settings) -> None:
    client = factories.browser(factories.user(is_staff=True))
    assert DASHBOARD not in client.get("/admin/").text
    settings.READTRACK = {"VIEW_NUMBERS": f"{__name__}.allow"}
    assert DASHBOARD in client.get("/admin/").text
    assert client.get(DASHBOARD).status_code == 200
