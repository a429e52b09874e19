"""Visits to a page: what counts, what is marked read, what the page costs and shows."""

import time
from collections.abc import Callable
from datetime import datetime
from itertools import cycle
from math import inf
from random import Random
from time import perf_counter
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.contrib.auth.models import AnonymousUser, User
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.template import RequestContext, Template, engines
from django.test import AsyncClient, Client, RequestFactory
from django.urls import path, reverse
from django.utils.cache import get_conditional_response
from django.views.generic import DateDetailView, DeleteView, DetailView
from django.views.generic.edit import DeletionMixin
from pytest_django import DjangoAssertNumQueries, Settings
from redis import Redis

from readtrack import parts, reports, tracker
from readtrack.flush.run import flush
from readtrack.hits import visitors
from readtrack.middleware import ReadTrackMiddleware
from readtrack.store import clock, counting
from readtrack.store.skips import skip_buffer
from readtrack.subjects import subject_of
from tests.site.models import Category, Manual, Post, Product
from tests.site.urls import urlpatterns as site_urls
from tests.support import factories
from tests.support.rows import each_row
from tests.support.waiting import ENOUGH, comes_true
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

# Values of Sec-Fetch-Dest,
# https://developer.mozilla.org/docs/Web/HTTP/Reference/Headers/Sec-Fetch-Dest
EMBEDDED = ["image", "script", "style", "font", "audio", "video", "track", "manifest", "worker"]
FRAMES = ["iframe", "frame", "embed", "object"]


def views(redis: Redis, post: Post) -> int:
    return int(redis.get(f"views:total:site.post:{post.pk}") or 0)


def recorded(redis: Redis) -> list[str]:
    """Returns the keys of views that counted and of categories that were read."""
    patterns = ("views:total:*", "views:hll:*", "viewed:*", "trending:bucket:*", "category:*")
    return [str(key) for pattern in patterns for key in redis.keys(pattern)]


AGENTS = [
    factories.BROWSER,
    "Googlebot/2.1",
    "ChatGPT-User/1.0",
    "curl/8.5",
    "",
    "Chrome-Lighthouse",
]


def skips_of(request: Any, status: int, *, user: Any, steps: bool) -> dict[Any, int]:
    """Returns what waits for Redis after a page that shows two posts and no count."""

    def page(request: Any) -> HttpResponse:
        request.user = user
        request.readtrack.views.update({"site.post:1": None, "site.post:2": None})
        if steps and parts.stages():
            request.readtrack.steps["site.post:1", parts.stages()[0]] = None
        return HttpResponse(status=status)

    skip_buffer.clear()
    skip_buffer.due = inf
    ReadTrackMiddleware(page)(request)
    return dict(skip_buffer.skips)


def test_a_robot_is_skipped_at_once_as_by_all_steps(settings: Settings) -> None:
    """Pages that explain themselves take all the steps."""
    chance, given = Random(11), settings.READTRACK
    found = set()
    for number in range(150):
        headers = {
            "User-Agent": chance.choice(AGENTS),
            "Sec-Purpose": chance.choice(["", "prefetch"]),
        }
        headers["Sec-Fetch-Dest"] = chance.choice(["document", "image"])
        make = RequestFactory().generic
        method, path = chance.choice(["GET", "GET", "POST", "HEAD"]), f"/?{number}"
        user = chance.choice([None, AnonymousUser(), User()])
        has_steps = chance.random() < 0.2
        status = chance.choice([200, 200, 304, 404])
        by_way = []
        for explains in (False, True):
            bots = {"more": ["curl"]}
            settings.READTRACK = {**given, "DEBUG_HEADER": explains, "BOTS": bots}
            if isinstance(user, User):
                user.pk = 2 * number + explains
            address = f"192.0.{2 + explains}.{number + 1}"
            request: Any = make(method, path, headers=headers, REMOTE_ADDR=address)
            by_way.append(skips_of(request, status, user=user, steps=has_steps))
        assert by_way[0] == by_way[1]
        found |= {field for _, field in by_way[0]}
    assert {"method", "status", "prefetch", "embed", "bot", "agent", "bot:Googlebot"} <= found
    skip_buffer.clear()


def forget_windows(redis: Redis) -> None:
    redis.delete(*redis.keys("viewed:*"), *redis.keys("rate:*"))


@pytest.mark.parametrize("page", ["/posts/{}/", "/posts/{}/function/", "/posts/{}/async/"])
def test_a_page_counts_its_visitor_once_in_a_window(redis: Redis, page: str) -> None:
    post, browser = factories.post(), factories.browser()
    for _ in range(3):
        assert browser.get(page.format(post.pk)).status_code == 200
    assert views(redis, post) == 1


@pytest.mark.parametrize("page", ["/posts/{}/", "/posts/{}/function/", "/posts/{}/async/"])
def test_a_page_served_by_asgi_counts_its_visitor_once_in_a_window(redis: Redis, page: str) -> None:
    post, browser = factories.post(), AsyncClient()
    for _ in range(3):
        assert factories.fetch_async(browser, page.format(post.pk)).status_code == 200
    assert views(redis, post) == 1


def test_a_signed_in_reader_is_known_to_an_async_page(redis: Redis) -> None:
    category, user, browser = factories.category(), factories.user(), AsyncClient()
    browser.force_login(user)
    factories.fetch_async(browser, f"/categories/{category.pk}/")
    assert redis.getbit(f"category:site.category:{category.pk}:read", user.pk) == 1
    anonymous = factories.fetch_async(AsyncClient(), f"/categories/{category.pk}/")
    assert b"readtrack-dot" not in anonymous.content


