"""The page of the admin that says who has read an object."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin import AdminSite
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import path
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.admin import TrackedAdmin, mark_unread
from readtrack.audience.access import may_view_readers, readers_url
from readtrack.audience.admin import Readers, ReadersAdmin
from readtrack.store import keys
from readtrack.subjects import subject_of
from tests.conftest import Start
from tests.site.models import Category, Gadget, Instruction, Page
from tests.site.urls import urlpatterns as urls_of_site
from tests.support import factories
from tests.support.bounds import set_most_bits
from tests.support.forks import Forks
from tests.support.pseudo import unmarked
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

READERS = "/admin/readtrack/readers/"
OF_A_PAGE = 6  # queries: the session, its user and two of permissions; the object, and the users

second = AdminSite("second")
second.register(Readers, ReadersAdmin)
second.register(Category, TrackedAdmin)
urlpatterns = [*urls_of_site, path("second/", second.urls)]


def page_of(obj: Any) -> str:
    return f"{READERS}{subject_of(obj)}/"


def holder(*permissions: str, is_staff: bool = True, **values: Any) -> User:
    """Returns a user with these permissions, by default with that to see who has read what."""
    user = factories.user(is_staff=is_staff, **values)
    names = permissions or ("view_readers",)
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return user


@pytest.fixture
def client() -> Client:
    """Returns the browser of the user "viewer", who may see the page and has read nothing."""
    return factories.browser(holder(username="viewer"))


def shown(page: Any) -> dict[str, str]:
    """Returns the states on the page by the names of the users, as text."""
    cells = re.findall(r'<th scope="row"><bdi>(.*?)</bdi></th><td>(.*?)</td>', page.text)
    return {html.unescape(name): state for name, state in cells}


def content(page: Any) -> str:
    """Returns the part of the page that is readtrack's, without the footer."""
    text: str = page.text
    return text[text.index('<div id="content-main"') :].partition("<footer")[0]


def next_page(page: Any) -> str:
    """Returns the address of the next page; "" on the last one."""
    found = re.search(r'<a href="([^"]*)" rel="next"', page.text)
    return html.unescape(found[1]) if found else ""


PEOPLE: dict[str, Any] = {
    "anonymous": (lambda: None, 302),
    "reader": (factories.user, 302),
    "reader with the permission": (lambda: holder(is_staff=False), 302),
    "staff": (lambda: factories.user(is_staff=True), 403),
    "editor": (lambda: holder("view_numbers", "view_category", "view_user"), 403),
    "staff with the permission": (lambda: holder(is_staff=True), 200),
    "superuser": (lambda: User.objects.create_superuser("root"), 200),
}


@pytest.mark.parametrize("name", PEOPLE)
def test_the_page_is_for_staff_with_a_permission_of_its_own(name: str) -> None:
    make, status = PEOPLE[name]
    user = make()
    category = factories.category()
    assert may_view_readers(user) is (status == 200)
    browser = factories.browser(user)
    assert browser.get(page_of(category)).status_code == status
    # Nobody else is told what exists.
    assert browser.get(READERS + "site.category:999/").status_code == (
        404 if status == 200 else status
    )


def rule(user: Any, obj: Any) -> bool:
    """A site's rule about numbers."""
    return True


def test_a_rule_about_numbers_does_not_open_it(settings: Settings) -> None:
    settings.READTRACK = {"VIEW_NUMBERS": f"{__name__}.rule"}
    category = factories.category()
    assert (
        factories.browser(factories.user(is_staff=True)).get(page_of(category)).status_code == 403
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"DOTS": {"form": "sequence"}},
        {"DOTS": {"readers": "ordinal"}},
        pytest.param(
            {"MODELS": {"site.Category": {"read_state": "positions"}}},
            marks=pytest.mark.needs_parts("threads"),
        ),
    ],
    ids=["bitmap", "sequence", "ordinals", "positions"],
)
def test_each_user_is_said_to_have_read_it_or_not(
    client: Client, settings: Settings, redis: Redis, options: dict[str, Any]
) -> None:
    settings.READTRACK = options
    category = factories.category(name="Fire drill")
    users = [factories.user(username=name) for name in ("anna", "bert", "carl")]
    tracker.mark_unread([category])
    tracker.mark_read(users[1], [category])
    page = client.get(page_of(category))
    assert "<h2>Fire drill</h2>" in page.text
    assert shown(page) == {
        "viewer": "has not read it",
        "anna": "has not read it",
        "bert": "has read it",
        "carl": "has not read it",
    }
    assert shown(client.get(page_of(category), {"state": "read"})) == {"bert": "has read it"}
    unread = shown(client.get(page_of(category), {"state": "unread"}))
    assert [*unread] == ["viewer", "anna", "carl"]
    assert shown(client.get(page_of(category), {"state": "no such"})) == shown(page)
    tracker.mark_unread([category])
    assert {*shown(client.get(page_of(category))).values()} == {"has not read it"}


