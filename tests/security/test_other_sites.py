"""What the endpoints and pages answer to requests that another site's page may have sent: by method,
by what the browser says of the request (`Sec-Fetch-…`, `Origin`), and by what signs the reader in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from pytest_django import Settings
from redis import Redis

from readtrack import reports
from readtrack.hits.origins import is_foreign, is_foreign_part
from readtrack.script import shown
from tests.site.models import Post
from tests.site.urls import urlpatterns as site_urls
from tests.support import factories
from tests.support.rows import each_row

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls(__name__),
]

SCRIPT = "/readtrack/page.js"
READ = "/readtrack/read/"
CHROME = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 "
    "Safari/537.36"
)
SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 15_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/15.6 Mobile/15E148 Safari/604.1"
)
EXPLORER = "Mozilla/5.0 (Windows NT 10.0; WOW64; Trident/7.0; rv:11.0) like Gecko"


def read_page(request: Any, pk: int) -> HttpResponse:
    post = Post.objects.get(pk=pk)
    request.readtrack.view(post)
    request.readtrack.read(post.category)
    return HttpResponse("a post")


urlpatterns = [*site_urls, path("read/<int:pk>/", read_page)]


@pytest.fixture(autouse=True)
def _trusted(settings: Settings) -> None:
    settings.READTRACK = {"RATE": (0, 10)}  # all rows of a table are of one visitor
    settings.CSRF_TRUSTED_ORIGINS = ["https://front.example", "https://*.partner.example"]


def fetched(site: str, mode: str, destination: str, origin: str = "") -> dict[str, str]:
    """Returns what a browser says of a request on https."""
    said = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": destination}
    return {**said, "Origin": origin} if origin else said


# Pages: each row is what the browser says, and whether the view counts and the dot goes out.
PARTS = ["audio", "image", "script", "style", "video", "worker", "serviceworker", "manifest"]
FRAMES = ["iframe", "frame", "embed", "object", "fencedframe"]
PAGES: dict[str, tuple[dict[str, str], bool]] = {
    "nothing": ({}, True),
    "a typed address": (fetched("none", "navigate", "document"), True),
    "a link of the site": (fetched("same-origin", "navigate", "document"), True),
    "a link of another site": (fetched("cross-site", "navigate", "document"), True),
    "a link of a sister site": (fetched("same-site", "navigate", "document"), True),
    "a link, by a service worker": (fetched("cross-site", "navigate", "empty"), True),
    "a link, by Chrome 79": ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, True),
    "own fetch": (fetched("same-origin", "cors", "empty"), True),
    "own fetch, no-cors": (fetched("same-origin", "no-cors", "empty"), True),
    **{f"own {name}": (fetched("same-origin", "navigate", name), True) for name in FRAMES},
    **{f"own {name}": (fetched("same-origin", "no-cors", name), False) for name in PARTS},
    "an extension's fetch": (fetched("none", "cors", "empty"), True),
    "a trusted fetch": (fetched("cross-site", "cors", "empty", "https://front.example"), True),
    "a trusted subdomain": (
        fetched("cross-site", "cors", "empty", "https://a.partner.example"),
        True,
    ),
    "a trusted sister": (fetched("same-site", "cors", "empty", "https://front.example"), True),
    "trusted, without CORS": (fetched("cross-site", "no-cors", "empty"), False),
    "trusted, another scheme": (
        fetched("cross-site", "cors", "empty", "http://front.example"),
        False,
    ),
    "trusted, another port": (
        fetched("cross-site", "cors", "empty", "https://front.example:8443"),
        False,
    ),
    "a wildcard's lookalike": (
        fetched("cross-site", "cors", "empty", "https://evilpartner.example"),
        False,
    ),
    "trusted as a user name": (
        fetched("cross-site", "cors", "empty", "https://front.example@evil.example"),
        False,
    ),
    "a trusted image": (fetched("cross-site", "cors", "image", "https://front.example"), False),
    **{
        f"{site}, {mode}": (fetched(site, mode, "empty"), False)
        for site in ("cross-site", "same-site", "something new")
        for mode in ("cors", "no-cors", "same-origin", "websocket", "")
    },
    **{
        f"{site}, {name}": (fetched(site, "navigate", name), False)
        for site in ("cross-site", "same-site")
        for name in FRAMES
    },
    **{
        f"{site}, {name}": (fetched(site, "no-cors", name), False)
        for site in ("cross-site", "same-site")
        for name in PARTS
    },
    "prefetch as a document": (fetched("cross-site", "no-cors", "document"), False),
    "EventSource": (fetched("cross-site", "cors", "empty", "https://evil.example"), False),
    "the own origin, said by a sister": (
        fetched("same-site", "cors", "empty", "http://testserver"),
        False,
    ),
    "a sandboxed frame's fetch": (fetched("cross-site", "cors", "empty", "null"), False),
    "a broken origin": (fetched("cross-site", "cors", "empty", "https://["), False),
}

# Without Sec-Fetch headers: on plain http, and Safari before 16.4.
EVERY_BROWSER = {"Accept-Encoding": "gzip, deflate", "Accept-Language": "en-US,en;q=0.9"}
TAB = {**EVERY_BROWSER, "Accept": "text/html,*/*;q=0.8", "Upgrade-Insecure-Requests": "1"}
FETCH = {**EVERY_BROWSER, "Accept": "*/*"}
FOREIGN = {"Referer": "http://evil.example/"}
OWN = {"Referer": "http://testserver/list/"}
ON_PLAIN_HTTP: dict[str, tuple[dict[str, str], bool]] = {
    "a tab": (TAB, True),
    "a tab, from a link": ({**TAB, **FOREIGN}, True),
    "a tab, after a form of another site": ({**TAB, "Origin": "http://evil.example"}, True),
    "own fetch": ({**FETCH, **OWN}, True),
    "own fetch, CORS": ({**FETCH, "Origin": "http://testserver"}, True),
    "own fetch, behind TLS": ({**FETCH, "Origin": "https://testserver"}, True),
    "own fetch of HTML": ({**FETCH, **OWN, "Accept": "text/html, application/xhtml+xml"}, True),
    "own image": ({**FETCH, **OWN, "Accept": "image/avif,image/webp,*/*;q=0.8"}, False),
    "own style": ({**FETCH, **OWN, "Accept": "text/css,*/*;q=0.1"}, False),
    "own video": ({**FETCH, **OWN, "Accept": "video/webm,video/ogg,*/*;q=0.5"}, False),
    "trusted fetch": ({**FETCH, "Origin": "https://front.example"}, True),
    "foreign fetch": ({**FETCH, "Origin": "http://evil.example"}, False),
    "foreign fetch, no-cors": ({**FETCH, **FOREIGN}, False),
    "foreign fetch, hidden": (FETCH, False),
    "foreign fetch, like a tab": (
        {**FETCH, "Accept": "text/html,application/xhtml+xml", "Accept-Language": ""},
        False,
    ),
    "foreign fetch of Safari": ({**FETCH, "User-Agent": SAFARI}, False),
    "foreign fetch of Chrome": ({**FETCH, "User-Agent": CHROME}, False),
    "foreign fetch, broken referrer": ({**FETCH, "Referer": "http://["}, False),
    "foreign fetch, lookalike": ({**FETCH, "Referer": "http://testserver.evil.example/"}, False),
    "foreign fetch, user name": ({**FETCH, "Referer": "http://testserver@evil.example/"}, False),
    "a sandboxed frame's fetch": ({**FETCH, "Origin": "null"}, False),
    "foreign WebSocket": ({**EVERY_BROWSER, "Origin": "http://evil.example"}, False),
    # Programs with the agent of a browser.
    "a test client": ({}, True),
    "a test client of Chrome": ({"User-Agent": CHROME}, True),
    "a test client, from a link": (FOREIGN, True),
    "a test of a language": ({"Accept-Language": "de"}, True),
    "a test of compression": ({"Accept-Encoding": "gzip"}, True),
    "curl": ({"Accept": "*/*", "User-Agent": CHROME}, True),
    "requests": ({"Accept": "*/*", "Accept-Encoding": "gzip", "Connection": "keep-alive"}, True),
    "a server of Node": ({**FETCH, "Accept-Language": "*", "Sec-Fetch-Mode": "cors"}, True),
    "an old browser": ({**FETCH, **FOREIGN, "User-Agent": EXPLORER}, True),
}


@each_row(("headers", "counts"), PAGES.values(), ids=PAGES)
def test_a_page_counts_and_puts_dots_out_for_whom_it_is_meant(
    headers: dict[str, str], counts: bool
) -> None:
    check(headers, counts=counts)


@each_row(("headers", "counts"), ON_PLAIN_HTTP.values(), ids=ON_PLAIN_HTTP)
def test_without_fetch_metadata_a_page_counts_for_tabs_own_pages_and_programs(
    headers: dict[str, str], counts: bool
) -> None:
    check(headers, counts=counts)


@pytest.fixture
def post() -> Post:
    return new_post()


def new_post() -> Post:
    return factories.post(category=factories.category())


def check(headers: dict[str, str], *, counts: bool) -> None:
    """Opens a new page as a visitor, and as a user; both count, or neither does."""
    post = new_post()
    assert post.category
    user = factories.user()
    for client in (factories.browser(), factories.browser(user)):
        client.get(f"/read/{post.pk}/", headers=headers)
    assert reports.views([post]) == {post: 2 * counts}
    assert (reports.unread(user, [post.category]) == set()) == counts


def test_behind_a_proxy_the_host_is_the_one_that_the_proxy_names(
    settings: Settings, post: Post
) -> None:
    settings.USE_X_FORWARDED_HOST = True
    settings.ALLOWED_HOSTS = ["*"]
    asked = {**FETCH, "Host": "127.0.0.1:8000", "X-Forwarded-Host": "site.example"}
    foreign = {"Referer": "http://evil.example/"}
    for headers, views in ((foreign, 0), ({"Referer": "http://site.example/"}, 1)):
        factories.browser().get(f"/read/{post.pk}/", headers={**asked, **headers})
        assert reports.views([post]) == {post: views}


@pytest.mark.parametrize("method", ["head", "post", "put", "options"])
def test_no_other_method_counts_whatever_the_browser_says(post: Post, method: str) -> None:
    for headers, _ in PAGES.values():
        getattr(factories.browser(), method)(f"/read/{post.pk}/", headers=headers)
    assert reports.views([post]) == {post: 0}


@pytest.mark.needs_parts("numbers")
def test_a_foreign_fetch_takes_no_step(post: Post) -> None:
    from readtrack.numbers import reports as numbers_reports

    foreign = fetched("cross-site", "no-cors", "empty")
    link = fetched("cross-site", "navigate", "document")
    for headers, steps in ((foreign, 0), (link, 1)):
        factories.browser().post(f"/posts/{post.pk}/buy/", headers=headers)
        assert numbers_reports.funnel(post)[-1].count == steps


# What may be sent by POST: each row is what the browser says, and whether it is heard.
SENT: dict[str, tuple[dict[str, str], bool]] = {
    "an app": ({}, True),
    "own": (fetched("same-origin", "cors", "empty", "http://testserver"), True),
    "own form": (fetched("same-origin", "navigate", "document", "http://testserver"), True),
    "own, without metadata": ({"Origin": "http://testserver"}, True),
    "own, behind TLS": ({"Origin": "https://testserver"}, True),
    "own, with a policy of no referrer": (fetched("same-origin", "cors", "empty", "null"), True),
    "trusted": (fetched("cross-site", "cors", "empty", "https://front.example"), True),
    "trusted subdomain": (
        fetched("cross-site", "cors", "empty", "https://a.partner.example"),
        True,
    ),
    "trusted, without metadata": ({"Origin": "https://front.example"}, True),
    "trusted, another scheme": ({"Origin": "http://front.example"}, False),
    "foreign form": (fetched("cross-site", "navigate", "document", "https://evil.example"), False),
    "foreign form, hidden": (fetched("cross-site", "navigate", "document", "null"), False),
    "foreign fetch": (fetched("cross-site", "no-cors", "empty", "https://evil.example"), False),
    "foreign beacon": (fetched("cross-site", "no-cors", "empty"), False),
    "foreign form in a frame": (fetched("cross-site", "navigate", "iframe", "null"), False),
    "sister's form": (fetched("same-site", "navigate", "document", "http://b.testserver"), False),
    "foreign, without metadata": ({"Origin": "http://evil.example"}, False),
    "lookalike": ({"Origin": "http://testserver.evil.example"}, False),
    "another port": ({"Origin": "http://testserver:8000"}, False),
    "sandboxed, without metadata": ({"Origin": "null"}, False),
    "empty": ({"Origin": ""}, False),
    "broken": ({"Origin": "http://["}, False),
}
sent = each_row(("headers", "is_heard"), SENT.values(), ids=SENT)


@sent
def test_the_script_is_heard_from_own_and_trusted_pages(
    headers: dict[str, str], is_heard: bool
) -> None:
    post = new_post()
    token = shown.token_of(f"/read/|0|0|site.post:{post.pk}|", ())
    answer = factories.browser().post(SCRIPT, token, content_type="text/plain", headers=headers)
    assert answer.status_code == (200 if is_heard else 403)
    assert reports.views([post]) == {post: int(is_heard)}


def test_an_app_with_the_agent_of_a_browser_is_heard(post: Post) -> None:
    token = shown.token_of(f"/read/|0|0|site.post:{post.pk}|", ())
    body = f"{token}\nhttp://evil.example/"
    factories.browser().post(SCRIPT, body, content_type="text/plain", headers=FETCH)
    assert reports.views([post]) == {post: 1}


class CookieMiddleware:
    """Signs in by a cookie of the site's own, as a JWT in a cookie does."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        name = request.COOKIES.get("jwt", "")
        request.user = User.objects.filter(username=name).first() or request.user
        return self.get_response(request)