def test_an_async_page_that_shows_nothing_takes_no_round_trip(wire: Wire) -> None:
    with wire.counted() as trips:
        assert factories.fetch_async(AsyncClient(), "/nothing/").status_code == 404
    assert trips == [0]


def test_the_first_view_of_the_next_window_counts_again(redis: Redis) -> None:
    post, browser = factories.post(), factories.browser()
    browser.get(f"/posts/{post.pk}/")
    assert 0 < redis.ttl(redis.keys("viewed:*")[0]) <= 1800
    forget_windows(redis)
    browser.get(f"/posts/{post.pk}/")
    assert views(redis, post) == 2


def test_a_repeat_does_not_make_the_window_longer(redis: Redis) -> None:
    post, browser = factories.post(), factories.browser()
    browser.get(f"/posts/{post.pk}/")
    window = redis.keys("viewed:*")[0]
    redis.expire(window, 100)
    browser.get(f"/posts/{post.pk}/")
    assert redis.ttl(window) <= 100


def test_two_visitors_count_twice_and_are_two_unique_visitors(redis: Redis) -> None:
    post = factories.post()
    for agent in (factories.BROWSER, factories.BROWSER.replace("140", "141")):
        factories.browser(headers={"User-Agent": agent}).get(f"/posts/{post.pk}/")
    assert views(redis, post) == 2
    assert redis.pfcount(f"views:hll:site.post:{post.pk}") == 2


@each_row(
    "headers",
    [
        {"Sec-Purpose": "prefetch"},
        {"Sec-Purpose": "prefetch;prerender"},
        {"Purpose": "prefetch"},
        {"X-Purpose": "preview"},
        {"X-Moz": "prefetch"},
        {"X-Sec-Purpose": "prefetch"},
        {"HX-Preloaded": "true"},
        *({"Sec-Fetch-Dest": part, "Sec-Fetch-Site": "same-origin"} for part in EMBEDDED),
        *({"Sec-Fetch-Dest": frame, "Sec-Fetch-Site": "cross-site"} for frame in FRAMES),
        {"User-Agent": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"},
        {"User-Agent": "curl/8.5.0"},
        {"User-Agent": ""},
        {"User-Agent": "   "},
    ],
)
def test_robots_and_prefetches_are_served_and_not_counted(
    redis: Redis, headers: dict[str, str]
) -> None:
    post = factories.post()
    response = factories.browser().get(f"/posts/{post.pk}/", headers=headers)
    assert post.title in response.text
    assert recorded(redis) == []
    assert not response.cookies


@pytest.mark.parametrize(
    "headers",
    [
        *({"Sec-Fetch-Dest": frame, "Sec-Fetch-Site": "same-origin"} for frame in FRAMES),
        {
            "Sec-Fetch-Dest": "document",
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Site": "cross-site",
        },  # a link on another site
        {
            "Sec-Fetch-Dest": "empty",
            "Sec-Fetch-Site": "same-origin",
        },  # a page that Turbo or htmx fetches
        {
            "Sec-Fetch-Dest": "something new",
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Site": "cross-site",
        },
        {"HX-Preloaded": "false"},
    ],
)
def test_pages_that_a_person_looks_at_count_however_they_are_fetched(
    redis: Redis, headers: dict[str, str]
) -> None:
    post = factories.post()
    factories.browser().get(f"/posts/{post.pk}/", headers=headers)
    assert views(redis, post) == 1


APPS = [
    "okhttp/4.12.0",
    "MyShop/3.1 CFNetwork/1410 Darwin/23.4.0",
    "Dart/3.3 (dart:io)",
    "MyApp/42 (com.example.app; build:7; iOS 17.4) Alamofire/5.9",
    "MyApp/42",
    "",
]


@pytest.mark.parametrize("agent", APPS)
def test_a_signed_in_user_of_any_app_is_a_person(
    redis: Redis, wire: Wire, rf: Any, agent: str
) -> None:
    category, post, user = factories.category(), factories.post(), factories.user()

    def page(request: Any) -> HttpResponse:
        request.user = user  # as the authentication of an API does
        request.readtrack.view(post)
        request.readtrack.read(category)
        return HttpResponse()

    request = rf.get("/", headers={"User-Agent": agent})
    clock.at(0)  # known from an earlier answer
    with wire.counted() as trips:
        ReadTrackMiddleware(page)(request)
    assert trips == [1]
    assert reports.unread(user, [category]) == set()
    assert views(redis, post) == 1


@pytest.mark.parametrize("agent", APPS)
def test_somebody_with_an_app_who_is_not_signed_in_is_a_robot(redis: Redis, agent: str) -> None:
    factories.browser(headers={"User-Agent": agent}).get(f"/posts/{factories.post().pk}/")
    assert recorded(redis) == []


def test_a_signed_in_robot_that_the_site_names_is_a_robot(redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {"BOTS": {"more": ["^uptime/"], "people": ["^uptime/desk"]}}
    category, post, user = factories.category(), factories.post(), factories.user()
    for agent in ("uptime/1.0", "uptime/desk"):
        robot = factories.browser(user, headers={"User-Agent": agent})
        robot.get(f"/posts/{post.pk}/")
        robot.get(f"/categories/{category.pk}/")
        assert views(redis, post) == (agent == "uptime/desk")
        assert reports.unread(user, [category]) == (set() if agent == "uptime/desk" else {category})


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("head", {}, 200),
        ("get", {"Sec-Purpose": "prefetch"}, 200),
        ("get", {"Sec-Purpose": "prefetch", "User-Agent": "curl/8.5.0"}, 200),
        ("get", {"User-Agent": "curl/8.5.0"}, 404),
        ("get", {"X-Sec-Purpose": "prefetch"}, 200),
        ("get", {"HX-Preloaded": "true"}, 200),
        ("get", {"Sec-Fetch-Dest": "image"}, 200),
    ],
)
def test_a_page_that_a_signed_in_user_did_not_see_stays_unread(
    method: str, headers: dict[str, str], status: int
) -> None:
    category, user = factories.category(), factories.user()

    def page(request: Any) -> HttpResponse:
        request.readtrack.read(category)
        return HttpResponse(status=status)

    request: Any = getattr(RequestFactory(), method)(
        "/", headers={"User-Agent": factories.BROWSER, **headers}
    )
    request.user = user
    ReadTrackMiddleware(page)(request)
    assert reports.unread(user, [category]) == {category}


