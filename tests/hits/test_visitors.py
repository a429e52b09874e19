"""Visitors: which requests come from the same visitor, and which data of a visitor is stored."""

import pickle
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import alogin, alogout
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from django.utils.cache import patch_cache_control
from django.utils.functional import SimpleLazyObject
from pytest_django import DjangoAssertNumQueries, Settings

from readtrack import reports
from readtrack.hits import visitors
from readtrack.hits.visitors import digest
from tests.support import factories
from tests.support.factories import BROWSER
from tests.support.forks import Forks


def identity(rf: Any, *, address: str = "192.0.2.1", agent: str = BROWSER) -> str:
    """Returns the id of a visitor without a cookie."""
    found = visitors.visitor(rf.get("/", REMOTE_ADDR=address, headers={"User-Agent": agent}), None)
    return found.fallback_id or found.id


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("", "unix:", True),
    ],
)
def test_an_address_is_a_household(rf: Any, one: str, other: str, is_same: bool) -> None:
    assert (identity(rf, address=one) == identity(rf, address=other)) == is_same


def test_two_browsers_at_one_address_are_two_visitors(rf: Any) -> None:
    assert identity(rf) != identity(rf, agent="Another/1.0")


def test_an_endless_agent_is_cut(rf: Any) -> None:
    assert identity(rf, agent="x" * 10_000) == identity(rf, agent="x" * 20_000)


def test_a_site_may_do_without_cookies(rf: Any, settings: Settings) -> None:
    settings.READTRACK = {"COOKIE": {"name": ""}}
    request = rf.get("/", headers={"User-Agent": BROWSER})
    assert visitors.visitor(request, None).new_cookie == ""
    assert visitors.visitor(request, None) == visitors.visitor(request, None)


def test_a_user_is_the_same_visitor_anywhere_and_another_user_is_not(rf: Any) -> None:
    one, other = User(pk=1), User(pk=2)
    here, there = rf.get("/", REMOTE_ADDR="192.0.2.1"), rf.get("/", REMOTE_ADDR="192.0.2.2")
    assert visitors.visitor(here, one) == visitors.visitor(there, one)
    assert visitors.visitor(here, one) != visitors.visitor(here, other)


def test_nothing_personal_is_kept(rf: Any) -> None:
    request = rf.get("/", REMOTE_ADDR="192.0.2.1", headers={"User-Agent": BROWSER})
    for found in (visitors.visitor(request, None), visitors.visitor(request, User(pk=1234567))):
        assert "192.0" not in str(found[:2])
        assert "1234567" not in str(found[:2])


def test_an_authenticated_user_is_signed_in(rf: Any) -> None:
    request = rf.get("/")
    assert visitors.signed_in(request) is None
    request.user = AnonymousUser()
    assert visitors.signed_in(request) is None
    request.user = User(pk=1)
    assert visitors.signed_in(request) == request.user


def with_session(request: Any) -> Any:
    """Returns the request as Django's own middleware passes it on."""
    SessionMiddleware(lambda request: HttpResponse()).process_request(request)
    AuthenticationMiddleware(lambda request: HttpResponse()).process_request(request)
    return request


@pytest.mark.django_db
@pytest.mark.parametrize("has_cookie", [False, True])
def test_a_user_who_signs_in_or_out_in_the_view_is_judged_by_the_state_at_its_end(
    rf: Any, *, has_cookie: bool
) -> None:
    request, user = with_session(rf.get("/")), factories.user()
    if has_cookie:
        request.COOKIES["sessionid"] = "none of ours"

    async def visit() -> None:
        assert not (await request.auser()).is_authenticated
        assert await visitors.asigned_in(request) is None
        await alogin(request, user)
        assert visitors.signed_in(request) == user
        assert await visitors.asigned_in(request) == user
        await alogout(request)
        assert visitors.signed_in(request) is None
        assert await visitors.asigned_in(request) is None

    async_to_sync(visit)()


@pytest.mark.django_db
@pytest.mark.parametrize("prepare", [lambda request: request, with_session])
def test_a_user_that_a_token_names_needs_no_session(prepare: Any, rf: Any) -> None:
    user = factories.user()

    def request() -> Any:
        found = prepare(rf.get("/"))
        found.user = SimpleLazyObject(lambda: User.objects.get(pk=user.pk))
        return found

    assert visitors.signed_in(request()) == user
    assert async_to_sync(visitors.asigned_in)(request()) == user


class SessionByHeader(SessionMiddleware):
    """Takes the session's key from a header, as sites do for their apps."""

    def process_request(self, request: HttpRequest) -> None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        key = token if scheme == "Session" else request.headers.get("X-Session-Token")
        request.session = self.SessionStore(key)


