"""A real browser for tests and pictures: the machine's own Chromium, driven by playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")


def program() -> str:
    """Where the browser is; empty where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), "")


def agent(version: str) -> str:
    """The user agent of somebody at a screen. Chromium's own says that nobody is there: a robot's."""
    system = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)"
    return f"{system} Chrome/{version.partition('.')[0]}.0.0.0 Safari/537.36"


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, while the block runs."""
    # Root may do without the sandbox only, and /dev/shm is small in containers.
    arguments = ["--no-sandbox"] * (os.geteuid() == 0) + ["--disable-dev-shm-usage"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=arguments)
        try:
            yield browser
        finally:
            browser.close()