def test_a_robot_that_has_a_cookie_is_no_reader(settings: Settings) -> None:
    settings.READTRACK = {"DOTS": {"anonymous": 1_000_000}}
    category, browser = factories.category(), factories.browser()
    browser.get(f"/categories/{category.pk}/")
    assert "readtrack-dot" in browser.get("/list/").text
    browser.get(f"/categories/{category.pk}/", headers={"User-Agent": "curl/8.5.0"})
    assert "readtrack-dot" in browser.get("/list/").text


def test_a_request_without_any_user_agent_does_not_count(redis: Redis, client: Client) -> None:
    post = factories.post()
    assert client.get(f"/posts/{post.pk}/").status_code == 200
    assert recorded(redis) == []


@pytest.mark.parametrize("status", [301, 302, 305, 403, 404, 410, 500, 503])
def test_only_a_success_counts(redis: Redis, status: int) -> None:
    post = factories.post()
    assert factories.browser().get(f"/posts/{post.pk}/status/{status}/").status_code == status
    assert recorded(redis) == []


def test_a_page_that_the_browser_has_already_counts_if_its_subject_is_known(
    redis: Redis, rf: Any
) -> None:
    post = factories.post()

    def page(request: Any) -> Any:
        request.readtrack.view(post)
        return get_conditional_response(request, etag='"1"', response=HttpResponse("a page"))

    for _ in range(2):
        response: Any = ReadTrackMiddleware(page)(
            rf.get("/", headers={"User-Agent": factories.BROWSER, "If-None-Match": '"1"'})
        )
        assert response.status_code == 304
    assert views(redis, post) == 1


def test_a_missing_page_counts_nothing(redis: Redis) -> None:
    assert factories.browser().get("/posts/404/").status_code == 404
    assert recorded(redis) == []


@pytest.mark.parametrize("method", ["head", "post", "put", "options"])
def test_only_a_get_counts(redis: Redis, method: str) -> None:
    post = factories.post()
    getattr(factories.browser(), method)(f"/posts/{post.pk}/function/")
    assert recorded(redis) == []


def test_the_page_that_asks_before_deleting_does_not_count(redis: Redis) -> None:
    post = factories.post()
    response = factories.browser().get(f"/posts/{post.pk}/delete/")
    assert post.title in response.text
    assert recorded(redis) == []


def test_the_detail_page_of_a_model_that_is_not_tracked_records_nothing(redis: Redis) -> None:
    manual = Manual.objects.create(title="How to")
    response = factories.browser(factories.user()).get(f"/manuals/{manual.pk}/")
    assert "How to" in response.text
    assert recorded(redis) == []


def test_a_model_named_in_the_settings_is_read_by_its_detail_page(
    redis: Redis, settings: Settings
) -> None:
    settings.READTRACK = {"MODELS": {"site.Manual": {"read_state": True}}}
    manual, user = Manual.objects.create(title="How to"), factories.user()
    factories.browser(user).get(f"/manuals/{manual.pk}/")
    assert reports.unread(user, [manual]) == set()
    assert redis.keys("views:*") == []


@pytest.mark.urls(__name__)
def test_a_detail_view_whose_object_is_no_model_records_nothing(redis: Redis) -> None:
    assert "just words" in factories.browser().get("/words/").text
    assert recorded(redis) == []


class Words(DetailView):
    template_name = "site/manual.html"

    def get_object(self, queryset: Any = None) -> Any:
        return {"title": "just words"}


urlpatterns = [path("words/", Words.as_view())]


@pytest.mark.needs_parts("numbers")
def test_a_mistake_of_the_sites_code_is_logged_with_its_cure_and_the_page_goes_on(
    redis: Redis, rf: Any, caplog: pytest.LogCaptureFixture
) -> None:
    post, category = factories.post(), factories.category()
    counted = "let it extend readtrack.models.Tracked"
    mistakes: list[tuple[Callable[[Any], None], str]] = [
        (lambda recorder: recorder.view(category), counted),
        (
            lambda recorder: recorder.view(Post()),
            "this Post has no primary key yet; save it before.",
        ),
        (lambda recorder: recorder.view({"title": "just words"}), "dict is no model"),
        (lambda recorder: recorder.view(None), "NoneType is no model"),
        (lambda recorder: recorder.read(Category()), "this Category has no primary key yet"),
        (lambda recorder: recorder.step(post, "bought"), "has no stage 'bought'; it has: view"),
        (lambda recorder: recorder.step(Post(), "click"), "this Post has no primary key yet"),
        (lambda recorder: recorder.step("words", "click"), "str is no model"),
    ]
    for mistake, cure in mistakes:
        for _ in range(2):  # it is logged once

            def page(request: Any, mistake: Callable[[Any], None] = mistake) -> HttpResponse:
                mistake(request.readtrack)
                return HttpResponse("the page")

            response: Any = ReadTrackMiddleware(page)(
                rf.get("/", headers={"User-Agent": factories.BROWSER})
            )
            assert response.content == b"the page"
        [message] = [record.getMessage() for record in caplog.records]
        assert message.startswith("request.readtrack."), message
        assert cure in message
        assert "test_middleware.py" in str(caplog.records[0].stack_info)
        caplog.clear()
    assert recorded(redis) == []