def test_users_who_are_gone_or_not_active_are_not_listed(client: Client) -> None:
    category = factories.category()
    gone, inactive, _other = (factories.user(username=name) for name in ("gone", "off", "other"))
    for user in (gone, inactive):
        tracker.mark_read(user, [category])
    pk = gone.pk
    gone.delete()
    User.objects.filter(pk=inactive.pk).update(is_active=False)
    assert shown(client.get(page_of(category))) == {
        "viewer": "has not read it",
        "other": "has not read it",
    }
    # The last user of the page before may go meanwhile.
    assert shown(client.get(page_of(category), {"after": pk})) == {"other": "has not read it"}


def test_anonymous_readers_are_not_listed(client: Client, settings: Settings) -> None:
    settings.READTRACK = {"DOTS": {"anonymous": 1_000_000}}
    category = factories.category()
    visitor = factories.browser()
    for _ in range(2):
        visitor.get(f"/categories/{category.pk}/")
    assert reports.reader_counts([category]) == {category: 1}
    assert shown(client.get(page_of(category))) == {"viewer": "has not read it"}


def test_a_user_without_dots_is_not_said_to_have_read_it(client: Client) -> None:
    set_most_bits(1_000_000)
    category = factories.category()
    factories.user(pk=5_000_000, username="far")
    everybody = {"viewer": "has not read it", "far": "not known"}
    assert shown(client.get(page_of(category))) == everybody
    assert shown(client.get(page_of(category), {"state": "unread"})) == everybody
    assert shown(client.get(page_of(category), {"state": "read"})) == {}


def test_250_users_take_three_pages_of_one_query_and_one_round_trip(
    client: Client, wire: Wire
) -> None:
    category = factories.category()
    users = User.objects.bulk_create(User(username=f"user {number}") for number in range(249))
    tracker.mark_unread([category])
    have_read = users[::3]
    for user in have_read:
        tracker.mark_read(user, [category])
    found: dict[str, str] = {}
    sizes, costs = [], []
    query = "?"
    while query:
        with CaptureQueriesContext(connection) as queries, wire.counted() as trips:
            page = client.get(page_of(category) + query)
        assert ("First page" in page.text) is (query != "?")
        of_users = [each for each in queries.captured_queries if "LIMIT 101" in each["sql"]]
        costs.append((len(of_users), *trips, len(queries)))
        sizes.append(len(shown(page)))
        found |= shown(page)
        query = next_page(page)
    assert sizes == [100, 100, 50]
    assert costs == [(1, 1, OF_A_PAGE)] * 3
    assert len(found) == 250
    assert [name for name, state in found.items() if state == "has read it"] == [
        user.username for user in have_read
    ]


def test_a_filter_looks_at_500_users_at_a_time(client: Client, wire: Wire) -> None:
    category = factories.category()
    users = User.objects.bulk_create(User(username=f"user {number}") for number in range(1_100))
    tracker.mark_unread([category])
    for user in (users[3], users[1_050]):
        tracker.mark_read(user, [category])
    found, costs = [], []
    query = "?state=read"
    while query:
        with CaptureQueriesContext(connection) as queries, wire.counted() as trips:
            page = client.get(page_of(category) + query)
        costs.append((*trips, len(queries)))
        found.append([*shown(page)])
        query = next_page(page)
        if not found[-1]:
            assert "There are none among these users." in page.text
    assert found == [["user 3"], [], ["user 1050"]]
    assert costs == [(1, OF_A_PAGE)] * 3


def test_a_page_of_a_filter_has_100_users_at_most(client: Client) -> None:
    category = factories.category()
    users = User.objects.bulk_create(User(username=f"user {number}") for number in range(101))
    tracker.mark_unread([category])
    first = client.get(page_of(category), {"state": "unread"})
    assert [*shown(first)] == ["viewer", *(user.username for user in users[:99])]
    last = client.get(page_of(category) + next_page(first))
    assert [*shown(last)] == [user.username for user in users[99:]]
    assert next_page(last) == ""