def by_own_cookie(user: User) -> Client:
    client = factories.browser(enforce_csrf_checks=True)
    client.cookies["jwt"] = user.get_username()
    return client


def by_session(user: User) -> Client:
    client = factories.browser(user, enforce_csrf_checks=True)
    client.get("/readtrack/unread/?category=1")
    return client


SIGNED_IN_BY = {"own cookie": by_own_cookie, "session": by_session}


@pytest.fixture
def _cookies(settings: Settings) -> None:
    [*others, last] = settings.MIDDLEWARE
    settings.MIDDLEWARE = [*others, f"{__name__}.CookieMiddleware", last]


@pytest.mark.usefixtures("_cookies")
@sent
@each_row("kind", ["json", "form"])
@each_row("signed_in_by", SIGNED_IN_BY)
def test_only_own_and_trusted_pages_mark_read(
    headers: dict[str, str], is_heard: bool, kind: str, signed_in_by: str
) -> None:
    category = factories.category()
    user = factories.user()
    client = SIGNED_IN_BY[signed_in_by](user)
    name = f"site.category:{category.pk}"
    if "csrftoken" in client.cookies:
        headers = {**headers, "X-CSRFToken": client.cookies["csrftoken"].value}
    if kind == "json":
        body = json.dumps({"categories": [name]})
        answer = client.post(READ, body, content_type="application/json", headers=headers)
    else:
        answer = client.post(READ, {"category": name}, headers=headers)
    # Of the session's cookie Django asks for more: it compares the scheme, and knows no metadata.
    if (
        is_heard
        and signed_in_by == "session"
        and headers.get("Origin") in {"null", "https://testserver"}
    ):
        is_heard = False
    assert answer.status_code == (200 if is_heard else 403)
    assert (reports.unread(user, [category]) == set()) == is_heard


