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
from readtrack import reports, tracker
from readtrack.script import shown
from tests.browser.conftest import Reader, settle
from tests.browser.urls import POLICY, TEXTS, asked
from tests.site.models import Category, Post
from tests.support import factories
from tests.support.depth import DEEP, examples
from tests.support.nginx import nginx
from tests.support.waiting import comes_true

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.browser.urls"),
]

READERS = examples(2)
# In an ordinary run the other ways have one reader, who is signed in: nothing of these is shared
# among readers.
ALIKE = {"one agent", "cache_page", "shared page", "shared page, one agent"}


@pytest.fixture
def post() -> Post:
    factories.category()  # nobody reads it
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
    with told(page):
        page.click(f"#post{post.pk}", no_wait_after=True)
    with told(page):
        page.reload()


def history(page: Page, post: Post) -> None:
    """Shows the post without a request, as a single-page site does."""
    page.goto("/index/")
    with told(page):
        page.evaluate(
            """link => { history.pushState({}, "", link.href); readtrack.page(link.dataset.token); }""",
            page.query_selector(f"#post{post.pk}"),
        )
    with told(page):
        page.reload()


def blocked(page: Page, post: Post) -> None:
    page.route("**/page.js*", lambda route: route.abort())
    page.goto(f"/post/{post.pk}/")
    page.reload()


def visit(page: Page, post: Post) -> None:
    page.goto(f"/post/{post.pk}/")
    page.reload()


def swapped(page: Page, post: Post, library: str) -> None:
    """Opens the post as htmx and Turbo do it: without loading a page."""
    page.goto(f"/{library}/?pk={post.pk}")
    page.evaluate("window.stays = true")
    with told(page):
        page.click(f"#post{post.pk}")
    assert page.evaluate("window.stays")
    expect(page.locator("#views")).to_be_visible()
    with told(page):
        page.reload()


def app(page: Page, post: Post) -> None:
    """Asks for data and tells the token, as an app does that keeps its cookie."""
    headers = {"User-Agent": page.evaluate("navigator.userAgent")}
    token = page.request.get(f"/data/{post.pk}/", headers=headers).json()["token"]
    for _ in range(2):
        assert page.request.post("/assets/page.js", data=token, headers=headers).ok


WAYS: dict[str, tuple[Callable[[Page, Post], None], dict[str, Any]]] = {
    "plain": (plain, {}),
    "one agent": (plain, {"agent": chromium.agent("140")}),
    "cache_page": (lambda page, post: plain(page, post, "cached"), {}),
    "shared page": (lambda page, post: plain(page, post, "shared"), {}),
    "shared page, one agent": (
        lambda page, post: plain(page, post, "shared"),
        {"agent": chromium.agent("140")},
    ),
    "prefetch": (lambda page, post: ahead(page, post, "prefetch"), {}),
    "prerender": (lambda page, post: ahead(page, post, "prerender"), {}),
    "history": (history, {}),
    "htmx": (lambda page, post: swapped(page, post, "boosted"), {}),
    "htmx 4": (lambda page, post: swapped(page, post, "boosted-4"), {}),
    "swapped by the site": (lambda page, post: swapped(page, post, "swapping"), {}),
    "Turbo": (lambda page, post: swapped(page, post, "turbo"), {}),
    "app": (app, {}),
    "script blocked": (blocked, {}),
    "no JavaScript": (visit, {"java_script_enabled": False}),
}


@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize("kind", ["shared", "cached"])
def test_a_campaign_is_known_whoever_counts_the_page(
    reader: Reader, post: Post, settings: Settings, kind: str
) -> None:
    from readtrack.numbers import reports as numbers_reports

    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {"dimensions": ["campaign", "channel"]}}
    page = reader()
    with told(page):
        page.goto(f"/{kind}/{post.pk}/?utm_source=letter&utm_medium=email&utm_campaign=May")
    assert numbers_reports.breakdown(post, "campaign") == {"letter / email / may": 1}
    assert numbers_reports.breakdown(post, "channel") == {"mail": 1}


@pytest.mark.parametrize("way", WAYS)
def test_each_reader_counts_once(
    reader: Reader, post: Post, views: Callable[[], int], way: str
) -> None:
    go, options = WAYS[way]
    readers = people() if DEEP or way in ALIKE else people()[-1:]
    for user in readers:
        page = reader(user=user, **options)
        go(page, post)
        check_dots(page, user, post)
    check_all_are_counted(views, number=len(readers))
    if way in {"prefetch", "prerender"}:
        # All were fetched ahead. The browser asks again for one that takes long, on a busy machine.
        assert asked.total() - asked[""] == len(readers)


def people() -> list[Any]:
    """Returns as many readers; half of them are signed in."""
    return [factories.user() if number % 2 else None for number in range(READERS)]