def test_a_list_without_users_says_why(client: Client) -> None:
    category = factories.category()
    assert "Nobody has read it." in client.get(page_of(category), {"state": "read"}).text
    tracker.mark_read(User.objects.get(), [category])
    assert "Everybody has read it." in client.get(page_of(category), {"state": "unread"}).text
    page = client.get(page_of(category), {"after": 10**9})
    assert "There are none among these users." in page.text
    assert "First page" in page.text


@pytest.mark.parametrize("state", ["", "read", "unread"])
def test_without_redis_the_page_says_that_it_is_not_known(
    client: Client, start_redis: Start, state: str
) -> None:
    valkey = start_redis()
    category = factories.category()
    valkey.stop()
    page = client.get(page_of(category), {"state": state})
    assert page.status_code == 200
    assert "Redis does not answer, so it is not known now who has read it." in page.text
    assert "viewer" not in content(page)


def test_what_redis_has_lost_is_not_said_to_be_unread(client: Client, redis: Redis) -> None:
    category = factories.category()
    for tag in keys.tags():
        redis.delete(keys.reads_began(tag))
    page = client.get(page_of(category))
    assert "Redis lost what readers have read" in page.text
    assert shown(page) == {}


def test_names_are_text(client: Client) -> None:
    category = factories.category(name="<i>Drill</i>")
    factories.user(username="<b>eve</b>", first_name="<script>", last_name="Eve & co")
    page = client.get(page_of(category))
    assert "<script> Eve & co (<b>eve</b>)" in shown(page)
    for markup in ("<b>eve", "<script> Eve", "<i>Drill"):
        assert markup not in page.text


@pytest.mark.parametrize(
    "name",
    [
        "site.category:999",
        "site.category:",
        "site.category:x",
        "site.category:9" + 30 * "9",
        "site.category:%00",
        "site.category:%2500",
        "site.post:1",  # has no read state
        "site.page:a%2500b",
        "site.nothing:1",
        "auth.user:1",
        "nothing",
        "%00",
        "%ED%A0%80",
    ],
)
def test_an_address_of_nothing_with_read_state_is_not_found(client: Client, name: str) -> None:
    factories.post(pk=1)
    assert client.get(f"{READERS}{name}/").status_code == 404


@pytest.mark.parametrize("after", ["x", "-1", "9" * 30, "\0", "1" * 5_000, "é"])
def test_a_place_in_the_list_that_there_is_not_is_the_first_page(
    client: Client, after: str
) -> None:
    page = client.get(page_of(factories.category()), {"after": after})
    assert shown(page) == {"viewer": "has not read it"}


def test_keys_of_any_kind_have_a_page(client: Client, settings: Settings) -> None:
    models = {label: {"read_state": True} for label in ("site.Gadget", "site.Page", "site.Manual")}
    settings.READTRACK = {"MODELS": models}
    objs = [
        Gadget.objects.create(name="A"),
        Page.objects.create(slug="a/b%c é?#"),
        Instruction.objects.create(title="A"),
    ]
    for obj in objs:
        tracker.mark_read(User.objects.get(), [obj])
        assert shown(client.get(readers_url(obj))) == {"viewer": "has read it"}


@pytest.mark.urls(__name__)
def test_the_form_and_the_page_lead_to_each_other() -> None:
    user = holder("view_readers", "view_numbers", "view_category")
    browser = factories.browser(user)
    category = factories.category()
    form_address = f"/second/site/category/{category.pk}/change/"
    form = browser.get(form_address).text
    assert re.search(r'<a href="([^"]*)"[^>]*>Who has read it</a>', form)[1] == (  # type: ignore[index]
        f"/second/readtrack/readers/{subject_of(category)}/"
    )
    assert ">Numbers<" not in form  # it is not counted
    page = browser.get(f"/second/readtrack/readers/{subject_of(category)}/").text
    assert f'<a href="{form_address}">{category}</a>' in page
    assert 'href="/admin/' not in page
    # Posts have no form in this admin.
    user.user_permissions.set(Permission.objects.filter(codename="view_readers"))
    assert form_address not in browser.get(readers_url(category, site="second")).text


@pytest.mark.urls(__name__)
def test_only_those_who_may_see_the_page_have_the_link() -> None:
    browser = factories.browser(holder("view_category", "view_numbers"))
    form = browser.get(f"/second/site/category/{factories.category().pk}/change/").text
    assert "Who has read it" not in form