@each_row("headers", [headers for headers, _ in PAGES.values()], ids=PAGES)
def test_the_script_and_the_dots_are_readable_and_change_nothing(
    redis: Redis, headers: dict[str, str]
) -> None:
    category = factories.category()
    client = factories.browser(factories.user())
    before = set(redis.keys())
    assert client.get(SCRIPT, headers=headers).status_code == 200
    assert (
        client.get(
            f"/readtrack/unread/?category=site.category:{category.pk}", headers=headers
        ).status_code
        == 200
    )
    assert client.get(READ, headers=headers).status_code == 405
    assert set(redis.keys()) == before


VERSIONS = [
    ("", False),
    ("00000000", False),
    (f"{shown.version()}&x", False),
    (f"v={shown.version()}", False),
    (shown.version().upper() + "!", False),
    (shown.version()[:7], False),
    *((version, True) for version in shown.scripts()),
]


@pytest.mark.parametrize(("query", "is_kept"), VERSIONS)
def test_only_the_address_of_todays_script_is_kept_for_good(query: str, is_kept: bool) -> None:
    answer = factories.browser().get(f"{SCRIPT}?{query}")
    assert answer["Cache-Control"] == (
        "public, max-age=31536000, immutable" if is_kept else "no-cache"
    )
    assert answer.content == shown.scripts().get(query, shown.PLAIN)


def test_the_page_asks_for_an_address_that_is_kept(rf: Any, post: Post) -> None:
    from django.template import engines

    from readtrack.middleware import ReadTrackMiddleware

    def page(request: Any) -> HttpResponse:
        source = "{% load readtrack %}{% readtrack_script %}"
        return HttpResponse(engines["django"].from_string(source).render({}, request))

    response: Any = ReadTrackMiddleware(page)(rf.get("/"))
    [address] = re.findall('src="([^"]+)"', response.text)
    assert "immutable" in factories.browser().get(address)["Cache-Control"]


@pytest.mark.parametrize(
    "origin", ["", "null", "\0", "http://[", "x" * 10_000, "//", "é", "https://"]
)
def test_no_header_is_an_error(rf: Any, origin: str) -> None:
    for name in ("Origin", "Referer", "Accept", "Sec-Fetch-Site", "User-Agent", "Host"):
        request = rf.get("/", headers={**FETCH, "User-Agent": CHROME, name: origin})
        assert is_foreign(request.META) in {True, False}
        assert is_foreign_part(request.META) in {True, False}
