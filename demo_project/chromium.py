"""A real browser for tests and pictures: the machine's own Chromium, driven by playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

WHOLE = ("chromium", "chromium-browser", "google-chrome")
# Shows the same pages in a third of the time, but keeps none for the Back button.
QUICK = ("chromium-headless-shell",)


def program(*, is_whole: bool = False) -> str:
    """Returns the path of the quickest browser, or of a whole one; "" where there is none."""
    return next(filter(None, map(shutil.which, WHOLE if is_whole else QUICK + WHOLE)), "")


def agent(version: str) -> str:
    """The user agent of somebody at a screen. Chromium's own says that nobody is there: a robot's."""
    system = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)"
    return f"{system} Chrome/{version.partition('.')[0]}.0.0.0 Safari/537.36"


@contextmanager
def chromium(*flags: str, is_whole: bool = False) -> Iterator[Browser]:
    """The browser with these flags, while the block runs. A whole one also keeps pages for the Back
    button.
    """
    # Shared memory is small in containers, and servers have no graphics card, which takes time to
    # imitate.
    arguments = [
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--disable-software-rasterizer",
        *flags,
    ]
    if os.geteuid() == 0:
        arguments += ["--no-sandbox"]  # with it, Chromium refuses to run as root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program(is_whole=is_whole),
            args=arguments,
            ignore_default_args=["--disable-back-forward-cache"] if is_whole else [],
        )
        try:
            yield browser
        finally:
            browser.close()


def sign_in(page: Page, name: str) -> None:
    """Sign in as one of those whom the demo's login page offers."""
    page.goto("/login/")
    page.get_by_role("button", name=name, exact=True).click()
    page.get_by_role("button", name=f"Sign out {name}").wait_for()


def write(page: Page, section: str) -> None:
    """Fill in the form of a new post."""
    page.goto("/publish/")
    page.get_by_label("Category").select_option(label=section)
    page.get_by_label("Title").fill("The lamplighter who counts his steps")
    page.get_by_label("Body").fill(
        "Every evening at six, a door opens on the quay.\n\nNobody has ever seen it close."
    )


def publish(page: Page) -> None:
    """Send the form, and be told that it is out."""
    page.get_by_role("button", name="Publish", exact=True).click()
    page.get_by_role("status").get_by_text("Published.").wait_for()
