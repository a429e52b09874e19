"""The script of pages and its address: what it counts together with the server, and what it
refuses.
"""

import gzip
import json
import re
import secrets
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core import signing
from django.core.cache import caches
from django.db import connection
from django.http import HttpResponse
from django.template import engines
from django.test import AsyncClient, Client
from django.urls import path
from django.utils.functional import SimpleLazyObject, empty
from django.utils.translation import get_language, override
from django.views.decorators.cache import cache_page
from django.views.generic import DetailView
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack import request as of_requests
from readtrack.buffer.queue import hit_buffer
from readtrack.hits import visitors
from readtrack.middleware import ReadTrackMiddleware
from readtrack.page import filling
from readtrack.request import Recorder
from readtrack.script import shown
from readtrack.script import views as script_view
from readtrack.script.shared import shared_page
from readtrack.store import keys
from readtrack.store.connection import connect
from readtrack.store.skips import skip_buffer
from tests.checks.findings import found
from tests.site.models import Category, Post
from tests.site.urls import urlpatterns as site_urls
from tests.support import factories
from tests.support.depth import examples
from tests.support.scripts import load_scripts
from tests.support.waiting import comes_true
from tests.support.wire import Wire

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls(__name__),
    pytest.mark.usefixtures("_both_ways"),
]

TOKEN, PLACE = re.compile('data-page="([^"]*)"'), re.compile('data-rt="([^"]*)"')
OWN = {"Sec-Fetch-Site": "same-origin"}
SOURCE = """{% load readtrack %}{% view_count object words %}{% unread_dot object.category %}
{% if_unread object.category %}new{% else %}old{% endif_unread %}{% readtrack_script %}"""


class PostPage(DetailView):
    model = Post

    def render_to_response(self, context: Any, **kwargs: Any) -> HttpResponse:
        return HttpResponse(engines["django"].from_string(SOURCE).render(context, self.request))


def announced(request: Any, pk: int) -> HttpResponse:
    post = Post.objects.get(pk=pk)
    request.readtrack.view(post)
    request.readtrack.read(post.category)
    return HttpResponse(engines["django"].from_string(SOURCE).render({"object": post}, request))


def dotted(request: Any, pk: int) -> HttpResponse:
    request.readtrack.read(Category.objects.get(pk=pk))
    source = "{% load readtrack %}{% readtrack_script %}"
    return HttpResponse(engines["django"].from_string(source).render({}, request))


@shared_page
def listed(request: Any) -> HttpResponse:
    source = "{% load readtrack %}{% for post in posts %}{% view_count post %}{% endfor %}{% readtrack_script %}"
    return HttpResponse(
        engines["django"].from_string(source).render({"posts": Post.objects.all()}, request)
    )


@shared_page
async def shared_async(request: Any, pk: int) -> HttpResponse:
    return HttpResponse("the same")


urlpatterns = [
    *site_urls,
    path("plain/<int:pk>/", PostPage.as_view()),
    path("read/<int:pk>/", announced),
    path("dot/<int:pk>/", dotted),
    path("cached/<int:pk>/", cache_page(600, cache="pages")(announced)),
    path("shared/<int:pk>/", shared_page(announced)),
    path("shared/cached/<int:pk>/", cache_page(600, cache="pages")(shared_page(announced))),
    path("cached/shared/<int:pk>/", shared_page(cache_page(600, cache="pages")(announced))),
    path("shared/async/<int:pk>/", shared_async),
    path("shared/list/", listed),
]


@pytest.fixture(autouse=True)
def _cache(settings: Settings) -> None:
    pages = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "script"}
    settings.CACHES = {**settings.CACHES, "pages": pages}
    settings.CACHE_MIDDLEWARE_ALIAS = "pages"
    caches["pages"].clear()
    load_scripts(
        connect()
    )  # a script that Redis does not know runs after the others of its round trip


def views(post: Post) -> int:
    return reports.views([post])[post]


def token(response: Any) -> str:
    [found] = TOKEN.findall(response.text)
    return str(found)


def tell(browser: Client, token: str, **headers: str) -> Any:
    """Does what the script does once its page is looked at."""
    answer = send(browser, token, **headers)
    return (
        send(browser, token, **headers)
        if answer.status_code == 200 and answer.json()["again"]
        else answer
    )


def send(browser: Client, token: str, **headers: str) -> Any:
    body = f"{token}\nhttps://example.com/"
    return browser.post(
        "/readtrack/page.js", body, content_type="text/plain", headers=headers or OWN
    )


def other(number: int) -> str:
    return factories.BROWSER.replace("140", str(140 + number))


def test_the_script_is_small_and_kept_for_good() -> None:
    response = factories.browser().get(f"/readtrack/page.js?{shown.version()}")
    size = len(gzip.compress(response.content, 9))
    assert size <= 1_250, f"page.js has {size} bytes gzipped"
    assert response["Cache-Control"] == "public, max-age=31536000, immutable"
    assert response["Content-Type"].startswith("text/javascript")


def test_the_tag_is_one_deferred_file_with_the_scripts_version(post: Post) -> None:
    page = factories.browser().get(f"/plain/{post.pk}/").text
    [element] = re.findall("<script.*?</script>", page)
    assert re.fullmatch(
        rf'<script src="/readtrack/page.js\?{shown.version()}" data-page="[\w.:-]+" defer></script>',
        element,
    )


