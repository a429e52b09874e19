"""Live dots in a real browser: they come on and go out without a reload."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer
from redis import Redis

from readtrack import reports, tracker
from readtrack.live import server as stream
from readtrack.live.server import Events
from readtrack.script import shown
from tests.browser.conftest import Reader, settle
from tests.browser.test_script import AWAY, LOOK
from tests.site.models import Category
from tests.support import factories
from tests.support.depth import DEEP
from tests.support.events import serving, site, subscriptions
from tests.support.nginx import nginx
from tests.support.waiting import comes_true, is_ever_below

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.browser.urls"),
]

SECONDS = 1_000  # milliseconds
RECONNECTIONS = 1_000 if DEEP else 50


@pytest.fixture
def categories(redis: Redis) -> list[Category]:
    """Returns three categories, the first of which has a publication."""
    found = [factories.category() for _ in range(3)]
    tracker.mark_unread(found[:1])
    return found


@pytest.fixture
def user(categories: list[Category]) -> Any:
    """Returns a reader who has read everything."""
    reader = factories.user()
    tracker.mark_read(reader, categories)
    return reader


class Asked:
    """Counts what the script of a page asks the server for."""

    def __init__(self, page: Page) -> None:
        self.kinds: Counter[str] = Counter()
        page.on("request", self._see)

    def _see(self, request: Any) -> None:
        if "/news/?" in request.url:
            self.kinds["news"] += 1
        elif request.method == "POST":
            state = (request.post_data or "").split("\n")[2]
            self.kinds["dots" if state == "dots" else "views"] += 1


@contextmanager
def answered(page: Page, question: str = "page.js") -> Iterator[None]:
    """Waits until the server has answered such a question of the script, asked within the block,
    and the script has used the answer.
    """
    with page.expect_response(
        lambda response: (
            f"/{question}?" in response.url and response.request.resource_type == "fetch"
        )
    ):
        yield
    settle(page)


def open_live(page: Page, url: str = "/live/") -> Asked:
    """Opens a page whose time passes only when the test says so."""
    page.clock.install()
    asked = Asked(page)
    with answered(page):
        page.goto(url)
    return asked


def check_dots(page: Page, user: Any, categories: list[Category]) -> None:
    """Checks that the page shows the dots of what is unread, and no other."""
    unread = reports.unread(user, categories)
    for category in categories:
        dot = page.locator(f"#dot{category.pk} .readtrack-dot:visible")
        expect(dot).to_have_count(1 if category in unread else 0)


def test_a_dot_comes_on_within_20_seconds_and_the_news_are_asked_for_no_more_often(
    reader: Reader, user: Any, categories: list[Category]
) -> None:
    page = reader(user=user)
    asked = open_live(page)
    check_dots(page, user, categories)
    for _ in range(3):
        with answered(page, "news/"):
            page.clock.run_for(19 * SECONDS)
    assert asked.kinds["news"] in (3, 4)
    assert asked.kinds["dots"] == 0  # because nothing is new
    tracker.mark_unread(categories[1:])
    with answered(page):
        page.clock.run_for(20 * SECONDS)
    check_dots(page, user, categories)
    assert asked.kinds["dots"] == 1


def test_a_dot_that_is_on_asks_no_more(
    reader: Reader, user: Any, categories: list[Category]
) -> None:
    tracker.mark_unread(categories)
    page = reader(user=user)
    asked = open_live(page)
    tracker.mark_unread(categories)
    with answered(page, "news/"):
        page.clock.run_for(19 * SECONDS)
    page.clock.run_for(2 * SECONDS)
    check_dots(page, user, categories)
    assert asked.kinds["dots"] == 0


@pytest.mark.parametrize("count_by", ["either", "script", "server"])
def test_what_is_read_in_another_tab_goes_out_at_once(
    reader: Reader, user: Any, categories: list[Category], settings: Settings, count_by: str
) -> None:
    settings.READTRACK = {**settings.READTRACK, "SCRIPT": {"count_by": count_by}}
    tracker.mark_unread(categories)
    page = reader(user=user)
    asked = open_live(page)
    check_dots(page, user, categories)
    another = page.context.new_page()
    another.goto(f"/live/?read={categories[1].pk}")
    assert comes_true(lambda: reports.unread(user, categories) == {categories[0], categories[2]})
    page.clock.run_for(1 * SECONDS)
    check_dots(page, user, categories)
    assert asked.kinds == {"views": 1, "dots": 1}
    another.close()


def test_a_page_that_sends_many_messages_makes_a_tab_ask_twice_a_second(
    reader: Reader, user: Any, categories: list[Category]
) -> None:
    page = reader(user=user)
    asked = Asked(page)
    page.goto("/live/")
    another = page.context.new_page()
    another.goto("/live/")
    another.evaluate(
        """async () => {
            const channel = new BroadcastChannel("/assets/page.js");
            for (let number = 0; number < 300; number++) {
                channel.postMessage({html: "<b>", number});
                await new Promise(go => setTimeout(go, 5));
            }
        }"""
    )
    expect(page.locator("b")).to_have_count(0)
    assert 1 <= asked.kinds["dots"] <= 7  # in two or three seconds
    another.close()


def test_what_is_read_on_another_device_goes_out_once_the_tab_is_looked_at_again(
    reader: Reader, user: Any, categories: list[Category]
) -> None:
    tracker.mark_unread(categories)
    page = reader(user=user)
    open_live(page)
    check_dots(page, user, categories)
    tracker.mark_read(user, categories[1:])
    page.clock.run_for(20 * SECONDS)
    with answered(page):
        page.evaluate("dispatchEvent(new Event('focus'))")
        page.clock.run_for(1 * SECONDS)
    check_dots(page, user, categories)


def test_a_hidden_tab_asks_for_nothing_and_is_right_once_it_is_looked_at(
    reader: Reader, user: Any, categories: list[Category]
) -> None:
    page = reader(user=user, is_new=True)
    page.add_init_script(AWAY.replace("true", "false"))
    asked = open_live(page)
    page.evaluate(LOOK.replace("false", "true"))
    tracker.mark_unread(categories[1:])
    page.clock.run_for(600 * SECONDS)
    assert asked.kinds == {"views": 1}
    tracker.mark_read(user, categories[1:2])  # on another device
    with answered(page):
        page.evaluate(LOOK)
        page.clock.run_for(1 * SECONDS)
    check_dots(page, user, categories)


def test_the_title_has_the_number_of_what_is_unread_and_a_hidden_tab_as_well(
    reader: Reader, user: Any, categories: list[Category]
) -> None:
    tracker.mark_unread(categories[:1])
    page = reader(user=user, is_new=True)
    page.add_init_script(
        AWAY.replace("true", "false")
        + "window.badges = []; navigator.setAppBadge = async number => { badges.push(number); };"
    )
    open_live(page, "/live/?options=title")
    expect(page).to_have_title("(1)\u2060 Board")
    page.evaluate(LOOK.replace("false", "true"))
    tracker.mark_unread(categories)
    with answered(page):
        page.clock.run_for(140 * SECONDS)
    expect(page).to_have_title("(3)\u2060 Board")
    tracker.mark_read(user, categories)
    page.clock.run_for(20 * SECONDS)
    page.evaluate("document.title = document.title.replace('Board', 'Renamed')")
    with answered(page):
        page.evaluate(LOOK)
        page.clock.run_for(1 * SECONDS)
    expect(page).to_have_title("Renamed")
    assert page.evaluate("badges") == [1, 3, 0]


def test_a_page_of_somebody_who_is_not_signed_in_asks_for_no_news(
    reader: Reader, categories: list[Category]
) -> None:
    page = reader()
    asked = open_live(page)
    page.clock.run_for(60 * SECONDS)
    assert asked.kinds == {"views": 1}


def test_a_server_that_fails_is_asked_less_and_less_and_then_as_before(
    reader: Reader, user: Any, categories: list[Category]
) -> None:
    page = reader(user=user)
    asked = open_live(page)
    page.route("**/news/?*", lambda route: route.fulfill(status=503))
    for _ in range(8):
        page.clock.run_for(20 * SECONDS)
        page.wait_for_timeout(0)
    assert 2 <= asked.kinds["news"] <= 4  # not 8
    page.unroute_all()
    tracker.mark_unread(categories)
    page.clock.run_for(19 * 16 * SECONDS)
    page.clock.run_for(1 * SECONDS)
    check_dots(page, user, categories)


def test_news_are_asked_for_without_cookies_unless_nobody_gets_through_without_them(
    reader: Reader, user: Any, categories: list[Category]
) -> None:
    page = reader(user=user)
    # The browser's own cache keeps an answer for five seconds of the real time.
    devtools = page.context.new_cdp_session(page)
    devtools.send("Network.enable")
    devtools.send("Network.setCacheDisabled", {"cacheDisabled": True})
    open_live(page)
    with page.expect_request("**/news/?*") as first:
        page.clock.run_for(19 * SECONDS)
    assert "cookie" not in first.value.all_headers()
    page.route("**/news/?*", lambda route: route.fulfill(status=403))
    with answered(page, "news/"):
        page.clock.run_for(20 * SECONDS)
    page.unroute_all()
    with page.expect_request("**/news/?*") as second:
        page.clock.run_for(40 * SECONDS)
    assert "sessionid" in second.value.all_headers()["cookie"]
    with page.expect_request("**/news/?*") as third:
        page.clock.run_for(20 * SECONDS)
    assert "sessionid" in third.value.all_headers()["cookie"]
    devtools.detach()


def test_a_page_goes_on_after_a_proxy_has_refused_its_question(
    reader: Reader, user: Any, categories: list[Category]
) -> None:
    page = reader(user=user)
    open_live(page)
    tracker.mark_unread(categories)
    page.route("**/page.js*", lambda route: route.fulfill(status=429))
    with answered(page):
        page.clock.run_for(20 * SECONDS)
    page.unroute_all()
    with answered(page):
        page.clock.run_for(40 * SECONDS)
    check_dots(page, user, categories)


@pytest.mark.parametrize("library", ["turbo.js", "htmx-2.min.js"])
def test_a_page_that_a_library_swaps_in_has_live_dots_and_the_one_before_it_has_none(
    reader: Reader, user: Any, categories: list[Category], library: str
) -> None:
    page = reader(user=user)
    asked = open_live(page)
    page.evaluate("window.stays = true; document.body.setAttribute('hx-boost', 'true')")
    page.add_script_tag(url=f"/{library}")
    page.clock.run_for(1 * SECONDS)
    with answered(page):
        page.click("#turbo")
        page.clock.run_for(1 * SECONDS)
    expect(page).to_have_url("/live-too/")
    assert page.evaluate("window.stays")
    tracker.mark_unread(categories)
    with answered(page):
        page.clock.run_for(20 * SECONDS)
    check_dots(page, user, categories)
    for _ in range(2):
        page.clock.run_for(20 * SECONDS)
    assert asked.kinds["dots"] == 1
    assert asked.kinds["news"] <= 4  # one page asks, not two


def test_a_page_that_javascript_shows_ends_the_news_of_the_one_before_it(
    reader: Reader, user: Any, categories: list[Category]
) -> None:
    page = reader(user=user)
    asked = open_live(page)
    page.evaluate("readtrack.page('')")
    page.clock.run_for(60 * SECONDS)
    assert asked.kinds == {"views": 1}


def test_a_shared_page_that_nginx_keeps_has_live_dots(
    reader: Reader, user: Any, categories: list[Category], live_server: LiveServer
) -> None:
    with nginx(live_server.url) as url:
        for _ in range(2):
            page = reader(base_url=url, user=user)
            asked = open_live(page, "/live-shared/")
            page.clock.run_for(20 * SECONDS)
            assert asked.kinds["dots"] == 0
        tracker.mark_unread(categories)
        time.sleep(6)  # so that what nginx keeps of the news is too old
        page.clock.run_for(20 * SECONDS)
        page.clock.run_for(1 * SECONDS)
        check_dots(page, user, categories)


@pytest.fixture
def fast_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets pages poll every half second of the real time."""
    for version, script in shown.scripts().items():
        monkeypatch.setitem(shown.scripts(), version, script.replace(b"19 * second", b"500"))