def test_one_page_may_view_several_posts(redis: Redis, rf: Any) -> None:
    posts = [factories.post() for _ in range(3)]

    def page(request: Any) -> HttpResponse:
        for post in [*posts, posts[0]]:
            request.readtrack.view(post)
        return HttpResponse()

    ReadTrackMiddleware(page)(rf.get("/", headers={"User-Agent": factories.BROWSER}))
    assert [views(redis, post) for post in posts] == [1, 1, 1]


def test_a_visitor_who_keeps_no_cookies_is_one_visitor(redis: Redis) -> None:
    post = factories.post()
    for _ in range(3):
        factories.browser().get(f"/posts/{post.pk}/")
    assert views(redis, post) == 1


def test_the_first_visit_and_the_next_with_its_cookie_are_one_visitor(redis: Redis) -> None:
    first, second, browser = factories.post(), factories.post(), factories.browser()
    for post in (first, second, first, second):
        browser.get(f"/posts/{post.pk}/")
    assert (views(redis, first), views(redis, second)) == (1, 1)
    forget_windows(redis)
    browser.get(f"/posts/{first.pk}/")
    assert redis.pfcount(f"views:hll:site.post:{first.pk}") == 1


def test_two_visitors_behind_one_address_are_told_apart_by_their_cookies(redis: Redis) -> None:
    browsers = [factories.browser(), factories.browser()]
    for browser in browsers:
        browser.get(f"/posts/{factories.post().pk}/")
        redis.delete(*redis.keys("rate:*"))
    post = factories.post()
    for browser in browsers:
        browser.get(f"/posts/{post.pk}/")
    assert views(redis, post) == 2


@pytest.mark.parametrize(
    "cookie", ["", "forged", "forged:1abc:signature", "a" * 5000, "é\x00", "x" * 22]
)
def test_a_cookie_that_we_did_not_sign_is_ignored(redis: Redis, cookie: str) -> None:
    post = factories.post()
    for number in range(3):
        browser = factories.browser()
        browser.cookies["anon_id"] = cookie and f"{cookie}{number}"
        assert browser.get(f"/posts/{post.pk}/").status_code == 200
    assert views(redis, post) == 1


def test_a_cookie_signed_for_something_else_is_ignored(redis: Redis) -> None:
    response = HttpResponse()
    response.set_signed_cookie("anon_id", "mine", salt="the site's own")
    browser, post = factories.browser(), factories.post()
    browser.cookies["anon_id"] = response.cookies["anon_id"].value
    factories.browser().get(f"/posts/{post.pk}/")
    browser.get(f"/posts/{post.pk}/")
    assert views(redis, post) == 1


@pytest.mark.parametrize(
    ("age", "is_new"), [(0, False), (3_500, False), (3_700, True), (5 * 365 * 86_400, True)]
)
def test_a_cookie_expires_on_the_server_as_well(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, age: int, is_new: bool
) -> None:
    settings.READTRACK = {"COOKIE": {"age": 3_600}}
    browser, now = factories.browser(), time.time()
    with monkeypatch.context() as patch:
        patch.setattr(visitors, "time", SimpleNamespace(time=lambda: now - age))
        browser.get(f"/posts/{factories.post().pk}/")
    assert ("anon_id" in browser.get(f"/posts/{factories.post().pk}/").cookies) == is_new


@pytest.mark.parametrize(
    ("fallbacks", "is_new"), [(["yesterday"], False), (["before", "yesterday"], False), ([], True)]
)
def test_a_cookie_outlives_a_change_of_the_secret_key_by_its_fallbacks(
    settings: Settings, redis: Redis, fallbacks: list[str], is_new: bool
) -> None:
    settings.READTRACK = {"SECRET": "stays"}
    settings.SECRET_KEY = "yesterday"
    browser, post = factories.browser(), factories.post()
    browser.get(f"/posts/{post.pk}/")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "today", fallbacks
    assert ("anon_id" in browser.get(f"/posts/{factories.post().pk}/").cookies) == is_new
    browser.get(f"/posts/{post.pk}/")
    assert views(redis, post) == 1 + is_new


def test_a_signed_in_user_is_one_visitor_in_every_browser(redis: Redis) -> None:
    user, post = factories.user(), factories.post()
    for address in ("192.0.2.1", "192.0.2.2"):
        response = factories.browser(user).get(f"/posts/{post.pk}/", REMOTE_ADDR=address)
        assert "anon_id" not in response.cookies
    assert views(redis, post) == 1


def test_more_than_five_hits_in_ten_seconds_do_not_count_and_nobody_is_banned(redis: Redis) -> None:
    browser, posts = factories.browser(), [factories.post() for _ in range(8)]
    for post in posts:
        assert browser.get(f"/posts/{post.pk}/").status_code == 200
    assert sum(views(redis, post) for post in posts) <= 6  # the cookie begins a new account
    redis.delete(*redis.keys("rate:*"))
    browser.get(f"/posts/{posts[-1].pk}/")
    assert views(redis, posts[-1]) == 1