@pytest.mark.parametrize("context", [{"csp_nonce": "abc"}, {}])
def test_the_tag_has_the_nonce_of_the_template_or_of_the_request(
    rf: Any, context: dict[str, str]
) -> None:
    def page(request: Any) -> HttpResponse:
        if not context:
            request.csp_nonce = "abc"  # django-csp's
        template = engines["django"].from_string("{% load readtrack %}{% readtrack_script %}")
        return HttpResponse(template.render(context, request))

    assert 'nonce="abc"' in passed(page, rf.get("/")).text


def passed(page: Callable[[Any], HttpResponse], request: Any) -> Any:
    from readtrack.middleware import ReadTrackMiddleware

    return ReadTrackMiddleware(page)(request)


@pytest.mark.parametrize("kind", ["plain", "read", "cached"])
def test_server_and_script_count_one_together(redis: Redis, post: Post, kind: str) -> None:
    for number in range(3):
        browser = factories.browser(headers={"User-Agent": other(number)})
        for _ in range(2):
            response = browser.get(f"/{kind}/{post.pk}/")
            for _ in range(2):
                assert tell(browser, token(response)).status_code == 200
        assert views(post) == number + 1
    skip_buffer.send_rest()
    assert sum(reports.skips().values()) == 3  # the reloads; what the script repeats is no skip


def test_with_a_buffer_as_well(settings: Settings, post: Post) -> None:
    settings.READTRACK = {"BUFFER": {"seconds": 0.05}}
    browser = factories.browser(headers={"User-Agent": other(1)})
    response = browser.get(f"/plain/{post.pk}/")
    for _ in range(3):
        assert tell(browser, token(response)).status_code == 200
    rest = ("_queue", "_batch")
    assert comes_true(
        lambda: views(post) == 1 and not any(getattr(hit_buffer, name) for name in rest)
    )
    skip_buffer.send_rest()
    assert sum(reports.skips().values()) == 0


@pytest.mark.parametrize("anonymous", ["cookie", "hash"])
def test_a_page_that_was_fetched_ahead_counts_when_it_is_looked_at(
    settings: Settings, post: Post, anonymous: str
) -> None:
    settings.READTRACK = {"ANONYMOUS": anonymous}
    browser = factories.browser()
    response = browser.get(f"/read/{post.pk}/", headers={"Sec-Purpose": "prefetch;prerender"})
    assert views(post) == 0
    for _ in range(3):
        tell(browser, token(response))
    assert views(post) == 1


