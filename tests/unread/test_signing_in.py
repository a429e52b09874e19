"""A visitor signs in: what the browser has read without an account is read for the account."""

from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import alogin, login
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in
from django.db import connection
from django.http import HttpRequest
from django.test import Client, RequestFactory, override_settings
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.hits import readers
from readtrack.store import clock, keys, read_state, scripts
from readtrack.store.circuit import Page, circuit
from readtrack.unread import signing_in
from tests.site.models import Category, Shelf
from tests.support import factories
from tests.support.partitions import COUNT, slots_checked
from tests.support.waiting import making

pytestmark = pytest.mark.django_db

NOWHERE = "redis://127.0.0.1:1/0"
BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.fixture(params=["bitmap", "sequence"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


SEVERAL = pytest.param(16, marks=pytest.mark.needs_parts("cluster"))


# All tests may run with several partitions. Then one alone is refused.
@pytest.fixture(
    autouse=True,
    params=[1, SEVERAL] if COUNT == 1 else [SEVERAL],
    ids="{} partitions".format,
)
def _anonymous_readers(
    request: pytest.FixtureRequest, settings: Settings, form: str
) -> Iterator[None]:
    settings.READTRACK = {
        "DOTS": {"anonymous": 1_000_000, "form": form},
        "CLUSTER": {"partitions": request.param},
    }
    clock.ask()
    read_state.begin(0)
    if request.param == 1:
        yield
        return
    with slots_checked():
        yield


@pytest.fixture
def categories() -> list[Category]:
    """Returns categories of several partitions, where there are several."""
    return [factories.category() for _ in range(5)]


def browser_of_a_reader(*categories: Category) -> Client:
    """Returns a browser without an account that has read the categories."""
    browser = factories.browser()
    read(browser, categories[0])  # brings the cookie, and is no reader yet
    for category in categories:
        read(browser, category)
    return browser


def read(browser: Client, category: Category) -> None:
    assert browser.get(f"/categories/{category.pk}/").status_code == 200


def request_of(browser: Client) -> HttpRequest:
    """Returns a request that has the cookies and the session of the browser."""
    request = RequestFactory().get("/", headers={"User-Agent": factories.BROWSER})
    request.COOKIES.update({name: morsel.value for name, morsel in browser.cookies.items()})
    request.session = browser.session
    return request


def sign_in(browser: Client, user: User) -> None:
    answer = browser.post("/login/", {"username": user.username, "password": "secret"})
    assert answer.status_code == 302


def sign_out(browser: Client) -> None:
    assert browser.post("/logout/").status_code == 302


def test_signing_in_keeps_what_the_browser_has_read(ann: User, categories: list[Category]) -> None:
    sign_in(browser_of_a_reader(*categories[:3]), ann)
    assert reports.unread(ann, categories) == {*categories[3:]}


def test_what_was_published_before_the_sign_in_stays_new(
    ann: User, categories: list[Category], form: str
) -> None:
    category = categories[0]
    browser = browser_of_a_reader(category)
    for _ in range(2):
        tracker.mark_unread([category])
    sign_in(browser, ann)
    assert reports.unread_counts(ann, [category]) == {category: 1 if form == "bitmap" else 2}


def test_an_account_keeps_what_it_has_read_itself(ann: User, categories: list[Category]) -> None:
    old, new = categories[:2]
    browser = browser_of_a_reader(old)
    tracker.mark_unread([old])
    tracker.mark_read(ann, [old, new])
    sign_in(browser, ann)
    assert reports.unread(ann, [old, new]) == set()


def test_an_account_that_has_read_nothing_gets_its_first_number(categories: list[Category]) -> None:
    tracker.mark_read(factories.user(), categories)
    ann = factories.user()
    sign_in(browser_of_a_reader(*categories), ann)
    assert reports.unread(ann, categories) == set()


def test_the_next_account_in_the_same_browser_gets_nothing_of_the_first_one(
    ann: User, categories: list[Category]
) -> None:
    bob = factories.user()
    browser = browser_of_a_reader(*categories[:2])
    sign_in(browser, ann)
    sign_out(browser)
    sign_in(browser, bob)
    assert reports.unread(bob, categories) == {*categories}


def test_what_is_read_after_signing_out_goes_to_the_next_account_alone(
    ann: User, categories: list[Category]
) -> None:
    bob = factories.user()
    browser = browser_of_a_reader(categories[0])
    sign_in(browser, ann)
    read(browser, categories[1])
    sign_out(browser)
    read(browser, categories[2])
    sign_in(browser, bob)
    assert reports.unread(ann, categories) == {*categories[2:]}
    assert reports.unread(bob, categories) == {*categories} - {categories[2]}


def test_after_the_sign_in_the_browser_is_a_new_reader(
    ann: User, categories: list[Category]
) -> None:
    browser = browser_of_a_reader(*categories)
    sign_in(browser, ann)
    sign_out(browser)
    assert browser.get("/list/").text.count('class="readtrack-dot"') == len(categories)


def test_a_number_is_never_given_again(ann: User, categories: list[Category], redis: Redis) -> None:
    sign_in(browser_of_a_reader(*categories), ann)
    redis.delete(*[keys.readers_next(tag) for tag in keys.tags()])
    others = browser_of_a_reader(categories[0])
    assert others.get("/list/").text.count('class="readtrack-dot"') == len(categories) - 1


@pytest.mark.parametrize("attribute", ["_cached_user", "_acached_user"])
def test_whoever_signs_in_over_another_account_brings_nothing(
    ann: User, categories: list[Category], attribute: str
) -> None:
    request = request_of(browser_of_a_reader(*categories))
    setattr(request, attribute, factories.user())  # as Django keeps the user of a request
    login(request, ann, backend=BACKEND)
    assert reports.unread(ann, categories) == {*categories}


def test_a_sign_in_in_an_async_view_keeps_what_the_browser_has_read(
    ann: User, categories: list[Category]
) -> None:
    request = request_of(browser_of_a_reader(*categories))
    async_to_sync(alogin)(request, ann, backend=BACKEND)
    assert reports.unread(ann, categories) == set()


@pytest.mark.parametrize("request_of_app", [None, object(), HttpRequest()])
def test_a_sign_in_without_a_page_succeeds(ann: User, request_of_app: Any) -> None:
    user_logged_in.send(User, request=request_of_app, user=ann)


def test_a_browser_that_opts_out_brings_nothing(ann: User, categories: list[Category]) -> None:
    browser = browser_of_a_reader(*categories)
    browser.post(
        "/login/", {"username": ann.username, "password": "secret"}, headers={"Sec-GPC": "1"}
    )
    assert reports.unread(ann, categories) == {*categories}


def test_a_sign_in_without_redis_keeps_nothing_and_succeeds(
    ann: User, categories: list[Category], settings: Settings
) -> None:
    browser = browser_of_a_reader(*categories)
    nowhere = {"default": {**settings.CACHES["default"], "LOCATION": NOWHERE}}
    with override_settings(CACHES=nowhere):
        sign_in(browser, ann)
    circuit.close()
    assert reports.unread(ann, categories) == {*categories}


@pytest.mark.one_server("counts the commands of one server")
def test_without_anonymous_readers_a_sign_in_asks_redis_nothing(
    ann: User, settings: Settings, redis: Redis
) -> None:
    settings.READTRACK = {}
    before = redis.info("stats")["total_commands_processed"]
    sign_in(factories.browser(), ann)
    assert redis.info("stats")["total_commands_processed"] == before + 1  # this question


def test_a_visitor_who_has_read_nothing_costs_no_query(
    ann: User, categories: list[Category]
) -> None:
    browser = factories.browser()
    read(browser, categories[0])
    with CaptureQueriesContext(connection) as queries:
        sign_in(browser, ann)
    assert not [query for query in queries if "category" in query["sql"]]


def test_the_newest_rows_are_looked_at_and_no_more(
    ann: User, categories: list[Category], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing_in, "MOST_ROWS", 2)
    sign_in(browser_of_a_reader(*categories), ann)
    assert reports.unread(ann, categories) == {*categories[:3]}


def test_rows_are_looked_at_in_portions(
    ann: User, categories: list[Category], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts, "SLICE", 2)
    shelf = Shelf.objects.create(code="A")
    browser = browser_of_a_reader(*categories)
    sign_in(browser, ann)
    assert reports.unread(ann, [*categories, shelf]) == {shelf}


def test_a_page_that_has_waited_long_takes_nothing_over(
    ann: User, categories: list[Category], settings: Settings
) -> None:
    anonymous = f"{readers.ANONYMOUS}visitor"
    user = readers.reader_by_id(ann.pk)
    subjects = [f"site.category:{category.pk}" for category in categories]
    tracker.mark_subjects_read(anonymous, subjects)
    with making(Page(None, 1.0)):  # seconds, of TIMEOUT, which is 10
        assert signing_in.take_over(anonymous, user) == 0
    assert reports.unread(ann, categories) == {*categories}