@pytest.mark.parametrize("is_secure", [False, True])
def test_the_cookie_is_kept_from_scripts_and_from_other_sites(is_secure: bool) -> None:
    response = factories.browser().get(f"/posts/{factories.post().pk}/", secure=is_secure)
    cookie = response.cookies["anon_id"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert bool(cookie["secure"]) == is_secure
    assert cookie["max-age"] == 31_536_000
    assert response["Cache-Control"] == "private"


@pytest.mark.parametrize("cache_control", ["public, max-age=60", "s-maxage=60", "PUBLIC"])
def test_a_response_that_shared_caches_may_keep_sets_no_cookie(
    redis: Redis, rf: Any, cache_control: str
) -> None:
    post = factories.post()

    def page(request: Any) -> HttpResponse:
        request.readtrack.view(post)
        return HttpResponse(headers={"Cache-Control": cache_control})

    response: Any = ReadTrackMiddleware(page)(
        rf.get("/", headers={"User-Agent": factories.BROWSER})
    )
    assert views(redis, post) == 1
    assert not response.cookies
    assert "Vary" not in response
    # Nobody can bring back what is never set, so who comes again is no new visitor.
    forget_windows(redis)
    ReadTrackMiddleware(page)(rf.get("/", headers={"User-Agent": factories.BROWSER}))
    assert views(redis, post) == 2
    assert redis.pfcount(f"views:hll:site.post:{post.pk}") == 1


def test_a_page_that_is_shared_at_times_recognises_a_visitor_of_a_moment_ago(
    redis: Redis, rf: Any
) -> None:
    post, pages = (
        factories.post(),
        iter([{"Cache-Control": "public"}, {}, {"Cache-Control": "public"}]),
    )

    def page(request: Any) -> HttpResponse:
        request.readtrack.view(post)
        return HttpResponse(headers=next(pages))

    for _ in range(3):
        ReadTrackMiddleware(page)(rf.get("/", headers={"User-Agent": factories.BROWSER}))
    assert views(redis, post) == 1


@pytest.mark.parametrize(("posts", "first"), [(30, 5), (1, 1)])
def test_of_a_school_class_some_first_pages_count_and_every_page_after_it(
    settings: Settings, posts: int, first: int
) -> None:
    """Thirty people, one address and one browser. They open one post at once, or a post each; then
    another one.
    """
    settings.READTRACK = {"RATE": (5, 60), "UNIQUE": "set"}
    pages, people = (
        [factories.post() for _ in range(posts)],
        [factories.browser() for _ in range(30)],
    )
    for person, page in zip(people, cycle(pages), strict=False):
        assert "anon_id" in person.get(f"/posts/{page.pk}/").cookies
    assert sum(reports.views(pages).values()) == first
    for person, page in zip(people, cycle(pages), strict=False):
        person.get(f"/posts/{page.pk}/")
    assert sum(reports.views(pages).values()) == first
    following = factories.post()
    for person in people:
        person.get(f"/posts/{following.pk}/")
        person.get(f"/posts/{following.pk}/")
    assert reports.views([following]) == {following: 30}
    assert sum(reports.visitors([*pages, following]).values()) == first + 30


def test_cookies_that_are_dropped_and_brought_later_gain_one_view(redis: Redis) -> None:
    post, browsers = factories.post(), [factories.browser() for _ in range(20)]
    for _ in range(2):
        for browser in browsers:
            browser.get(f"/posts/{post.pk}/")
    assert views(redis, post) == 1


def test_a_window_says_if_its_view_was_refused(redis: Redis) -> None:
    post, browsers = factories.post(), [factories.browser() for _ in range(3)]
    for browser in browsers:
        browser.get(f"/posts/{post.pk}/")
    assert sorted(str(redis.get(key)) for key in redis.keys("viewed:*")) == ["0", "0", "1", "p"]
    assert all(1_800 - ENOUGH < redis.ttl(key) <= 1_800 for key in redis.keys("viewed:*"))


def test_a_flood_without_cookies_opens_few_windows(
    settings: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "NEWCOMERS", 10)
    settings.READTRACK = {**settings.READTRACK}  # forgets the packed commands of other tests
    post, browsers = factories.post(), [factories.browser() for _ in range(30)]
    for browser in browsers:
        browser.get(f"/posts/{post.pk}/")
    # One hit counted, and opened two windows. Nine were refused with a window.
    assert len(redis.keys("viewed:*")) == 2 + 9
    for browser, count in ((browsers[9], 1), (browsers[10], 2)):
        browser.get(f"/posts/{post.pk}/")
        assert views(redis, post) == count


@pytest.mark.parametrize("page", ["/posts/{}/", "/posts/{}/async/"])
def test_signing_in_and_out_within_a_window_counts_once(redis: Redis, page: str) -> None:
    first, second, browser = factories.post(), factories.post(), factories.browser()
    browser.get(page.format(first.pk))
    browser.force_login(factories.user())
    for post in (first, second):
        browser.get(page.format(post.pk))
    del browser.cookies["sessionid"]
    for post in (first, second):
        browser.get(page.format(post.pk))
    assert (views(redis, first), views(redis, second)) == (1, 1)


def test_two_accounts_in_a_browser_with_our_cookie_are_one_visitor_of_a_post(redis: Redis) -> None:
    first, second, browser = factories.post(), factories.post(), factories.browser()
    browser.get(f"/posts/{first.pk}/")
    for _ in range(2):
        browser.force_login(factories.user())
        browser.get(f"/posts/{second.pk}/")
    assert views(redis, second) == 1


def test_of_posts_that_a_new_visitor_opens_side_by_side_all_but_one_count_again_when_reloaded(
    redis: Redis,
) -> None:
    posts, tabs = [factories.post() for _ in range(3)], [factories.browser() for _ in range(3)]
    for tab, post in zip(tabs, posts, strict=True):
        tab.get(f"/posts/{post.pk}/")
    for post in posts * 2:
        tabs[-1].get(f"/posts/{post.pk}/")
        redis.delete(*redis.keys("rate:*"))
    assert [views(redis, post) for post in posts] == [2, 2, 1]


def test_a_repeat_of_a_user_makes_no_window_longer_and_their_rate_is_their_own(
    redis: Redis,
) -> None:
    post, user, other = factories.post(), factories.user(), factories.browser()
    factories.browser(user).get(f"/posts/{post.pk}/")
    other.get(f"/posts/{factories.post().pk}/")
    other.force_login(user)
    other.get(f"/posts/{post.pk}/")
    assert views(redis, post) == 1
    redis.delete(f"viewed:{visitors.user_id(user.pk)}:site.post:{post.pk}")
    other.get(f"/posts/{post.pk}/")
    assert views(redis, post) == 2
    assert redis.get(f"rate:{visitors.user_id(user.pk)}") == "3"


@pytest.mark.parametrize("options", [{"ANONYMOUS": "hash"}, {"HONOUR_OPT_OUT": True}])
def test_a_user_of_a_site_or_browser_without_cookies_is_known_by_the_account_alone(
    settings: Settings, redis: Redis, options: dict[str, object]
) -> None:
    settings.READTRACK = options
    post, user = factories.post(), factories.user()
    for who in (user, factories.user()):
        factories.browser(who, headers={"User-Agent": factories.BROWSER, "DNT": "1"}).get(
            f"/posts/{post.pk}/"
        )
    assert views(redis, post) == 2


def test_a_category_page_shows_itself_read_and_puts_the_dot_out_everywhere() -> None:
    category, browser = factories.category(), factories.browser(factories.user())
    assert browser.get("/list/").text.count("readtrack-dot__text") == 1
    assert "readtrack-dot" not in browser.get(f"/categories/{category.pk}/").text
    assert "readtrack-dot" not in browser.get("/list/").text


@pytest.mark.parametrize("page", ["/categories/{}/", "/categories/{}/function/"])
def test_reading_is_each_readers_own(page: str) -> None:
    category, reader, other = factories.category(), factories.user(), factories.user()
    factories.browser(reader).get(page.format(category.pk))
    assert reports.unread(reader, [category]) == set()
    assert reports.unread(other, [category]) == {category}


def test_anonymous_visitors_have_no_dots_and_leave_no_read_state(redis: Redis) -> None:
    category = factories.category()
    assert "readtrack-dot" not in factories.browser().get(f"/categories/{category.pk}/").text
    assert "readtrack-dot" not in factories.browser().get("/list/").text
    assert redis.keys("category:*") == []


def test_news_that_comes_while_the_page_is_built_stays_unread(rf: Any) -> None:
    category, user = factories.category(), factories.user()

    def page(request: Any) -> HttpResponse:
        request.readtrack.began -= 5  # it takes seconds, most of them before the news
        request.readtrack.read(category)
        tracker.mark_unread([category])
        return HttpResponse()

    request = rf.get("/", headers={"User-Agent": factories.BROWSER})
    request.user = user
    ReadTrackMiddleware(page)(request)
    assert reports.unread(user, [category]) == {category}

    def is_read() -> bool:
        ReadTrackMiddleware(lambda request: _reading(request, category))(request)
        return reports.unread(user, [category]) == set()

    assert comes_true(is_read)  # the page's moment is known to some milliseconds


@pytest.mark.parametrize("make", [factories.post, factories.user, lambda: None])
@pytest.mark.usefixtures("new_redis")
def test_reading_what_has_no_read_state_marks_nothing_and_is_logged(
    make: Any, rf: Any, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    obj = make()
    response: Any = ReadTrackMiddleware(lambda request: _reading(request, obj))(rf.get("/"))
    assert response.status_code == 200
    [message] = caplog.messages
    assert "has no read state; write into the settings READTRACK" in message
    assert redis.keys() == []


def _reading(request: Any, category: Any) -> HttpResponse:
    request.readtrack.read(category)
    return HttpResponse()


def test_recording_costs_one_round_trip_and_no_query(
    wire: Wire, redis: Redis, rf: Any, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    post, category, user = factories.post(), factories.category(), factories.user()

    def page(request: Any) -> HttpResponse:
        request.readtrack.view(post)
        request.readtrack.read(category)
        return HttpResponse()

    def visit() -> None:
        request = rf.get("/", headers={"User-Agent": factories.BROWSER})
        request.user = user
        ReadTrackMiddleware(page)(request)

    visit()  # the server learns the scripts
    forget_windows(redis)
    with django_assert_num_queries(0), wire.counted() as trips:
        visit()
    assert trips == [1]
    assert views(redis, post) == 2


def test_a_page_of_fifty_counts_and_fifty_dots_costs_one_round_trip_and_no_query_of_its_own(
    wire: Wire, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(50):
        factories.post(category=factories.category())
    browser = factories.browser(factories.user())
    browser.get("/list/")
    # The session, the user, the posts, the categories.
    with django_assert_num_queries(4), wire.counted() as trips:
        text = browser.get("/list/").text
    assert trips == [1]
    assert text.count("readtrack-count") == 50
    assert text.count("readtrack-dot__text") == 50


def test_a_page_that_records_and_shows_costs_two_round_trips(wire: Wire) -> None:
    browser = factories.browser()
    browser.get(f"/posts/{factories.post().pk}/")
    with wire.counted() as trips:
        text = browser.get(f"/posts/{factories.post().pk}/").text
    assert trips == [2]
    assert ">1<" in text


def test_a_page_that_has_nothing_to_do_with_us_does_not_ask_redis(
    wire: Wire, client: Client
) -> None:
    with wire.counted() as trips:
        assert client.get("/admin/login/").status_code == 200
    assert trips == [0]


def test_an_anonymous_visitor_costs_no_session_and_no_vary_but_for_dots(
    redis: Redis, rf: Any, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    category = factories.category()
    with django_assert_num_queries(1):  # the page's own
        response = factories.browser().get(f"/categories/{category.pk}/function/")
    assert not response.cookies
    assert response["Vary"] == "Cookie"  # it has a dot, which somebody else would see
    assert "Vary" not in factories.browser().get("/json/").headers


class OuterMiddleware:
    """Makes a page in place of one that is missing, as that of flat pages does; or fails."""

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> Any:
        response = self.get_response(request)
        if response.status_code != 404:
            return response
        if request.path == "/fails/":
            raise Http404
        return flat_page(request)


def flat_page(request: Any) -> HttpResponse:
    source = (
        "{% load readtrack %}{% unread_dot c %}|{% view_count post words %}|"
        "{% if_unread c %}new{% else %}old{% endif_unread %}|"
    )
    if apps.is_installed("readtrack.script"):
        source += "{% readtrack_script %}"
    if apps.is_installed("readtrack.numbers"):
        source += "{% readtrack_panel post %}"
    context = {"c": Category.objects.get(), "post": Post.objects.get()}
    return HttpResponse(engines["django"].from_string(source).render(context, request))


class Urls:
    urlpatterns = site_urls

    @staticmethod
    def handler404(request: Any, exception: Exception) -> HttpResponse:
        response = flat_page(request)
        response.status_code = 404
        return response


@pytest.mark.parametrize("path", ["/about/", "/fails/"])
def test_a_page_that_an_outer_middleware_makes_is_filled_in(settings: Settings, path: str) -> None:
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE[:-1],
        f"{__name__}.OuterMiddleware",
        settings.MIDDLEWARE[-1],
    ]
    settings.ROOT_URLCONF = Urls
    factories.post(view_count=1234)
    factories.category()
    text = factories.browser(factories.user()).get(path).text
    assert "!rt!" not in text
    dot, count, words, script = text.split("|")
    assert ("readtrack-dot" in dot, "1.2k views" in count, words, script) == (True, True, "new", "")
    anonymous = factories.browser().get(path).text
    assert "!rt!" not in anonymous
    assert anonymous.startswith("|")


@pytest.mark.needs_parts("front_end", "numbers", "script")
def test_a_site_where_everybody_has_to_sign_in_has_public_pages(
    settings: Settings, redis: Redis
) -> None:
    from readtrack.script.outbound import outbound_url
    from readtrack.script.shown import page_token

    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE,
        "django.contrib.auth.middleware.LoginRequiredMiddleware",
    ]
    browser = factories.browser()
    post = factories.post()
    assert browser.get(f"/posts/{post.pk}/").status_code == 302
    addresses = {
        "the script": reverse("readtrack:page"),
        "a link": outbound_url(post, "https://example.com/"),
        "the honeypot": factories.honeypot(),
        "what is unread": reverse("readtrack:unread"),
    }
    answers = {name: browser.get(address) for name, address in addresses.items()}
    assert {name: answer.status_code for name, answer in answers.items()} == {
        "the script": 200,
        "a link": 302,
        "the honeypot": 204,
        "what is unread": 401,
    }
    assert answers["a link"]["Location"] == "https://example.com/"
    token = page_token(RequestFactory().get("/"), views=[post])
    told = browser.post(addresses["the script"], token, content_type="text/plain")
    assert (told.status_code, views(redis, post)) == (200, 1)
    assert browser.post(reverse("readtrack:read")).status_code == 401


def test_a_site_without_authentication_counts_too(redis: Redis, settings: Settings) -> None:
    settings.MIDDLEWARE = ["readtrack.middleware.ReadTrackMiddleware"]
    post = factories.post()
    assert factories.browser().get(f"/posts/{post.pk}/function/").status_code == 200
    factories.fetch_async(AsyncClient(), f"/posts/{post.pk}/async/")
    assert views(redis, post) == 1


@pytest.mark.needs_parts("numbers")
def test_the_time_of_a_view_decides_its_buckets(redis: Redis, noon: datetime) -> None:
    post = factories.post()
    tracker.record(factories.hit(subject_of(post), at=noon))
    assert redis.hgetall(f"views:hours:site.post:{post.pk}") == {"2026112012": "1"}
    assert redis.get("views:hour:2026112012:site.post") == "1"
    assert redis.zscore("trending:bucket:202611201200", f"site.post:{post.pk}") == 1


@pytest.mark.usefixtures("new_redis")
def test_every_key_carries_the_prefix(redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {"PREFIX": "site[1]:"}
    post, user = factories.post(), factories.user()
    category = factories.category()
    factories.browser(user).get(f"/posts/{post.pk}/")
    factories.browser(user).get(f"/categories/{category.pk}/")
    factories.browser(user).get("/list/")
    reports.trending()
    assert redis.keys("*")
    assert all(str(key).startswith("site[1]:") for key in redis.keys("*"))


def test_redis_forgetting_the_scripts_is_not_noticed(redis: Redis) -> None:
    first, second, browser = factories.post(), factories.post(), factories.browser()
    browser.get(f"/posts/{first.pk}/")
    redis.script_flush()
    assert ">1<" in browser.get(f"/posts/{second.pk}/").text
    redis.script_flush()
    assert ">1<" in browser.get("/list/").text


@pytest.mark.parametrize("minutes", [-600, -10, 10, 600])
def test_a_web_server_whose_clock_is_wrong_hides_no_view_from_the_quick_flush(
    monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    flush()
    posts = [factories.post() for _ in range(3)]
    monkeypatch.setattr(clock, "time", lambda: time.time() + minutes * 60)
    monkeypatch.setattr(clock, "due", 0.0)
    monkeypatch.setattr(clock, "skew", 0.0)
    factories.browser().get(posts[0].get_absolute_url())
    assert clock.due
    minute_off = clock.skew = clock.skew + 61  # the clock was set since
    monkeypatch.setattr(clock, "due", perf_counter())
    factories.browser().get(posts[1].get_absolute_url())
    assert clock.skew < minute_off
    factories.browser().get(posts[2].get_absolute_url())
    assert flush(only_changed=True).written == 3
    assert sum(reports.skips().values()) == 0


class Rendered(DetailView):
    model = Post

    def get(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        return HttpResponse(self.get_object().title)


class WithoutSuper(DetailView):
    model = Post
    template_name = "site/post.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {"post": self.object}


class Json(DetailView):
    model = Post

    def render_to_response(self, context: Any, **kwargs: Any) -> HttpResponse:
        return JsonResponse({"title": self.get_object().title})


class Dated(DateDetailView):
    model = Post
    template_name = "site/post.html"
    date_field = "created_at"
    month_format = "%m"
    allow_future = True

    def get_object(self, queryset: Any = None) -> Any:
        return get_object_or_404(Post, pk=self.kwargs["pk"])


class WithButton(DeletionMixin, DetailView):
    """A page of the post, whose form deletes it."""

    model = Post
    template_name = "site/post.html"


class Deleting(DeleteView):
    model = Post
    template_name = "site/post.html"
    success_url = "/"


class Preview(DetailView):
    """Shows a product that is not saved, but has a key already."""

    template_name = "site/post.html"

    def get_object(self, queryset: Any = None) -> Any:
        return Product(pk=UUID(int=5), name="A")


@pytest.mark.parametrize(
    ("view", "is_counted"),
    [(Dated, True), (WithButton, True), (Deleting, False), (Preview, False)],
)
def test_djangos_views_of_one_object_count_it(
    view: Any, is_counted: bool, settings: Settings, redis: Redis
) -> None:
    post = factories.post()
    settings.ROOT_URLCONF = (path("<int:pk>/", view.as_view()),)
    settings.READTRACK = {"DEBUG_HEADER": True}
    response = factories.browser().get(f"/{post.pk}/")
    assert (response.status_code, views(redis, post)) == (200, is_counted)
    assert (recorded(redis) != []) is is_counted
    expected = {Deleting: None, Preview: "no subject"}.get(view, "counted")
    assert response.get("X-Readtrack") == expected


class DatedJson(Dated):
    def render_to_response(self, context: Any, **kwargs: Any) -> HttpResponse:
        return JsonResponse({"title": self.get_object().title})


@pytest.mark.parametrize("view", [Rendered, WithoutSuper, Json, DatedJson])
def test_a_detail_view_that_counts_nothing_says_so_with_debug(
    view: Any, settings: Settings, redis: Redis
) -> None:
    post = factories.post()
    settings.ROOT_URLCONF = (path("<int:pk>/", view.as_view()),)
    assert "X-Readtrack" not in factories.browser().get(f"/{post.pk}/")
    settings.DEBUG = True
    assert factories.browser().get(f"/{post.pk}/")["X-Readtrack"] == "no subject"
    assert "X-Readtrack" not in factories.browser().post(f"/{post.pk}/")
    assert "X-Readtrack" not in factories.browser().get("/0/")
    assert recorded(redis) == []


def test_a_page_that_is_no_detail_view_says_nothing(settings: Settings) -> None:
    settings.DEBUG = True
    assert "X-Readtrack" not in factories.browser().get("/list/")


def template_view(source: str) -> Any:
    """Returns a function view that announces nothing, and renders the template."""

    def view(request: HttpRequest) -> HttpResponse:
        posts = list(Post.objects.order_by("pk"))
        context = {"post": posts[0], "posts": posts, "category": posts[0].category}
        template = Template("{% load readtrack %}" + source)
        return HttpResponse(template.render(RequestContext(request, context)))

    return view


MAIN = "{% view_count post %}"
LIST = "{% for post in posts %}{% view_count post words %}{% endfor %}"


WITH_SCRIPT = "{% view_count post exact %}{% readtrack_script %}"


@pytest.mark.parametrize(
    "source",
    [
        MAIN,
        MAIN + MAIN,
        LIST + MAIN,
        pytest.param(WITH_SCRIPT, marks=pytest.mark.needs_parts("script")),
    ],
)
def test_a_page_that_shows_the_count_of_one_object_and_counts_no_view_says_so_with_debug(
    source: str, settings: Settings, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    post = factories.post()
    factories.post()
    settings.READTRACK = {}  # forgets what was said once
    settings.ROOT_URLCONF = (path("p/", template_view(source), name="post"),)
    assert "X-Readtrack" not in factories.browser().get("/p/")
    settings.DEBUG = True
    for _ in range(2):
        header = factories.browser().get("/p/")["X-Readtrack"]
        assert header.startswith(f"no view of site.post:{post.pk}; its view calls no request.")
    (message,) = caplog.messages
    assert "The page of the view 'post' shows the count of one site.post and" in message
    assert "request.readtrack.view(object)" in message
    assert "X-Readtrack" not in factories.browser().post("/p/")
    assert recorded(redis) == []


def test_a_list_and_a_page_that_announces_its_view_are_not_told_of(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    factories.post()
    factories.post()
    shows_post = template_view(MAIN)

    def announcing(request: Any) -> HttpResponse:
        request.readtrack.view(Post.objects.earliest("pk"))
        return shows_post(request)  # type: ignore[no-any-return]

    two = "{% view_count posts.0 %}{% view_count posts.1 %}"
    settings.ROOT_URLCONF = (
        path("list/", template_view(LIST)),
        path("two/", template_view(two)),
        path("post/", announcing),
    )
    settings.DEBUG = True
    assert "X-Readtrack" not in factories.browser().get("/list/")
    assert "X-Readtrack" not in factories.browser().get("/two/")
    assert factories.browser().get("/post/")["X-Readtrack"] == "counted"
    assert caplog.messages == []
