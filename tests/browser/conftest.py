"""Readers with tabs in a real browser."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from django.core.cache import caches
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from demo_project import chromium
from tests.browser.urls import asked
from tests.support import factories
from tests.support.browsers import real_browser
from tests.support.waiting import ENOUGH

Reader = Callable[..., Page]

expect.set_options(timeout=ENOUGH * 1000)  # a busy machine may be slow
versions = count(140)


def session(user: Any) -> str:
    """Signs the user in. Returns the value of the cookie."""
    return factories.browser(user).cookies["sessionid"].value


@pytest.fixture(scope="package")
def display(request: pytest.FixtureRequest, django_db_setup: None) -> Iterator[Browser]:
    """Starts a real browser."""
    with real_browser(is_whole=getattr(request, "param", False)) as browser:
        yield browser


@pytest.fixture
def reader(display: Browser, live_server: LiveServer, settings: Settings) -> Iterator[Reader]:
    """Opens a tab of a new reader, in a browser without cookies."""
    pages = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "browser"}
    settings.CACHES = {**settings.CACHES, "pages": pages}
    caches["pages"].clear()
    opened: list[BrowserContext] = []
    asked.clear()

    def open_one(*, agent: str = "", user: Any = None, **options: Any) -> Page:
        agent, options = agent or chromium.agent(str(next(versions))), {"base_url": live_server.url, **options}
        opened.append(display.new_context(user_agent=agent, **options))
        opened[-1].set_default_timeout(ENOUGH * 1000)
        if user:
            opened[-1].add_cookies([{"name": "sessionid", "value": session(user), "url": options["base_url"]}])
        return opened[-1].new_page()

    yield open_one
    for each in opened:
        each.close()