@pytest.mark.django_db
@pytest.mark.parametrize("header", ["X-Session-Token", "Authorization"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_user_whose_session_comes_by_a_header_is_signed_in(
    settings: Settings, header: str, *, is_async: bool
) -> None:
    user, category = factories.user(), factories.category()
    post = factories.post(category=category)
    signing_in = Client()
    signing_in.force_login(user)
    key = signing_in.cookies["sessionid"].value
    token = f"Session {key}" if header == "Authorization" else key
    settings.MIDDLEWARE = [f"{__name__}.SessionByHeader", *settings.MIDDLEWARE[1:]]
    headers = {header: token, "User-Agent": "okhttp/4.12.0"}

    async def visit(page: str) -> Any:
        return await AsyncClient().get(page, headers=headers)

    def get(page: str) -> Any:
        return async_to_sync(visit)(page) if is_async else Client().get(page, headers=headers)

    assert "unread" in get("/list/").text
    get(f"/categories/{category.pk}/")
    assert reports.unread(user, [category]) == set()
    assert "unread" not in get("/list/").text
    get(f"/posts/{post.pk}/")
    assert reports.views([post]) == {post: 1}


@pytest.mark.django_db
def test_a_user_without_a_session_is_not_looked_up(
    rf: Any, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    request = with_session(rf.get("/"))
    with django_assert_num_queries(0):
        assert visitors.signed_in(request) is None
        assert async_to_sync(visitors.asigned_in)(request) is None
    assert not request.session.accessed


def test_a_digest_is_short_stable_and_safe_in_keys_and_pages() -> None:
    assert digest("visitor", "user:1") == digest("visitor", "user:1")
    assert len(digest("visitor", "ü:*{}\ud800")) == 16
    assert digest("visitor", "a*b").replace("-", "").replace("_", "").isalnum()


def test_purposes_and_secrets_keep_digests_apart(settings: Settings) -> None:
    found = [digest("visitor", "user:1"), digest("placeholder", "user:1")]
    settings.SECRET_KEY = "another"
    found.append(digest("visitor", "user:1"))
    settings.READTRACK = {"SECRET": "a third"}
    found.append(digest("visitor", "user:1"))
    assert len(set(found)) == 4


def test_a_cookie_tells_nothing_of_the_id_and_a_new_key_makes_another(
    rf: Any, settings: Settings
) -> None:
    new = visitors.visitor(rf.get("/"), None)
    request = rf.get("/", headers={"Cookie": f"anon_id={new.new_cookie}"})
    assert visitors.visitor(request, None) == visitors.Visitor(new.id)
    assert len(new.id) == 16
    assert new.id not in new.new_cookie
    settings.READTRACK = {"SECRET": "another"}
    assert visitors.visitor(request, None).new_cookie


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "; HttpOnly; Max-Age=31536000; Path=/; SameSite=Lax"),
        (
            {"domain": "news.example", "samesite": "None"},
            "; Domain=news.example; HttpOnly; Max-Age=31536000; Path=/; SameSite=None",
        ),
        ({"secure": True, "max-age": ""}, "; HttpOnly; Path=/; SameSite=Lax; Secure"),
    ],
)
def test_a_cookie_is_sent_as_others_of_the_site_change_it(
    rf: Any, changes: dict[str, Any], text: str
) -> None:
    request, response = rf.get("/"), HttpResponse()
    new = visitors.visitor(request, None)
    visitors.set_cookie(request, response, new)
    cookie = response.cookies["anon_id"]
    cookie.update(changes)
    for same in (cookie, cookie.copy(), pickle.loads(pickle.dumps(cookie))):
        assert same.OutputString() == f"anon_id={new.new_cookie}{text}"
    assert cookie.OutputString(["path"]) == f"anon_id={new.new_cookie}; Path=/"


@pytest.mark.parametrize(
    "before", [{}, {"Vary": "Accept"}, {"cache-control": "max-age=60"}], ids=str
)
@pytest.mark.parametrize("is_known", [True, False], ids=["", "without Django's own attribute"])
def test_a_response_with_a_new_cookie_is_for_its_visitor_alone(
    rf: Any, monkeypatch: pytest.MonkeyPatch, *, before: dict[str, str], is_known: bool
) -> None:
    request, response, expected = (
        rf.get("/"),
        HttpResponse(headers=before),
        HttpResponse(headers=before),
    )
    patch_cache_control(expected, private=True)
    if not is_known:
        monkeypatch.setattr(visitors, "HEADERS_ATTRIBUTE", "gone")
    visitors.set_cookie(request, response, visitors.visitor(request, None))
    assert sorted(response.items()) == sorted(expected.items())


def test_new_cookies_differ_from_each_other_and_from_those_of_a_forked_process(
    forks: Forks,
) -> None:
    code = """
import os
from readtrack.hits.visitors import _new_cookie
_new_cookie()
reading, writing = os.pipe()
child = os.fork()
if child: os.close(writing)
names = [_new_cookie()[0].partition(":")[0] for _ in range(600)]
if child:
    with open(reading) as told: names += told.read().split()
    assert os.waitpid(child, 0)[1] == 0
    assert len({*names}) == 1200 and {*map(len, names)} == {22}
else: os.write(writing, " ".join(names).encode())
"""
    assert forks.run(code).code == 0
