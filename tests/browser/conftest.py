"""Readers with tabs in a real browser."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from django.core.cache import caches
from playwright.sync_api import Browser, Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from demo_project import chromium
from tests.browser.urls import asked
from tests.support import factories
from tests.support.browsers import real_browser
from tests.support.waiting import ENOUGH, comes_true

Reader = Callable[..., Page]

expect.set_options(timeout=ENOUGH * 1000)  # a busy machine may be slow
versions = count(140)

# `asked` counts what readtrack's scripts have asked for, and `used` the answers that they have used. The
# message of a channel comes after all that an answer makes a script do.
COUNTING = r"""{
  window.asked = window.used = 0;
  const ask = fetch, read = Response.prototype.json;
  const isOurs = url => /\/assets\//.test(url);
  const end = () => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => used++;
    port2.postMessage("");
  };
  window.fetch = (url, options) => {
    const answer = ask(url, options);
    if (isOurs(url)) {
      asked++;
      answer.then(({ ok }) => ok || end(), end);
    }
    return answer;
  };
  Response.prototype.json = function () {
    const content = read.call(this);
    if (isOurs(this.url)) content.then(end, end);
    return content;
  };
}"""


def settle(page: Page, *, least: int = 0) -> None:
    """Waits until the scripts of the page have asked at `least` so many times, and have used all
    answers.
    """
    assert comes_true(lambda: page.evaluate(f"asked >= {least} && asked == used"))


def session(user: Any) -> str:
    """Signs the user in. Returns the value of the cookie."""
    return factories.browser(user).cookies["sessionid"].value


@pytest.fixture(scope="package")
def display(request: pytest.FixtureRequest, django_db_setup: None) -> Iterator[Browser]:
    """Starts a real browser."""
    with real_browser(is_whole=getattr(request, "param", False)) as browser:
        yield browser


class Tab:
    """A tab in a window of its own, in which one reader after the other sits down: each window
    takes a second.
    """

    def __init__(self, browser: Browser, **options: Any) -> None:
        window = browser.new_context(**options)
        window.add_init_script(COUNTING)
        self.page = window.new_page()
        self._devtools = self.page.context.new_cdp_session(self.page)

    def change(self, agent: str) -> None:
        """Leaves nothing of who sat there before."""
        self.leave()
        self.page.unroute_all()
        self.page.context.clear_cookies()
        self._devtools.send("Network.clearBrowserCache")
        self._devtools.send("Emulation.setUserAgentOverride", {"userAgent": agent})

    def leave(self) -> None:
        """Leaves the page once the server has answered it: an answer that comes later would sign the
        next reader out.
        """
        if not self.page.is_closed():
            settle(self.page)
            self.page.goto("about:blank")


@pytest.fixture(scope="package")
def tab(display: Browser, live_server: LiveServer) -> Tab:
    return Tab(display, base_url=live_server.url)


@pytest.fixture
def reader(
    display: Browser, tab: Tab, live_server: LiveServer, settings: Settings
) -> Iterator[Reader]:
    """Returns what seats a new reader, without cookies: at the same tab for the same options,
    unless it `is_new`.
    """
    pages = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "browser"}
    settings.CACHES = {**settings.CACHES, "pages": pages}
    caches["pages"].clear()
    tabs = {str({"base_url": live_server.url}): tab}
    asked.clear()

    def seat(*, agent: str = "", user: Any = None, is_new: bool = False, **options: Any) -> Page:
        options = {"base_url": live_server.url, **options}
        name = str(len(tabs) if is_new else options)
        if name not in tabs:
            tabs[name] = Tab(display, **options)
        page = tabs[name].page
        tabs[name].change(agent or chromium.agent(str(next(versions))))
        page.context.set_default_timeout(ENOUGH * 1000)
        if user:
            page.context.add_cookies(
                [{"name": "sessionid", "value": session(user), "url": options["base_url"]}]
            )
        return page

    yield seat
    for each in tabs.values():
        each.leave()
        if each is not tab:
            each.page.context.close()