FETCHED = {"Sec-Fetch-Dest": "empty", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"}
AHEAD = {
    "a service worker, cache.add": {},
    "a service worker, a navigation": {"Sec-Fetch-Mode": "navigate"},
    "a service worker, a link elsewhere": {
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Site": "cross-site",
    },
    "XMLHttpRequest": {"X-Requested-With": "XMLHttpRequest"},
    "Unpoly": {"X-Up-Version": "3.14.3", "X-Up-Target": "main"},
    "htmx 4": {"HX-Request": "true", "HX-Request-Type": "full", "HX-Boosted": "true"},
    "Turbo": {"X-Turbo-Request-Id": "1", "Accept": "text/html, application/xhtml+xml"},
}
SHOWN = {
    "a part by htmx 2": {"HX-Request": "true", "HX-Target": "main"},
    "a frame by Turbo": {"Turbo-Frame": "main"},
    "a tab": {"Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"},
    "a frame": {"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Mode": "navigate"},
    "a trusted front end": {"Sec-Fetch-Site": "cross-site", "Origin": "https://front.example"},
}


@pytest.mark.parametrize("kind", ["read", "cached"])
@pytest.mark.parametrize("by", AHEAD)
def test_a_page_that_javascript_fetches_counts_when_it_is_looked_at(
    settings: Settings, post: Post, category: Category, kind: str, by: str
) -> None:
    settings.READTRACK = {"DEBUG_HEADER": True}
    factories.browser().get(f"/{kind}/{post.pk}/")  # `cache_page` has it
    user = factories.user()
    browser = factories.browser(user)
    for _ in range(2):
        response = browser.get(f"/{kind}/{post.pk}/", headers={**FETCHED, **AHEAD[by]})
        assert response["X-Readtrack"] == "left to the script"
    assert (views(post), reports.unread(user, [category])) == (1, {category})
    assert tell(browser, token(response))["X-Readtrack"] == "counted, read"
    assert (views(post), reports.unread(user, [category])) == (2, set())


@pytest.mark.parametrize("by", SHOWN)
def test_a_page_that_is_shown_without_its_script_counts_at_once(
    settings: Settings, post: Post, by: str
) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://front.example"]
    factories.browser().get(f"/read/{post.pk}/", headers={**FETCHED, **SHOWN[by]})
    assert views(post) == 1


@pytest.mark.parametrize("by", AHEAD)
def test_a_page_that_javascript_fetches_counts_at_once_without_the_script(
    settings: Settings, post: Post, by: str
) -> None:
    browser = factories.browser()
    browser.get(f"/posts/{post.pk}/", headers={**FETCHED, **AHEAD[by]})
    assert views(post) == 1
    settings.READTRACK = {"SCRIPT": {"count_by": "server"}}
    other_post = factories.post(category=factories.category())
    browser.get(f"/read/{other_post.pk}/", headers={**FETCHED, **AHEAD[by]})
    assert views(other_post) == 1


class Clock:
    """The time by which the tokens of pages are as old as a test wants."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, redis: Redis) -> None:
        self._ahead = 0.0
        self._redis = redis
        for module in (shown, script_view):
            monkeypatch.setattr(module, "time", lambda: time.time() + self._ahead)

    def go_on(self, seconds: float) -> None:
        self._ahead += seconds
        for window in self._redis.scan_iter("viewed:*"):
            self._redis.delete(window)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, redis: Redis) -> Clock:
    return Clock(monkeypatch, redis)


def tell_late(browser: Client, token: str, *, seconds: float | str) -> Any:
    """Tells that the page is looked at, so many seconds after the browser has asked for it."""
    since = seconds if isinstance(seconds, str) else f"{seconds * 1_000}"
    body = f"{token}\nhttps://example.com/\n\n{since}"
    return browser.post("/readtrack/page.js", body, content_type="text/plain", headers=OWN)


HOUR = 3600


@pytest.mark.parametrize("kind", ["read", "plain", "cached"])
def test_a_tab_in_the_background_that_is_looked_at_after_the_window_counts_once(
    post: Post, clock: Clock, kind: str
) -> None:
    browser = factories.browser()
    response = browser.get(f"/{kind}/{post.pk}/")
    clock.go_on(HOUR)
    assert tell_late(browser, token(response), seconds=HOUR).status_code == 200
    assert views(post) == 1


@pytest.mark.parametrize(
    "seconds",
    [0, 5, HOUR - 60, "", "-3", "soon"],
    ids=["reopened", "shown again", "kept", "nothing", "negative", "no number"],
)
def test_a_page_that_the_browser_has_kept_counts_once_more_after_the_window(
    post: Post, clock: Clock, seconds: Any
) -> None:
    browser = factories.browser()
    response = browser.get(f"/read/{post.pk}/")
    clock.go_on(HOUR)
    assert tell_late(browser, token(response), seconds=seconds).status_code == 200
    assert views(post) == 2


@pytest.mark.parametrize(
    ("options", "headers"),
    [({}, {"Sec-Purpose": "prefetch"}), ({"SCRIPT": {"count_by": "script"}}, {}), ({}, FETCHED)],
    ids=["fetched ahead", "left to the script", "by JavaScript"],
)
def test_a_tab_in_the_background_counts_late_if_the_server_has_not_counted_it(
    settings: Settings, post: Post, clock: Clock, options: Any, headers: dict[str, str]
) -> None:
    settings.READTRACK = options
    browser = factories.browser()
    response = browser.get(f"/read/{post.pk}/", headers=headers)
    clock.go_on(HOUR)
    tell_late(browser, token(response), seconds=HOUR)
    assert views(post) == 1


def test_a_repeat_in_the_background_counts_once_it_is_looked_at_after_the_window(
    post: Post, clock: Clock
) -> None:
    browser = factories.browser()
    browser.get(f"/read/{post.pk}/")
    repeat = browser.get(f"/read/{post.pk}/")
    clock.go_on(HOUR)
    tell_late(browser, token(repeat), seconds=HOUR)
    assert views(post) == 2


def test_the_script_fills_in_a_page_that_is_older_than_the_secret_key(
    settings: Settings, post: Post
) -> None:
    browser = factories.browser(factories.user())
    response = browser.get(f"/shared/{post.pk}/")
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "new"
    answer = tell(browser, token(response)).json()
    assert set(PLACE.findall(response.text)) < set(answer["elements"])
    assert "1 view" in answer["elements"][PLACE.findall(response.text)[0]]
    assert views(post) == 1


class PolicyMiddleware:
    """A policy with a new nonce for each request, as django-csp makes it."""

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> Any:
        request.csp_nonce = SimpleLazyObject(lambda: secrets.token_urlsafe())
        response = self.get_response(request)
        response["Content-Security-Policy"] = f"script-src 'nonce-{request.csp_nonce}'"
        return response


class LazyNonce(SimpleLazyObject):
    """A nonce of Django 6, which is false until somebody has asked for it."""

    def __init__(self) -> None:
        super().__init__(secrets.token_urlsafe)

    def __bool__(self) -> bool:
        return self._wrapped is not empty


class DjangosPolicyMiddleware(PolicyMiddleware):
    """A policy whose nonce is in the header only if the page has it, as that of Django 6 is."""

    def __call__(self, request: Any) -> Any:
        request._csp_nonce = LazyNonce()
        response = self.get_response(request)
        if request._csp_nonce:
            response["Content-Security-Policy"] = f"script-src 'nonce-{request._csp_nonce}'"
        return response


def csp(request: Any) -> dict[str, Any]:
    """The context processor of Django 6."""
    return {"csp_nonce": getattr(request, "_csp_nonce", None)}


@pytest.fixture
def _processor(settings: Settings) -> None:
    [templates, *others] = settings.TEMPLATES
    options = templates["OPTIONS"]
    processors = [*options["context_processors"], f"{__name__}.csp"]
    options = {**options, "context_processors": processors}
    settings.TEMPLATES = [{**templates, "OPTIONS": options}, *others]


@pytest.mark.usefixtures("_processor")
def test_without_the_middleware_of_the_policy_there_is_no_nonce(post: Post) -> None:
    assert "nonce" not in factories.browser().get(f"/read/{post.pk}/").text


@pytest.mark.parametrize("kind", ["cached", "read", "plain"])
@pytest.mark.parametrize("middleware", ["PolicyMiddleware", "DjangosPolicyMiddleware"])
def test_a_page_out_of_the_cache_has_the_nonce_of_its_moment(
    settings: Settings, request: pytest.FixtureRequest, post: Post, kind: str, middleware: str
) -> None:
    settings.MIDDLEWARE = [f"{__name__}.{middleware}", *settings.MIDDLEWARE]
    if middleware == "DjangosPolicyMiddleware":
        request.getfixturevalue("_processor")
    nonces = set()
    for _ in range(3):
        response = factories.browser().get(f"/{kind}/{post.pk}/")
        [nonce] = re.findall('<script [^>]*nonce="([^"]+)"', response.text)
        assert f"'nonce-{nonce}'" in response["Content-Security-Policy"]
        nonces.add(nonce)
    assert len(nonces) == 3


def test_a_shared_page_has_no_nonce(settings: Settings, post: Post) -> None:
    settings.MIDDLEWARE = [f"{__name__}.PolicyMiddleware", *settings.MIDDLEWARE]
    assert "nonce" not in factories.browser().get(f"/shared/{post.pk}/").text


def test_a_dot_goes_out_when_the_page_is_looked_at(post: Post, category: Category) -> None:
    user = factories.user()
    browser = factories.browser(user)
    response = browser.get(f"/read/{post.pk}/", headers={"Sec-Purpose": "prefetch"})
    assert "readtrack-dot" in response.text
    answer = tell(browser, token(response)).json()
    assert "readtrack-dot" not in "".join(answer["elements"].values())
    assert reports.unread(user, [category]) == set()


def test_what_is_published_after_the_page_was_made_stays_unread(
    post: Post, category: Category
) -> None:
    user = factories.user()
    browser = factories.browser(user)
    response = browser.get(f"/read/{post.pk}/", headers={"Sec-Purpose": "prefetch"})
    tracker.mark_unread([category])
    assert "readtrack-dot" in "".join(tell(browser, token(response)).json()["elements"].values())
    assert reports.unread(user, [category]) == {category}


def test_a_page_out_of_the_cache_marks_nothing_that_came_after_it(
    post: Post, category: Category
) -> None:
    factories.browser().get(f"/cached/{post.pk}/")
    tracker.mark_unread([category])
    user = factories.user()
    browser = factories.browser(user)
    response = browser.get(f"/cached/{post.pk}/")
    assert "readtrack-dot" in response.text
    tell(browser, token(response))
    assert reports.unread(user, [category]) == {category}


def test_the_answer_has_the_elements_of_the_page_by_their_names(
    post: Post, category: Category
) -> None:
    browser = factories.browser(factories.user())
    response = browser.get(f"/plain/{post.pk}/")
    names = PLACE.findall(response.text)
    assert len(names) == 2
    tell(factories.browser(headers={"User-Agent": other(1)}), token(response))
    answer = tell(browser, token(response)).json()
    assert set(answer) == {"elements", "page", "again"}
    assert list(answer["elements"]) == names
    count, dot = answer["elements"].values()
    assert json.loads(count) == [
        "span",
        {"data-rt": names[0], "class": "readtrack-count", "title": "2"},
        "2 views",
    ]
    [name, attributes, *_] = json.loads(dot)
    assert (name, attributes["data-rt"]) == ("span", names[1])
    assert attributes["class"] == "readtrack-dot"
    tracker.mark_read(response.wsgi_request.user, [category])
    _count, dot = tell(browser, token(response)).json()["elements"].values()
    assert json.loads(dot) == ["span", {"data-rt": names[1], "hidden": ""}]


def test_the_token_is_the_same_for_everybody(post: Post) -> None:
    found = []
    for user in (None, factories.user()):
        told = shown.page_of(token(factories.browser(user).get(f"/read/{post.pk}/")))
        assert told is not None
        name, *others, _ = told  # but for the time
        found.append((re.sub(r"\|[0-9]{16}\|", "||", name), *others))
    assert found[0] == found[1]


def test_a_page_that_has_nothing_to_tell_has_no_token(rf: Any) -> None:
    template = engines["django"].from_string("{% load readtrack %}{% readtrack_script %}")
    assert (
        'data-page=""'
        in passed(lambda request: HttpResponse(template.render({}, request)), rf.get("/")).text
    )
    assert template.render({}) == template.render({}, rf.get("/")) == ""


@pytest.mark.urls("tests.site.no_urls")
@pytest.mark.parametrize("debug", [True, False])
def test_without_the_urls_the_tag_says_so_to_developers(
    rf: Any, settings: Settings, debug: bool
) -> None:
    settings.DEBUG = debug
    template = engines["django"].from_string("{% load readtrack %}{% readtrack_script %}")
    text = passed(lambda request: HttpResponse(template.render({}, request)), rf.get("/")).text
    assert ("include readtrack.urls" in text) == debug


REFUSED: dict[str, dict[str, str]] = {
    "another site": {"Sec-Fetch-Site": "cross-site"},
    "a sister site": {"Sec-Fetch-Site": "same-site", "Origin": "http://testserver"},
    "another origin": {"Origin": "https://example.com"},
    "a sandboxed frame": {"Origin": "null"},
    "a broken origin": {"Origin": "http://["},
}


@pytest.mark.parametrize("headers", REFUSED.values(), ids=REFUSED)
def test_only_pages_of_the_site_are_heard(
    redis: Redis, post: Post, headers: dict[str, str]
) -> None:
    response = factories.browser().get(f"/read/{post.pk}/", headers={"Sec-Purpose": "prefetch"})
    redis.flushdb()
    answer = tell(factories.browser(), token(response), **headers)
    assert (answer.status_code, answer.json(), dict(answer.cookies)) == (403, {}, {})
    assert redis.keys() == []


def test_a_browser_without_fetch_metadata_is_known_by_the_origin(post: Post) -> None:
    response = factories.browser().get(f"/read/{post.pk}/", headers={"Sec-Purpose": "prefetch"})
    assert (
        tell(factories.browser(), token(response), Origin="https://testserver").status_code == 200
    )
    assert views(post) == 1


def test_an_app_is_no_browser_and_sends_the_token_of_its_data(
    settings: Settings, post: Post
) -> None:
    good = token(factories.browser().get(f"/read/{post.pk}/", headers={"Sec-Purpose": "prefetch"}))
    settings.READTRACK = {"BOTS": {"people": ["^MyApp/"]}}
    for app, user in (
        ("okhttp/4.12.0", None),
        ("okhttp/4.12.0", factories.user()),
        ("MyApp/42", None),
    ):
        send(factories.browser(user, headers={"User-Agent": app}), good, Accept="*/*")
    assert views(post) == 2


def test_the_script_of_another_page_in_a_cached_fragment_counts_nothing_for_the_server(
    rf: Any, post: Post
) -> None:
    source = "{% load readtrack cache %}{% cache 60 foot %}{% readtrack_script %}{% endcache %}"
    template = engines["django"].from_string(source)

    def page(request: Any) -> HttpResponse:
        if request.path == "/first/":
            request.readtrack.view(post)
        return HttpResponse(template.render({}, request))

    for path_ in ("/first/", "/second/"):
        assert token(passed(page, rf.get(path_, headers={"User-Agent": other(len(path_))})))
    assert views(post) == 1


def test_the_answer_is_in_the_language_of_the_page(post: Post) -> None:
    Post.objects.update(view_count=1234)
    with override("de"):
        response = factories.browser().get(f"/read/{post.pk}/", headers={"Sec-Purpose": "prefetch"})
    answer = tell(factories.browser(), token(response))
    assert '"title": "1.235"' in "".join(answer.json()["elements"].values())
    assert get_language() == "en-us"


def test_no_cookie_of_the_form_protection_is_needed(settings: Settings, post: Post) -> None:
    settings.MIDDLEWARE = ["django.middleware.csrf.CsrfViewMiddleware", *settings.MIDDLEWARE]
    response = factories.browser().get(f"/read/{post.pk}/", headers={"Sec-Purpose": "prefetch"})
    assert tell(factories.browser(enforce_csrf_checks=True), token(response)).status_code == 200
    assert views(post) == 1


def test_a_token_that_is_forged_foreign_old_or_huge_counts_nothing(
    redis: Redis, settings: Settings, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = token(factories.browser().get(f"/read/{post.pk}/", headers={"Sec-Purpose": "prefetch"}))
    redis.flushdb()
    foreign = signing.dumps(
        [["site.post:1"], [], 0, "/", []], key="another site's", salt=keys.salt("page")
    )
    earlier = signing.dumps(
        ["/|0|0|site.post:1|", "", [], [], 0], salt=keys.salt("page")
    )  # of another version
    tokens = [
        "",
        ":",
        earlier,
        good[1:],
        good + "x",
        good.replace(":", "::"),
        foreign,
        "x" * 59_000,
        "\x00\ud800",
        "é" * 9,
    ]
    for bad in tokens:
        answer = factories.browser().post(
            "/readtrack/page.js",
            bad.encode(errors="surrogatepass"),
            content_type="text/plain",
            headers=OWN,
        )
        assert answer.status_code == 403
    browser = factories.browser()
    assert (
        browser.post(
            "/readtrack/page.js", f"{good}\n{'x' * 60_000}", "text/plain", headers=OWN
        ).status_code
        == 403
    )
    for length in ("-1", "x"):
        browser.generic("POST", "/readtrack/page.js", b"", CONTENT_LENGTH=length, headers=OWN)
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
    assert tell(browser, good).status_code == 403
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = None
    settings.READTRACK = {"PREFIX": "tenant:"}
    assert tell(browser, good).status_code == 403
    settings.READTRACK = {}
    monkeypatch.setattr(shown, "LONGEST_AGE", 0)
    assert tell(browser, good).status_code == 403
    assert redis.keys() == []


def test_whoever_replays_a_token_is_one_visitor(post: Post) -> None:
    good = token(factories.browser().get(f"/read/{post.pk}/", headers={"Sec-Purpose": "prefetch"}))
    browser = factories.browser()
    for _ in range(20):
        tell(browser, good)
        send(factories.browser(), good)  # without the cookie of the answer before
    assert views(post) == 1


def test_a_robot_that_runs_scripts_is_a_robot_once(post: Post) -> None:
    robot = factories.browser(headers={"User-Agent": "Mozilla/5.0 (compatible; Googlebot/2.1)"})
    tell(robot, token(robot.get(f"/read/{post.pk}/")))
    skip_buffer.send_rest()
    assert (views(post), dict(reports.skips())["bot"]) == (0, 1)


@pytest.mark.needs_parts("numbers")
def test_the_scripts_view_is_judged_as_the_pages_own(settings: Settings, post: Post) -> None:
    from readtrack.numbers import reports as numbers_reports

    settings.READTRACK = {
        "EXCLUDE": {"paths": ["^/read/"]},
        "NUMBERS": {"dimensions": ["referrer"]},
    }
    for kind in ("read", "plain"):
        response = factories.browser().get(
            f"/{kind}/{post.pk}/", headers={"Sec-Purpose": "prefetch"}
        )
        tell(factories.browser(), token(response))
    assert views(post) == 1
    assert numbers_reports.breakdown(post, "referrer") == {"example.com": 1}


@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize(
    ("address", "campaign"),
    [
        ("http://testserver/shared/{pk}/?utm_source=letter&utm_campaign=May", {"letter / may": 1}),
        ("http://testserver/%73hared/{pk}/?ref=letter", {"letter": 1}),
        ("http://testserver/shared/{pk}/", {}),
        ("http://testserver/", {}),  # by the page's Referrer-Policy
        ("http://testserver/other/?utm_source=letter", {}),  # the browser has gone on
        ("http://[", {}),
        ("", {}),
    ],
)
def test_the_scripts_view_has_the_campaign_of_the_pages_address(
    settings: Settings, post: Post, address: str, campaign: dict[str, int]
) -> None:
    from readtrack.numbers import reports as numbers_reports

    settings.READTRACK = {"NUMBERS": {"dimensions": ["campaign"]}}
    page = factories.browser().get(f"/shared/{post.pk}/")
    tell(factories.browser(), token(page), Referer=address.format(pk=post.pk), **OWN)
    assert (views(post), numbers_reports.breakdown(post, "campaign")) == (1, campaign)


def test_script_hits_leave_the_limit_to_the_pages(settings: Settings) -> None:
    settings.READTRACK = {"RATE": (5, 10)}
    posts = [factories.post(category=factories.category()) for _ in range(7)]
    browser = factories.browser()
    browser.get(f"/read/{posts[0].pk}/")
    for post in posts[1:]:
        response = browser.get(f"/read/{post.pk}/")
        for _ in range(4):
            tell(browser, token(response))
    assert [views(post) for post in posts] == [1, 1, 1, 1, 1, 1, 0]


def test_only_the_script_counts_where_the_site_says_so(
    settings: Settings, post: Post, category: Category
) -> None:
    settings.READTRACK = {"SCRIPT": {"count_by": "script"}, "DEBUG_HEADER": True}
    user = factories.user()
    browser = factories.browser(user)
    response = browser.get(f"/read/{post.pk}/")
    assert (views(post), response["X-Readtrack"]) == (0, "left to the script")
    assert reports.unread(user, [category]) == {category}
    assert tell(browser, token(response))["X-Readtrack"] == "counted, read"
    assert views(post) == 1
    browser.get(f"/posts/{post.pk}/")  # without the script
    assert views(post) == 1
    factories.browser(headers={"User-Agent": "curl/8"}).get(f"/read/{post.pk}/")
    skip_buffer.send_rest()
    assert reports.skips()["bot"] == 1
    factories.browser().get(f"/posts/{post.pk}/")
    assert views(post) == 2


def test_only_the_server_counts_where_the_site_says_so(settings: Settings, post: Post) -> None:
    settings.READTRACK = {"SCRIPT": {"count_by": "server"}}
    browser = factories.browser()
    response = browser.get(f"/read/{post.pk}/", headers={"Sec-Purpose": "prefetch"})
    answer = tell(browser, token(response))
    assert (answer.status_code, views(post)) == (200, 0)
    assert "0 views" in "".join(answer.json()["elements"].values())
    browser.get(f"/read/{post.pk}/")
    assert views(post) == 1


@pytest.mark.parametrize("kind", ["shared", "shared/cached", "cached/shared", "site-wide"])
def test_a_shared_page_is_the_same_for_everybody_and_its_script_counts(
    settings: Settings, post: Post, category: Category, kind: str
) -> None:
    if kind == "site-wide":
        first, last = (
            f"django.middleware.cache.{name}Middleware"
            for name in ("UpdateCache", "FetchFromCache")
        )
        settings.MIDDLEWARE = [first, *settings.MIDDLEWARE, last]
        kind = "shared"
    users = [factories.user(), factories.user(), None, None]
    browsers = [
        factories.browser(user, headers={"User-Agent": other(n)}) for n, user in enumerate(users)
    ]
    tracker.mark_read(users[1], [category])
    pages = [browser.get(f"/{kind}/{post.pk}/") for browser in browsers]
    assert len({TOKEN.sub("", page.text) for page in pages}) == 1
    assert "readtrack-dot" not in pages[0].text
    assert "old" in pages[0].text
    assert not any(page.has_header("Vary") or page.cookies for page in pages)
    assert views(post) == 0
    answers = [tell(browser, token(pages[0])) for browser in browsers for _ in range(3)][::3]
    assert views(post) == 4
    # Each has read the category with this page.
    assert reports.unread(users[0], [category]) == set()
    assert all(
        "4 views" in json.dumps(tell(browser, token(pages[0])).json()) for browser in browsers
    )
    assert all(answer.status_code == 200 for answer in answers)


def test_a_shared_page_is_named_by_its_path_as_well(settings: Settings, post: Post) -> None:
    settings.READTRACK = {"SCRIPT": {"shared_paths": ["^/read/"]}}
    page = factories.browser(factories.user()).get(f"/read/{post.pk}/")
    assert not page.has_header("Vary")
    assert views(post) == 0


def test_below_a_script_name_a_shared_page_is_named_by_its_path_in_the_urlconf(
    settings: Settings, post: Post
) -> None:
    settings.FORCE_SCRIPT_NAME = "/shop"
    settings.READTRACK = {"SCRIPT": {"shared_paths": ["^/read/"]}}
    page = factories.browser(factories.user()).get(f"/read/{post.pk}/")
    assert not page.has_header("Vary")
    assert views(post) == 0
    settings.READTRACK = {"SCRIPT": {"shared_paths": ["^/shop/read/"]}}
    assert factories.browser(factories.user()).get(f"/read/{post.pk}/").has_header("Vary")


def test_a_shared_page_is_counted_by_the_server_alone_where_the_site_says_so(
    settings: Settings, post: Post
) -> None:
    settings.READTRACK = {"SCRIPT": {"count_by": "server"}}
    page = factories.browser(factories.user()).get(f"/shared/{post.pk}/")
    assert not page.has_header("Vary")
    assert not page.cookies
    assert views(post) == 1


@pytest.mark.parametrize(("count_by", "has_token"), [("either", True), ("server", False)])
def test_a_page_that_only_puts_a_dot_out_has_a_token_unless_the_server_does_that(
    settings: Settings, post: Post, count_by: str, has_token: bool
) -> None:
    settings.READTRACK = {"SCRIPT": {"count_by": count_by}}
    path = f"/dot/{post.category_id}/"
    assert bool(token(factories.browser().get(path))) == has_token


def test_a_shared_page_says_who_counts_it(settings: Settings, post: Post, rf: Any) -> None:
    settings.READTRACK = {"DEBUG_HEADER": True}
    assert factories.browser().get(f"/shared/{post.pk}/")["X-Readtrack"] == "left to the script"

    @shared_page
    def without_script(request: Any) -> HttpResponse:
        request.readtrack.view(post)
        return HttpResponse("a post")

    @shared_page
    def without_subject(request: Any) -> HttpResponse:
        request.readtrack.is_reported_later = True
        return HttpResponse("a list")

    pages: list[Any] = [
        ReadTrackMiddleware(view)(rf.get("/")) for view in (without_script, without_subject)
    ]
    assert [page.get("X-Readtrack") for page in pages] == ["no script", None]


def test_a_coroutine_may_be_a_shared_page() -> None:
    assert factories.browser().get("/shared/async/1/").text == "the same"


CLASS = 15


@pytest.mark.parametrize("kind", ["read", "shared"])
def test_a_school_class_behind_one_address_is_counted_in_full(post: Post, kind: str) -> None:
    """All open the page before the first script runs; then the scripts run, some twice."""
    browsers = [factories.browser() for _ in range(CLASS)]
    pages = [browser.get(f"/{kind}/{post.pk}/") for browser in browsers]
    assert views(post) == (kind == "read")
    for browser, page in reversed([*zip(browsers, pages, strict=True)]):
        for _ in range(2):
            tell(browser, token(page))
    assert views(post) == CLASS
    following = factories.post(category=post.category)
    for browser in browsers:
        tell(browser, token(browser.get(f"/{kind}/{following.pk}/")))
    assert views(following) == CLASS


def test_a_double_click_whose_first_page_never_comes_to_life_is_one(post: Post) -> None:
    factories.browser().get(f"/read/{post.pk}/")
    browser = factories.browser()
    for _ in range(2):
        tell(browser, token(browser.get(f"/read/{post.pk}/")))
    assert views(post) == 1


def test_a_reader_who_returns_is_not_taken_for_the_new_one_at_the_same_address(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    returning, new = factories.browser(), factories.browser()
    with monkeypatch.context() as patch:
        patch.setattr(visitors, "time", SimpleNamespace(time=lambda: time.time() - 7200))
        returning.get(f"/plain/{factories.post().pk}/")  # which sets the cookie
    new.get(f"/plain/{post.pk}/")  # its script never tells
    tell(returning, token(returning.get(f"/shared/{post.pk}/")))
    assert views(post) == 2


def test_below_a_script_name_a_cookie_that_came_back_is_the_visitors(
    settings: Settings, post: Post
) -> None:
    settings.FORCE_SCRIPT_NAME = "/shop"
    browser = factories.browser()
    page = browser.get(f"/plain/{post.pk}/")
    assert [*page.cookies] == ["anon_id_shop"]
    assert tell(browser, token(page)).status_code == 200
    assert views(post) == 1


@pytest.mark.parametrize("cookies", ["{own}; {others}", "{others}; {own}"])
def test_beside_another_sites_cookie_one_that_came_back_is_the_visitors(
    post: Post, cookies: str
) -> None:
    browser = factories.browser()
    page = browser.get(f"/plain/{post.pk}/")
    own = browser.cookies.output(attrs=[], header="").strip()
    browser.cookies.clear()
    header = cookies.format(own=own, others="anon_id=of another site")
    assert tell(browser, token(page), **OWN, Cookie=header).status_code == 200
    assert views(post) == 1


def test_eight_tabs_of_a_new_browser_are_one_visitor(post: Post) -> None:
    """Each tab was asked for before the first cookie came; the browser keeps the last one."""
    pages = [factories.browser().get(f"/read/{post.pk}/") for _ in range(8)]
    browser = factories.browser()
    browser.cookies = pages[-1].cookies
    for page in pages:
        tell(browser, token(page))
    assert views(post) == 1


def test_a_program_that_keeps_no_cookie_gains_one(post: Post) -> None:
    for _ in range(20):
        page = factories.browser().get(f"/read/{post.pk}/")
    for _ in range(20):
        send(factories.browser(), token(page))
    assert views(post) == 1


@settings(max_examples=examples(10))
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(["page", "script"])), min_size=1, max_size=14
    )
)
def test_each_browser_that_comes_to_life_is_one_view_in_any_order(
    redis: Redis, settings: Settings, steps: list[tuple[int, str]]
) -> None:
    """Five browsers of one kind behind one address; a page that never comes to life is one view if
    it is the only.
    """
    redis.flushdb()
    settings.READTRACK = {"RATE": (0, 10)}
    post = factories.post(category=factories.category())
    good = shown.token_of(f"/|0|0|site.post:{post.pk}|", ())
    browsers = [factories.browser() for _ in range(5)]
    for number, step in steps:
        if step == "page":
            browsers[number].get(f"/posts/{post.pk}/")
        else:
            tell(browsers[number], good)
    alive = {number for number, step in steps if step == "script"}
    assert views(post) == max(1, len(alive))


@pytest.mark.parametrize(
    ("options", "is_found"),
    [
        ({}, False),
        ({"SCRIPT": {"count_by": "script"}}, True),
        ({"SCRIPT": {"shared_paths": ["^/x"]}}, True),
    ],
)
def test_pages_without_an_address_for_their_script_are_found(
    settings: Settings, options: dict[str, Any], is_found: bool
) -> None:
    settings.READTRACK = options
    assert found() == []
    settings.ROOT_URLCONF = "tests.site.no_urls"
    assert found() == ["readtrack.W028"] * is_found


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("number", range(examples(5)))
def test_parallel_hits_of_server_and_script_are_one(redis: Redis, number: int) -> None:
    post = factories.post(category=factories.category())
    first = factories.browser()
    good = token(first.get(f"/read/{post.pk}/", headers={"Sec-Purpose": "prefetch"}))
    first.get(f"/posts/{factories.post().pk}/")  # brings the cookie
    barrier = threading.Barrier(8)

    def hit(number: int) -> None:
        browser = factories.browser()
        browser.cookies = first.cookies
        barrier.wait()
        tracked = browser.get(f"/read/{post.pk}/") if number % 2 else tell(browser, good)
        assert tracked.status_code == 200
        connection.close()

    threads = [threading.Thread(target=hit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert redis.get(f"views:total:site.post:{post.pk}") == "1"


def test_a_page_that_javascript_makes_has_a_token_of_its_own(
    rf: Any, post: Post, category: Category, caplog: pytest.LogCaptureFixture
) -> None:
    user = factories.user()
    browser = factories.browser(user)
    tell(browser, shown.page_token(rf.get("/api/"), views=[post], reads=[category]))
    assert views(post) == 1
    assert reports.unread(user, [category]) == set()
    log: Any = of_requests._log_mistake
    log.cache_clear()  # which logs once in a process
    shown.page_token(rf.get("/"), views=[category])
    assert "Category has no counts" in caplog.text
    shown.page_token(rf.get("/"), reads=[post])
    assert "Post has no read state" in caplog.text


@pytest.mark.parametrize(("number", "has_token"), [(5, True), (100, False)])
def test_a_page_with_more_views_than_a_placeholder_holds_is_the_servers_alone(
    rf: Any, number: int, has_token: bool
) -> None:
    request = rf.get("/")
    request.readtrack = Recorder()
    request.readtrack.views = {f"site.page:{'x' * 50}{number}": None for number in range(number)}
    html = (
        engines["django"]
        .from_string("{% load readtrack %}{% readtrack_script %}")
        .render({}, request)
    )
    text = filling.filled(html.encode(), lambda: None).decode()
    assert ('data-page=""' not in text) is has_token
    assert "!rt!" not in text


def test_the_script_fills_in_two_hundred_counts_and_dots_of_a_page() -> None:
    Post.objects.bulk_create([Post(title=str(number)) for number in range(201)])
    response = factories.browser().get("/shared/list/")
    assert len(set(PLACE.findall(response.text))) == 201
    assert len(tell(factories.browser(), token(response)).json()["elements"]) == 200


def test_a_dot_without_an_element_of_its_own_gets_one(settings: Settings, post: Post) -> None:
    [django, *others] = settings.TEMPLATES
    loader = ("django.template.loaders.locmem.Loader", {"readtrack/dot.html": "(new)"})
    options = {
        **django["OPTIONS"],
        "loaders": [loader, "django.template.loaders.app_directories.Loader"],
    }
    settings.TEMPLATES = [{**django, "APP_DIRS": False, "OPTIONS": options}, *others]
    page = factories.browser(factories.user()).get(f"/plain/{post.pk}/").text
    assert re.search(r'<span data-rt="[\w-]{8}">\(new\)</span>', page)


@pytest.mark.parametrize("is_signed_in", [True, False])
def test_the_answer_takes_one_round_trip(
    wire: Wire, settings: Settings, post: Post, category: Category, is_signed_in: bool
) -> None:
    settings.READTRACK = {"DEBUG_HEADER": True}
    browser = factories.browser(factories.user() if is_signed_in else None)
    response = browser.get(f"/read/{post.pk}/", headers={"Sec-Purpose": "prefetch"})
    tell(browser, token(response))
    for key in ("viewed:*", "rate:*"):
        connect().delete(*connect().keys(key))
    skip_buffer.send_rest()
    with wire.counted() as trips:
        answer = send(browser, token(response))
    assert trips == [1]
    assert answer["X-Readtrack"] == ("counted, read" if is_signed_in else "counted")
    count, dot = answer.json()["elements"].values()
    assert "2 views" in count
    assert '"hidden": ""' in dot


def test_without_redis_the_answer_shows_what_sql_stores(wire: Wire, post: Post) -> None:
    Post.objects.update(view_count=7)
    browser = factories.browser()
    response = browser.get(f"/read/{post.pk}/", headers={"Sec-Purpose": "prefetch"})
    wire.cut()
    answer = send(browser, token(response))
    assert answer.status_code == 200
    assert "7 views" in "".join(answer.json()["elements"].values())


def test_the_answer_is_the_same_served_by_asgi(post: Post) -> None:
    response = factories.browser().get(f"/read/{post.pk}/", headers={"Sec-Purpose": "prefetch"})
    headers = {**OWN, "User-Agent": factories.BROWSER}
    ask = async_to_sync(AsyncClient().post)
    answer = ask("/readtrack/page.js", token(response), content_type="text/plain", headers=headers)
    assert "1 view" in "".join(answer.json()["elements"].values())
    assert views(post) == 1


def test_a_page_out_of_cache_page_counts_without_its_script_as_well(
    post: Post, category: Category
) -> None:
    user = factories.user()
    for number, reader in enumerate((None, None, user)):
        factories.browser(reader, headers={"User-Agent": other(number)}).get(f"/cached/{post.pk}/")
    assert views(post) == 3
    assert reports.unread(user, [category]) == set()