def test_two_browsers_of_one_reader_show_the_same_dots(
    reader: Reader, user: Any, categories: list[Category], fast_polls: None
) -> None:
    tabs = [reader(user=user, is_new=True) for _ in range(2)]
    for tab in tabs:
        tab.goto("/live/")
    for number in (1, 2, 3):
        tracker.mark_unread(categories[:number])
        for tab in tabs:
            check_dots(tab, user, categories)


def test_a_strict_policy_has_nothing_to_object_to(
    reader: Reader, user: Any, categories: list[Category], settings: Settings
) -> None:
    page = reader(user=user)
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.route("**/live/", add_policy)
    open_live(page)
    tracker.mark_unread(categories)
    page.clock.run_for(20 * SECONDS)
    page.clock.run_for(1 * SECONDS)
    check_dots(page, user, categories)
    assert not [text for text in refused if "Policy" in text]


def add_policy(route: Any) -> None:
    response = route.fetch()
    policy = (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src data:;"
        " require-trusted-types-for 'script'"
    )
    headers = {**response.headers, "content-security-policy": policy}
    route.fulfill(response=response, headers=headers)


class Opened(Events):
    """Events that can break all streams off."""

    streams = 0

    def _add(self, client: Any) -> None:
        self.loop = asyncio.get_running_loop()
        self.streams += 1
        super()._add(client)

    def break_off(self) -> None:
        """Ends all streams, and lets browsers connect again."""

        def leave() -> None:
            for client in self._clients:
                client.leave()

        self.loop.call_soon_threadsafe(leave)


