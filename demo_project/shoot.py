"""Takes the README's pictures of a running demo: `python -m demo_project.shoot --url
http://127.0.0.1:8000`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

try:
    from playwright.sync_api import Browser, Page, ViewportSize
except ImportError:
    sys.exit("The pictures need playwright: pip install -e '.[test]'")

from demo_project.chromium import agent, chromium, program, publish, sign_in, write
from demo_project.environment import ROOT
from demo_project.traffic.browser import site

FRONT = ViewportSize(width=1200, height=720)
DASHBOARD = ViewportSize(width=1200, height=900)
WINDOW = ViewportSize(width=780, height=420)  # one of the four
COLORS: tuple[Literal["light", "dark"], ...] = ("light", "dark")
STATE = ViewportSize(width=980, height=640)
PHONE = ViewportSize(width=390, height=640)
PAGE = "/admin/readtrack/dashboard/"
OPENED = (
    "Science & Nature",
    "Technology",
    "Travel",
    "Money & Work",
)  # by reader1, so that their dots are out
SECTION = "City Life"  # that reader2 publishes in
# States of the dashboard by what is done on the site first, and by the address.
PAUSED = (
    "from django.core.cache import caches; caches['default'].client.get_client().client_pause(3000)"
)
RUNS = "from datetime import timedelta; from django.utils.timezone import now; from readtrack.models import FlushRun; "
LATE = (
    "FlushRun.objects.create(started=now(), ended=now() - timedelta(hours=1), read=83, written=19)"
)
FAILED = "FlushRun.objects.create(started=now(), ended=now(), error='OperationalError: the connection is closed')"
STATES = (
    ("A day without a view", "", "?from=2001-02-03&to=2001-02-03"),
    ("Flushes are late", RUNS + LATE, "?period=90"),
    ("A flush failed", RUNS + FAILED, "?period=90"),
    ("Redis is gone", PAUSED, "?period=90"),
)
FOUR = """<!doctype html>
<meta charset="utf-8">
<style>
  body { margin: 0; padding: 18px; background: #e4e1da; font: 600 15px system-ui, "DejaVu Sans", sans-serif; }
  body { display: grid; grid-template-columns: 1fr 1fr; gap: 18px; }
  figure { margin: 0; }
  figcaption { padding-bottom: 8px; }
  img { display: block; max-width: 100%; max-height: 380px; border-radius: 8px; }
</style>
"""


def main(words: list[str]) -> int:
    """Take the pictures of the site that the command line names."""
    parser = argparse.ArgumentParser(
        prog="demo_project.shoot", description="Take the pictures of README and docs."
    )
    parser.add_argument(
        "--url", default="http://127.0.0.1:8000", help="of a running demo (default: %(default)s)"
    )
    parser.add_argument(
        "--to", type=Path, default=ROOT / "demo_project" / "screenshots", metavar="FOLDER"
    )
    given = parser.parse_args(words)
    if not program():
        parser.exit(1, "No Chromium on this machine. On Debian and Ubuntu: apt install chromium\n")
    with chromium() as browser:
        for name, picture in (
            *pictures(browser, url=site(given.url)),
            *states(browser, manage, url=site(given.url)),
        ):
            (given.to / name).write_bytes(picture)
            print(f"{name}: {len(picture) // 1000} kB")
    return 0


def pictures(browser: Browser, *, url: str) -> Iterator[tuple[str, bytes]]:
    """File name and PNG of each picture."""
    one, two, admin = (
        visitor(browser, url=url, name=name) for name in ("reader1", "reader2", "admin")
    )
    for section in OPENED:
        open_section(one, section)
    yield "front.png", shot(one, "/", size=FRONT)
    yield "dashboard.png", shot(admin, PAGE, size=DASHBOARD)
    address = one.locator(".lead h2 a, .ranking li a").last.get_attribute(
        "href"
    )  # of one that is read much
    number = str(address).strip("/").removeprefix("post/")
    page = f"/admin/readtrack/dashboard/object/blog.post:{number}/?period=year"
    yield "object.png", shot(admin, page, size=DASHBOARD)
    yield "two-readers.png", side_by_side(browser, list(news(one, two)))


def manage(*words: str) -> None:
    """Run a command on the demo that runs."""
    subprocess.run([sys.executable, ROOT / "manage.py", *words], check=True, capture_output=True)


def states(browser: Browser, run: Callable[..., Any], *, url: str) -> Iterator[tuple[str, bytes]]:
    """File name and PNG of the dashboard's states; `run` runs a management command."""
    admin, dark = (visitor(browser, url=url, name="admin", colors=colors) for colors in COLORS)
    windows = [("Dark", dashboard(dark, size=STATE)), ("On a phone", dashboard(admin, size=PHONE))]
    yield "dark-and-small.png", side_by_side(browser, windows)
    windows.clear()
    for caption, first, query in STATES:
        if first:
            run("shell", "-c", first)
        windows.append((caption, dashboard(admin, query, size=STATE)))
    yield "states.png", side_by_side(browser, windows)


def dashboard(page: Page, query: str = "?period=90", *, size: ViewportSize) -> bytes:
    """The dashboard without the admin's heads."""
    page.set_viewport_size(size)
    page.goto(PAGE + query)
    page.wait_for_load_state("networkidle")  # the chart is drawn
    page.locator("#content-main").evaluate("part => document.body.replaceChildren(part)")
    return page.screenshot()


def visitor(
    browser: Browser, *, url: str, name: str, colors: Literal["light", "dark"] = "light"
) -> Page:
    """A window of somebody who has signed in."""
    page = browser.new_page(base_url=url, user_agent=agent(browser.version), color_scheme=colors)
    sign_in(page, name)
    return page


def open_section(page: Page, name: str) -> None:
    """Go there by the navigation, which takes its dot away."""
    page.get_by_role("navigation", name="Sections").get_by_role("link").filter(
        has_text=name
    ).click()
    page.get_by_role("heading", name=name, level=1).wait_for()


def shot(page: Page, path: str, *, size: ViewportSize) -> bytes:
    page.set_viewport_size(size)
    page.goto(path)
    page.wait_for_load_state("networkidle")  # the line at the foot of the page is there
    return page.screenshot()


def news(one: Page, two: Page) -> Iterator[tuple[str, bytes]]:
    """Caption and picture of two readers' windows before and after the second publishes."""
    for page in (one, two):
        page.set_viewport_size(WINDOW)
    open_section(one, SECTION)
    yield "reader1: nothing new", shot(one, "/", size=WINDOW)
    write(two, SECTION)
    two.evaluate("scrollTo(0, 0)")
    yield f"reader2 publishes in {SECTION}", two.screenshot()
    publish(two)
    yield "reader1: the next page has the dot", shot(one, "/", size=WINDOW)
    yield "reader2: published", two.screenshot()


def side_by_side(browser: Browser, windows: list[tuple[str, bytes]]) -> bytes:
    """The windows as one picture, two in a row."""
    figure = '<figure><figcaption>{}</figcaption><img src="data:image/png;base64,{}"></figure>'
    page = browser.new_page(viewport={"width": 1200, "height": 400})
    page.set_content(
        FOUR + "".join(figure.format(caption, b64encode(png).decode()) for caption, png in windows)
    )
    picture = page.screenshot(full_page=True)
    page.close()
    return picture


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
