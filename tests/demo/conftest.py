"""The demo site, served as `manage.py demo` serves it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demo_project.engines.process import Child, free_port
from demo_project.traffic.browser import Browser
from tests.support.browsers import real_browser
from tests.support.forks import Forks
from tests.support.waiting import comes_true

if TYPE_CHECKING:
    from playwright.sync_api import Browser as Display

ROOT = Path(__file__).parents[2]
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:147.0) Gecko/20100101 Firefox/147.0"
WEB = ["granian", "--interface", "wsgi", "--blocking-threads", "4", "demo_project.wsgi:application"]

Manage = Callable[..., str]


@pytest.fixture(scope="session")
def demo_env(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> dict[str, str]:
    database = tmp_path_factory.mktemp("demo") / "demo.sqlite3"
    urls = {"DATABASE_URL": f"sqlite:///{database}", "REDIS_URL": redis_url}
    return {**os.environ, **urls, "DJANGO_SETTINGS_MODULE": "tests.demo.settings"}


@pytest.fixture(scope="session")
def manage(demo_env: dict[str, str]) -> Iterator[Manage]:
    """Returns a function that runs a management command of the demo and returns its output."""
    code = "import sys; from django.core.management import execute_from_command_line as run; run(sys.argv)"

    def run(*words: str) -> str:
        ended = forks.run(code, *words)
        assert ended.code == 0, ended.output
        return ended.output

    with Forks(demo_env) as forks:
        run("migrate", "--verbosity", "0")
        run("seed")
        yield run


@pytest.fixture(scope="session")
def demo_url(
    manage: Manage, demo_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Returns the URL of the seeded site."""
    port = free_port()
    log = tmp_path_factory.mktemp("web") / "web.log"
    server = Child(
        [sys.executable, "-m", *WEB, "--port", str(port)], log=log, env=demo_env, folder=ROOT
    )
    url = f"http://127.0.0.1:{port}"
    try:
        assert comes_true(lambda: _answers(url, server)), server.last_lines()
        yield url
    finally:
        server.stop()


@pytest.fixture
def browser(demo_url: str) -> Browser:
    """Returns the browser of a new visitor."""
    return Browser(demo_url, AGENT)


@pytest.fixture
def reader(demo_url: str) -> Callable[[str], Browser]:
    """Returns a function that signs a reader in and returns the reader's browser."""

    def sign_in(name: str) -> Browser:
        browser = Browser(demo_url, AGENT)
        browser.submit(browser.get("/login/"), {"username": name, "password": "reader"})
        return browser

    return sign_in


@pytest.fixture(scope="package")
def display() -> Iterator[Display]:
    """Starts a real browser."""
    with real_browser() as browser:
        yield browser


def _answers(url: str, server: Child) -> bool:
    assert server.is_running, server.last_lines()
    try:
        Browser(url, AGENT).get("/favicon.ico")
    except OSError:
        return False
    return True