@pytest.fixture
def events() -> Opened:
    return Opened(site, most_clients=10)


@pytest.fixture
def url(
    live_server: LiveServer, settings: Settings, events: Opened, categories: list[Category]
) -> Iterator[str]:
    """Yields the URL of nginx in front of the site and its events."""
    settings.READTRACK = {**settings.READTRACK, "LIVE": {"events": "/events/"}}
    with serving(events) as events_url, nginx(live_server.url, events=events_url) as nginx_url:
        yield nginx_url


def test_an_event_puts_a_dot_on_within_a_second(
    reader: Reader, user: Any, categories: list[Category], url: str, redis: Redis
) -> None:
    page = reader(base_url=url, user=user)

    def put_dots_on() -> float:
        """Returns the shortest time that one of them took (seconds)."""
        tracker.mark_read(user, categories)
        page.goto("/live/")
        times: list[float] = []
        for number, category in enumerate(categories):
            assert comes_true(lambda: subscriptions(redis) > 0)
            began = time.monotonic()
            tracker.mark_unread([category])
            dots = page.locator(".readtrack-dot:visible")
            dots.nth(number).wait_for()
            times.append(time.monotonic() - began)
            check_dots(page, user, categories)
        return min(times)

    assert is_ever_below(1, put_dots_on, attempts=5)