def check_dots(page: Page, user: Any, post: Post) -> None:
    """Checks that the dot of what was read is out, and another one is not. Who is not signed in has
    none.
    """
    every = set(Category.objects.all())
    assert user is None or comes_true(
        lambda: reports.unread(user, every) == every - {post.category}
    )
    if page.locator("#dot").count():
        expect(page.locator("#dot .readtrack-dot:visible")).to_have_count(0)
        expect(page.locator("#other .readtrack-dot:visible")).to_have_count(1 if user else 0)


def check_all_are_counted(views: Callable[[], int], *, number: int = READERS) -> None:
    assert comes_true(lambda: views() >= number), (views(), asked)
    assert views() == number


def test_each_reader_of_a_page_that_nginx_keeps_counts_once(
    reader: Reader, post: Post, views: Callable[[], int], live_server: LiveServer
) -> None:
    with nginx(live_server.url) as url:
        for user in people():
            page = reader(base_url=url, user=user)
            plain(page, post, "shared")
            check_dots(page, user, post)
    check_all_are_counted(views)
    assert asked.total() == 1


@pytest.mark.parametrize("kind", ["post", "shared"])
def test_each_reader_counts_once_behind_the_cache_of_the_whole_site(
    reader: Reader, post: Post, views: Callable[[], int], settings: Settings, kind: str
) -> None:
    update, fetch = (
        f"django.middleware.cache.{name}CacheMiddleware" for name in ("Update", "FetchFrom")
    )
    settings.MIDDLEWARE = [update, *settings.MIDDLEWARE, fetch]
    settings.CACHE_MIDDLEWARE_ALIAS = "pages"
    server = LiveServer("localhost")
    try:
        for user in people():
            page = reader(base_url=server.url, user=user)
            plain(page, post, kind)
            check_dots(page, user, post)
        page.context.close()
    finally:
        stop(server)
    check_all_are_counted(views)
    assert kind == "post" or asked.total() == 1


@pytest.mark.parametrize("library", ["boosted", "boosted-4", "turbo"])
def test_a_page_that_is_fetched_while_the_mouse_is_over_a_link_counts_once_it_is_opened(
    reader: Reader, post: Post, views: Callable[[], int], library: str
) -> None:
    for _ in range(READERS):
        page = reader()
        page.goto(f"/{library}/?pk={post.pk}")
        with page.expect_response(f"**/post/{post.pk}/"):
            page.hover(f"#post{post.pk}")
    assert views() == 0
    with told(page):
        page.click(f"#post{post.pk}")
    assert views() == 1


def test_what_the_site_fetches_ahead_and_nobody_opens_is_no_view(
    reader: Reader, post: Post, views: Callable[[], int]
) -> None:
    page = reader()
    page.goto("/swapping/")
    with page.expect_response(f"**/post/{post.pk}/"):
        page.hover(f"#post{post.pk}")
    other = factories.post(category=post.category)
    page.goto("/swapping/")
    with told(page):
        page.click(f"#post{other.pk}")
    assert views() == 0


@pytest.mark.parametrize("library", ["site", "turbo"])
def test_each_swapped_page_is_told_once(reader: Reader, post: Post, library: str) -> None:
    page = reader(user=factories.user())  # who has no new cookie to prove
    page.goto(f"/swapping/?{library}")
    with told(page):
        page.click(f"#post{post.pk}")
    settle(page)
    assert page.evaluate("asked") == 1
    assert page.locator("script[data-page]").count() == 1


def test_a_swapped_page_gets_the_script_that_its_text_needs(reader: Reader, post: Post) -> None:
    TEXTS["now"] = "word " * 100
    page = reader(user=factories.user())
    page.goto("/swapping/?kind=text")
    with page.expect_response(f"**/page.js?{shown.version(has_text=True)}"), told(page):
        page.click(f"#post{post.pk}")
    settle(page)
    assert page.evaluate("asked") == 1


@pytest.mark.parametrize(
    "policy",
    ["default-src 'self'", "default-src 'none'; script-src 'nonce-{}'; connect-src 'self'"],
)
def test_a_strict_policy_has_nothing_to_object_to(
    reader: Reader, post: Post, views: Callable[[], int], policy: str
) -> None:
    POLICY["now"] = policy
    try:
        check_nothing_is_refused(reader(), post, "policy")
    finally:
        POLICY.clear()


@pytest.mark.parametrize("kind", ["policy", "policy-shared"])
def test_counts_and_dots_are_filled_in_where_trusted_types_are_required(
    reader: Reader, post: Post, settings: Settings, kind: str
) -> None:
    settings.READTRACK = {**settings.READTRACK, "SCRIPT": {"count_by": "script"}}
    POLICY["now"] = "default-src 'self'; require-trusted-types-for 'script'"
    user = factories.user()
    page = reader(user=user)
    try:
        with told(page):
            page.goto(f"/{kind}/{post.pk}/")
        expect(page.locator("#views")).to_have_text("1 view")
        check_dots(page, user, post)
        assert page.evaluate("asked") == 1
    finally:
        POLICY.clear()


