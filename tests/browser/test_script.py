"""The script of pages in a real browser: each reader counts once, whatever delivered the page."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer
from redis import Redis

from demo_project import chromium
from tests.browser.conftest import Reader
from tests.browser.urls import POLICY, asked
from tests.site.models import Post
from tests.support import factories
from tests.support.depth import examples
from tests.support.nginx import nginx
from tests.support.waiting import comes_true

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls("tests.browser.urls"), pytest.mark.long]

READERS = examples(2)


@pytest.fixture
def post(redis_in_use: None) -> Post:
    return factories.post(category=factories.category())


@pytest.fixture
def views(redis: Redis, post: Post) -> Callable[[], int]:
    """Returns the number of views of the post."""
    return lambda: int(redis.get(f"views:total:site.post:{post.pk}") or 0)


def told(page: Page) -> Any:
    """Waits until the script has its answer, in the block."""
    return page.expect_response(lambda response: response.request.method == "POST" and response.ok)


def plain(page: Page, post: Post, kind: str = "post") -> None:
    for visit in (page.goto, lambda url: page.reload()):
        with told(page):
            visit(f"/{kind}/{post.pk}/")


def ahead(page: Page, post: Post, rule: str) -> None:
    """Lets the browser fetch the page before its reader opens it."""
    before = asked.total()
    page.goto(f"/index/?rule={rule}&pk={post.pk}")
    assert comes_true(lambda: asked.total() > before)
    page.click(f"#post{post.pk}", no_wait_after=True)


def history(page: Page, post: Post) -> None:
    """Shows the post without a request, as a single-page site does."""
    page.goto("/index/")
    with told(page):
        page.evaluate(
            """link => { history.pushState({}, "", link.href); readtrack.page(link.dataset.token); }""",
            page.query_selector(f"#post{post.pk}"),
        )


def blocked(page: Page, post: Post) -> None:
    page.route("**/page.js*", lambda route: route.abort())
    page.goto(f"/post/{post.pk}/")
    page.reload()


def visit(page: Page, post: Post) -> None:
    page.goto(f"/post/{post.pk}/")
    page.reload()


def boosted(page: Page, post: Post) -> None:
    """Opens the post as htmx does it: without loading a page."""
    page.goto(f"/boosted/?pk={post.pk}")
    with told(page):
        page.click(f"#post{post.pk}")
    expect(page.locator("#views")).to_be_visible()


def app(page: Page, post: Post) -> None:
    """Asks for data and tells the token, as an app does that keeps its cookie."""
    token = page.request.get(f"/data/{post.pk}/").json()["token"]
    for _ in range(2):
        assert page.request.post("/assets/page.js", data=token).ok


WAYS: dict[str, tuple[Callable[[Page, Post], None], dict[str, Any]]] = {
    "plain": (plain, {}),
    "one agent": (plain, {"agent": chromium.agent("140")}),
    "cache_page": (lambda page, post: plain(page, post, "cached"), {}),
    "shared page": (lambda page, post: plain(page, post, "shared"), {}),
    "shared page, one agent": (lambda page, post: plain(page, post, "shared"), {"agent": chromium.agent("140")}),
    "prefetch": (lambda page, post: ahead(page, post, "prefetch"), {}),
    "prerender": (lambda page, post: ahead(page, post, "prerender"), {}),
    "history": (history, {}),
    "htmx": (boosted, {}),
    "app": (app, {}),
    "script blocked": (blocked, {}),
    "no JavaScript": (visit, {"java_script_enabled": False}),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_reader_counts_once(reader: Reader, post: Post, views: Callable[[], int], way: str) -> None:
    go, options = WAYS[way]
    for _ in range(READERS):
        go(reader(**options), post)
    check_all_are_counted(views)
    if way in {"prefetch", "prerender"}:
        # All were fetched ahead. The browser asks again for one that takes long, on a busy machine.
        assert asked.total() - asked[""] == READERS


def check_all_are_counted(views: Callable[[], int]) -> None:
    assert comes_true(lambda: views() >= READERS), (views(), asked)
    assert views() == READERS


def test_each_reader_of_a_page_that_nginx_keeps_counts_once(
    reader: Reader, post: Post, views: Callable[[], int], live_server: LiveServer
) -> None:
    with nginx(live_server.url) as url:
        for _ in range(READERS):
            plain(reader(base_url=url), post, "shared")
    check_all_are_counted(views)
    assert asked.total() == 1


@pytest.mark.parametrize("kind", ["post", "shared"])
def test_each_reader_counts_once_behind_the_cache_of_the_whole_site(
    reader: Reader, post: Post, views: Callable[[], int], settings: Settings, kind: str
) -> None:
    update, fetch = (f"django.middleware.cache.{name}CacheMiddleware" for name in ("Update", "FetchFrom"))
    settings.MIDDLEWARE = [update, *settings.MIDDLEWARE, fetch]
    settings.CACHE_MIDDLEWARE_ALIAS = "pages"
    server = LiveServer("localhost")
    try:
        for _ in range(READERS):
            page = reader(base_url=server.url)
            plain(page, post, kind)
            page.context.close()
    finally:
        # The threads of open connections share the server's connection to SQLite for as long as it runs.
        assert comes_true(lambda: not any("process_request" in thread.name for thread in threading.enumerate()))
        server.stop()
    check_all_are_counted(views)
    assert kind == "post" or asked.total() == 1


def test_a_page_that_htmx_fetches_while_the_mouse_is_over_a_link_counts_once_it_is_opened(
    reader: Reader, post: Post, views: Callable[[], int]
) -> None:
    for _ in range(READERS):
        page = reader()
        page.goto(f"/boosted/?pk={post.pk}")
        with page.expect_response(f"**/post/{post.pk}/"):
            page.hover(f"#post{post.pk}")
    assert views() == 0
    with told(page):
        page.click(f"#post{post.pk}")
    assert views() == 1


@pytest.mark.parametrize("display", [True], ids=["whole"], indirect=True)
def test_back_shows_counts_and_dots_of_the_moment(reader: Reader, post: Post, views: Callable[[], int]) -> None:
    page = reader()
    plain(page, post)
    expect(page.locator("#views")).to_have_text("1 view")
    page.evaluate("window.stays = true")
    page.click("#list")
    plain(reader(), post)
    with told(page):
        page.go_back(wait_until="commit")  # a page that was kept is not loaded again
    assert page.evaluate("window.stays")
    expect(page.locator("#views")).to_have_text("2 views")
    assert views() == 2


@pytest.mark.parametrize(
    "policy", ["default-src 'self'", "default-src 'none'; script-src 'nonce-{}'; connect-src 'self'"]
)
def test_a_strict_policy_has_nothing_to_object_to(
    reader: Reader, post: Post, views: Callable[[], int], settings: Settings, policy: str
) -> None:
    page, refused = reader(), list[str]()
    page.on("console", lambda message: refused.append(message.text) if "Policy" in message.text else None)
    POLICY["now"] = policy
    try:
        plain(page, post, "policy")
    finally:
        POLICY.clear()
    assert refused == []
    expect(page.locator("#views")).to_have_text("1 view")


def test_a_tab_that_is_never_looked_at_is_no_view_where_only_the_script_counts(
    reader: Reader, post: Post, views: Callable[[], int], settings: Settings
) -> None:
    settings.READTRACK = {"COUNT_BY": "script"}
    page = reader()
    page.add_init_script("window.away = true; Object.defineProperty(document, 'hidden', { get: () => away });")
    page.goto(f"/post/{post.pk}/")
    assert asked.total() == 1
    with told(page):
        page.evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
    assert views() == 1


def test_a_view_that_the_network_lost_is_told_again(reader: Reader, post: Post, views: Callable[[], int]) -> None:
    page, lost = reader(), list[str]()

    def lose_once(route: Route) -> None:
        if route.request.method == "POST" and not lost:
            lost.append(route.request.url)
            route.abort()
        else:
            route.continue_()

    page.route("**/page.js*", lose_once)
    with told(page):
        page.goto(f"/shared/{post.pk}/")
    assert comes_true(lambda: views() == 1)
    assert len(lost) == 1