def test_what_has_no_read_state_has_no_link(admin_client: Client, settings: Settings) -> None:
    post = factories.post()
    address = f"/admin/site/post/{post.pk}/change/"
    assert readers_url(post) == ""
    assert "Who has read it" not in admin_client.get(address).text
    settings.READTRACK = {"MODELS": {"site.Post": {"read_state": True}}}
    assert "Who has read it" in admin_client.get(address).text
    assert "Who has read it" not in admin_client.get("/admin/site/post/add/").text
    # Its form, where the admin has one, is a step above the page.
    assert f'<a href="{address}">' in admin_client.get(page_of(post)).text


@pytest.mark.urls("tests.site.no_urls")
def test_a_site_without_an_admin_has_no_page() -> None:
    assert readers_url(factories.category()) == ""


def test_a_model_that_is_not_counted_has_no_counts_to_reset() -> None:
    assert TrackedAdmin(Category, second).actions == [mark_unread]


@pytest.mark.usefixtures("pseudo")
def test_every_word_of_the_page_is_marked_for_translation(
    client: Client, start_redis: Start
) -> None:
    category = factories.category(name="1")
    tracker.mark_read(factories.user(username="2"), [category])
    pages = [client.get(page_of(category), {"state": state}) for state in ("", "read", "unread")]
    pages.append(client.get(page_of(category), {"state": "read", "after": str(10**9)}))
    start_redis().stop()
    pages.append(client.get(page_of(category)))
    for page in pages:
        text = re.sub(r"<code>.*?</code>|<[^>]*>|&\w+;", " ", content(page))
        assert set(unmarked(text)) <= {"viewer"}
    assert "⟦has not read it⟧" in pages[0].text


SITE = """
import sys

import django
from django.conf import settings

settings.configure(
    SECRET_KEY="x",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": sys.argv[1]}},
    INSTALLED_APPS=[
        "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes",
        "django.contrib.messages", "django.contrib.sessions", "readtrack", "readtrack.audience",
        "club",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "readtrack.middleware.ReadTrackMiddleware",
    ],
    TEMPLATES=[{
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": [
            "django.template.context_processors.request",
            "django.contrib.auth.context_processors.auth",
            "django.contrib.messages.context_processors.messages",
        ]},
    }],
    STATIC_URL="/static/",
    ROOT_URLCONF="club.urls",
    AUTH_USER_MODEL="club.Member",
    READTRACK={"TIMEOUT": 10.0, "MODELS": {"club.Notice": {"read_state": True}}},
)
django.setup()
from django.core.management import call_command
from django.test import Client
from django.test.utils import setup_test_environment

from club.models import Member, Notice
from readtrack import reports, tracker

setup_test_environment()  # which keeps the contexts of pages
call_command("migrate", run_syncdb=True, verbosity=0)
members = [Member.objects.create(email=f"{name}@example.com") for name in ("root", "a", "b")]
notice = Notice.objects.create()
tracker.mark_read(members[1], [notice])
client = Client()
client.force_login(members[0])
address = f"/admin/readtrack/readers/club.notice:{notice.pk}/"
print(client.get(f"/admin/club/notice/{notice.pk}/change/").text.count(address))
query = "?"
while query:
    page = client.get(address + query)
    print(*sorted(f"{name}: {state}" for name, state in page.context["rows"]), sep="\\n")
    query = page.context["next_page"]
"""
MODELS = """
import uuid

from django.contrib.auth.models import AbstractBaseUser
from django.db import models


class Member(AbstractBaseUser):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    email = models.EmailField(unique=True)
    USERNAME_FIELD = "email"
    is_staff = True

    def has_perm(self, permission, obj=None):
        return True

    has_module_perms = has_perm


class Notice(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
"""
ADMIN = """
from django.contrib import admin

from club.models import Notice
from readtrack.admin import TrackedAdmin

admin.site.register(Notice, TrackedAdmin)
"""
URLS = """
from django.contrib import admin
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]
"""


def test_users_of_a_model_of_the_sites_own_are_listed_by_its_names(
    bare_forks: Forks, tmp_path: Path, redis_url: str
) -> None:
    app = tmp_path / "club"
    app.mkdir()
    files = {"__init__": "", "models": MODELS, "admin": ADMIN, "urls": URLS}
    for name, code in files.items():
        (app / f"{name}.py").write_text(code)
    ended = bare_forks.run(SITE, redis_url, folder=tmp_path)
    assert ended.output.splitlines() == [
        "1",
        "a@example.com: has read it",
        "b@example.com: has not read it",
        "root@example.com: has not read it",
    ]