def test_djangos_own_policy_has_nothing_to_object_to(
    reader: Reader, post: Post, settings: Settings
) -> None:
    csp = pytest.importorskip(
        "django.utils.csp", reason="Django has a policy of its own since 6.0"
    ).CSP
    [templates, *others] = settings.TEMPLATES
    options = templates["OPTIONS"]
    processors = [*options["context_processors"], "django.template.context_processors.csp"]
    settings.TEMPLATES = [
        {**templates, "OPTIONS": {**options, "context_processors": processors}},
        *others,
    ]
    settings.MIDDLEWARE = [
        "django.middleware.csp.ContentSecurityPolicyMiddleware",
        *settings.MIDDLEWARE,
    ]
    settings.SECURE_CSP = {
        "default-src": [csp.NONE],
        "script-src": [csp.NONCE],
        "connect-src": [csp.SELF],
    }
    server = LiveServer("localhost")
    try:
        page = reader(base_url=server.url)
        with page.expect_response("**/post/*/") as answered:
            check_nothing_is_refused(page, post, "post")
        assert "'nonce-" in answered.value.headers["content-security-policy"]
        page.context.close()
    finally:
        stop(server)


def check_nothing_is_refused(page: Page, post: Post, kind: str) -> None:
    refused: list[str] = []
    page.on(
        "console",
        lambda message: refused.append(message.text) if "Policy" in message.text else None,
    )
    plain(page, post, kind)
    assert refused == []
    expect(page.locator("#views")).to_have_text("1 view")


def stop(server: LiveServer) -> None:
    """Stops it once nobody asks: the threads of open connections share its connection to SQLite for
    as long.
    """
    assert comes_true(
        lambda: not any("process_request" in thread.name for thread in threading.enumerate())
    )
    server.stop()


def test_a_tab_that_is_never_looked_at_is_no_view_where_only_the_script_counts(
    reader: Reader, post: Post, views: Callable[[], int], settings: Settings
) -> None:
    settings.READTRACK = {"SCRIPT": {"count_by": "script"}}
    page = reader(is_new=True)
    page.add_init_script(AWAY)
    page.goto(f"/post/{post.pk}/")
    assert asked.total() == 1
    with told(page):
        page.evaluate(LOOK)
    assert views() == 1


def test_a_page_that_a_service_worker_keeps_counts_once_it_is_opened(
    reader: Reader, post: Post, views: Callable[[], int]
) -> None:
    user = factories.user()
    page = reader(user=user, is_new=True)
    page.goto(f"/keeping/?pk={post.pk}")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    assert (asked.total(), views()) == (1, 0)
    assert post.category in reports.unread(user, Category.objects.all())
    for _ in range(2):
        with told(page):
            page.goto(f"/post/{post.pk}/")
        assert (asked.total(), views()) == (1, 1)
    check_dots(page, user, post)


AWAY = (
    "window.away = true; Object.defineProperty(Document.prototype, 'hidden', { get: () => away });"
)
LOOK = "window.away = false; document.dispatchEvent(new Event('visibilitychange'))"


def test_a_tab_that_is_looked_at_after_the_window_counts_once(
    reader: Reader, post: Post, views: Callable[[], int], settings: Settings, redis: Redis
) -> None:
    settings.READTRACK = {"WINDOW": 1}
    page = reader(is_new=True)
    page.add_init_script(AWAY)
    page.goto(f"/post/{post.pk}/")
    assert views() == 1
    assert comes_true(lambda: not redis.keys("viewed:*"))
    with told(page):
        page.evaluate(LOOK)
    assert views() == 1
    with told(page):  # whoever comes back to it reads it again
        page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    assert views() == 2


def test_a_view_that_the_network_lost_is_told_again(
    reader: Reader, post: Post, views: Callable[[], int]
) -> None:
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


def test_a_page_that_was_kept_shows_the_count_of_the_moment(
    reader: Reader, post: Post, views: Callable[[], int]
) -> None:
    page = reader()
    plain(page, post)
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    with told(
        page
    ):  # of what a browser says that keeps pages for the Back button; a deep run has such a browser
        page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    expect(page.locator("#views")).to_have_text("2 views")
    assert views() == 2


# Last, because it starts another browser.
@pytest.mark.skipif(not DEEP, reason="starts another browser: READTRACK_DEEP=1")
@pytest.mark.parametrize("display", [True], ids=["whole"], indirect=True)
def test_back_shows_counts_and_dots_of_the_moment(
    reader: Reader, post: Post, views: Callable[[], int]
) -> None:
    for number, user in enumerate(people()):
        page = reader(user=user)
        plain(page, post)
        check_dots(page, user, post)
        page.evaluate("window.stays = true")
        page.click("#list")
        tracker.record(factories.hit(f"site.post:{post.pk}"))
        tracker.mark_unread(Category.objects.filter(post=post))
        with told(page):
            page.go_back(wait_until="commit")  # a page that was kept is not loaded again
        assert page.evaluate("window.stays")
        expect(page.locator("#views")).to_have_text(f"{2 * number + 2} views")
        expect(page.locator("#dot .readtrack-dot:visible")).to_have_count(1 if user else 0)
    assert views() == 2 * READERS