def test_a_page_that_was_refused_listens_with_its_next_poll(
    reader: Reader, user: Any, url: str, events: Opened, fast_polls: None
) -> None:
    page = reader(base_url=url, user=user)
    page.route("**/events/*", lambda route: route.fulfill(status=503))
    with page.expect_response("**/events/?*"):
        page.goto("/live/")
    assert events.streams == 0
    page.unroute_all()
    page.wait_for_timeout(1 * SECONDS)
    assert comes_true(lambda: events.streams > 0)


def test_a_hidden_tab_does_not_listen(reader: Reader, user: Any, url: str, events: Opened) -> None:
    page = reader(base_url=url, user=user, is_new=True)
    page.add_init_script(AWAY.replace("true", "false"))
    page.goto("/live/")
    assert comes_true(lambda: len(events._clients) == 1)
    page.evaluate(LOOK.replace("false", "true"))
    assert comes_true(lambda: not events._clients)
    page.evaluate(LOOK)
    assert comes_true(lambda: len(events._clients) == 1)


def test_no_dot_is_wrong_after_many_reconnections(
    reader: Reader,
    user: Any,
    categories: list[Category],
    url: str,
    events: Opened,
    redis: Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "SOONEST", 1)
    monkeypatch.setattr(stream, "LATEST", 10)
    page = reader(base_url=url, user=user)
    page.goto("/live/")
    assert comes_true(lambda: events.streams > 0)
    another = page.context.new_page()
    another.goto("/live/")
    chance = random.Random(7)
    number = 0
    while number < RECONNECTIONS:
        before = events.streams
        events.break_off()
        category = chance.choice(categories)
        if chance.random() < 0.3:
            tracker.mark_read(user, [category])
            another.evaluate("new BroadcastChannel('/assets/page.js').postMessage('')")
        elif chance.random() < 0.3:
            tracker.mark_unread([category])
        assert comes_true(lambda before=before: events.streams > before)  # type: ignore[misc]
        number += events.streams - before
        if number % 100 < 2:
            check_dots(page, user, categories)
    check_dots(page, user, categories)
    another.close()
