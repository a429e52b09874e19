"""People, tabs that nobody looks at and robots in a real browser: who of them is judged to have
read the text.
"""

import re
import sys
from collections.abc import Callable
from itertools import product

import pytest
from django.core import signing
from playwright.sync_api import Page, Route
from pytest_django import Settings

from demo_project import chromium
from readtrack.numbers import reports as numbers_reports
from readtrack.script.reading import least_seconds, words
from readtrack.store import keys
from tests.browser.conftest import Reader, settle, versions
from tests.browser.urls import TEXTS
from tests.site.models import Post
from tests.support import factories
from tests.support.depth import DEEP, examples
from tests.support.waiting import comes_true

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.browser.urls"),
]

ENGLISH = (
    "Every evening at six a door opens on the quay, and nobody has ever seen it close again.\n\n"
)
CHINESE = (
    "每天傍晚六点，码头上的一扇门就会打开，没有人见过它关上。老灯夫数着自己的脚步走过市场。\n\n"
)
WRITTEN = {
    "short English": ENGLISH,
    "long English": ENGLISH * 60,
    "short Chinese": CHINESE,
    "long Chinese": CHINESE * 40,
}
HOUR = 3600  # seconds
LONG = 900

# Playwright says of its browser that it is automated, and gives focus to each tab.
PERSON = "Object.defineProperty(Navigator.prototype, 'webdriver', { get: () => false });"
TAB = (
    "window.away = false; Object.defineProperty(Document.prototype, 'hidden', { get: () => away });"
)


class Text:
    """A text in a tab of its own, out of a cache that has kept the page for some hours."""

    def __init__(self, page: Page, post: Post, text: str, *scripts: str) -> None:
        self.page, self.least = page, least_seconds(words(text))
        page.add_init_script("\n".join((TAB, *scripts)))
        page.route(f"**/text/{post.pk}/", self._aged)
        page.clock.install()
        page.goto(f"/text/{post.pk}/")
        settle(self.page, least=1)

    def _aged(self, route: Route) -> None:
        response = route.fetch()
        html = response.text()
        [token] = re.findall('data-page="([^"]*)"', html)
        *told, made = signing.loads(token, salt=keys.salt("page"))
        aged = signing.dumps([*told, made - 4 * HOUR], salt=keys.salt("page"), compress=True)
        html = html.replace(f'data-of="{token[-8:]}"', f'data-of="{aged[-8:]}"')
        route.fulfill(response=response, body=html.replace(token, aged))

    def stay(self, seconds: float) -> None:
        self.page.clock.run_for(int(1000 * seconds))

    def scroll(self, share: float = 1.0) -> None:
        """Scrolls so far down, as a program does. The event is a trusted one."""
        self.page.evaluate(
            f"scrollTo(0, {share} * (document.documentElement.scrollHeight - innerHeight))"
        )

    def move(self, to: int = 1) -> None:
        self.page.mouse.move(20 + to % 40, 5 + to % 20)

    def press(self, key: str = "PageDown") -> None:
        self.page.keyboard.press(key)

    def go_to_end(self) -> None:
        """Presses End, and waits until the browser has scrolled."""
        self.press("End")
        assert comes_true(
            lambda: self.page.evaluate("scrollY + innerHeight > document.body.scrollHeight - 2")
        )

    def go_through(self, time: float, parts: int = 8) -> None:
        """Goes through the text with the mouse in that time (s)."""
        for part in range(1, parts):
            self.move(part)
            self.scroll(part / parts)
            self.stay(time / parts)
        self.go_to_end()
        self.stay(time / parts)

    def hide(self, *, is_hidden: bool) -> None:
        self.page.evaluate(
            f"away = {str(is_hidden).lower()}; document.dispatchEvent(new Event('visibilitychange'))"
        )

    def leave(self) -> None:
        self.hide(is_hidden=True)
        settle(self.page, least=1)


def reader(text: Text) -> None:
    text.go_through(text.least / 0.85 + 8)


def slow_reader(text: Text) -> None:
    text.go_through(text.least * 3 + 8)


def reader_by_keyboard(text: Text) -> None:
    for _ in range(8):
        text.press("Space")
        text.stay(text.least / 7)
    text.move()
    text.go_to_end()
    text.stay(9)


def reader_with_other_tabs(text: Text) -> None:
    text.go_through(text.least / 2 + 4)
    text.hide(is_hidden=True)
    text.stay(600)
    text.hide(is_hidden=False)
    text.go_through(text.least / 2 + 8)


def reader_who_scrolls_ahead(text: Text) -> None:
    text.scroll()
    text.move()
    text.stay(2)
    text.scroll(0)
    text.go_through(text.least + 8)


def skimmer(text: Text) -> None:
    text.go_through(min(text.least / 3, 3))


def bouncer(text: Text) -> None:
    text.move()
    text.press("ArrowDown")
    text.stay(3)


def stays_above_the_end(text: Text) -> None:
    text.page.set_viewport_size({"width": 400, "height": 30})  # one line
    text.move()
    text.press("Shift")
    text.stay(text.least + 30)


def hidden_tab(text: Text) -> None:
    text.hide(is_hidden=True)
    text.scroll()
    text.stay(LONG)


def idle_tab(text: Text) -> None:
    text.stay(LONG)


def tab_without_focus(text: Text) -> None:
    text.page.evaluate("Document.prototype.hasFocus = () => false")
    text.go_through(text.least * 3)  # with the mouse over it


def looks_and_goes_for_lunch(text: Text) -> None:
    text.page.set_viewport_size({"width": 400, "height": 30})
    text.move()
    text.press("Shift")
    text.stay(LONG)


def robot_that_scrolls(text: Text) -> None:
    for part in range(1, 11):
        text.scroll(part / 10)
        text.stay(text.least / 4 + 2)


def robot_that_makes_up_events(text: Text) -> None:
    robot_that_scrolls(text)
    text.page.evaluate(
        "for (const kind of ['pointermove', 'keydown', 'pointerdown', 'scroll']) dispatchEvent(new Event(kind))"
    )
    text.stay(text.least + 9)


# What each does, what the page believes of the browser, and if the view is engaged and the text
# read.
Way = tuple[Callable[[Text], None], str, bool, bool]
WAYS: dict[str, Way] = {
    "reader": (reader, PERSON, True, True),
    "slow reader": (slow_reader, PERSON, True, True),
    "reader by keyboard": (reader_by_keyboard, PERSON, True, True),
    "reader with other tabs": (reader_with_other_tabs, PERSON, True, True),
    "reader who scrolls ahead": (reader_who_scrolls_ahead, PERSON, True, True),
    "skimmer": (skimmer, PERSON, True, False),
    "bouncer": (bouncer, PERSON, True, False),
    "stays above the end": (stays_above_the_end, PERSON, True, False),
    "hidden tab": (hidden_tab, PERSON, False, False),
    "idle tab": (idle_tab, PERSON, False, False),
    "tab without focus": (tab_without_focus, PERSON, True, False),
    "goes for lunch": (looks_and_goes_for_lunch, PERSON, True, False),
    "robot that scrolls": (robot_that_scrolls, PERSON, False, False),
    "robot that makes up events": (robot_that_makes_up_events, PERSON, False, False),
    "automated browser": (reader, "", False, False),
}


# In an ordinary run
SOME = [
    ("reader", "long English", 0),
    ("reader by keyboard", "short Chinese", 0),
    ("skimmer", "long Chinese", 0),
    ("idle tab", "short English", 0),
    ("robot that scrolls", "long English", 0),
]


def test_readers_skimmers_tabs_and_robots_are_judged_right(
    reader: Reader, capsys: pytest.CaptureFixture[str]
) -> None:
    every = [(*pair, number) for pair in product(WAYS, WRITTEN) for number in range(examples(1))]
    # Every third pair has each way, and each of them with other texts.
    some = every[:: 3 if DEEP == 1 else 1] if DEEP else SOME
    wrong, table = [], {way: [0, 0] for way in WAYS}
    window = reader(is_new=True).context
    for way, kind, _ in some:
        go, script, is_engaged, is_read = WAYS[way]
        window.clear_cookies()
        window.set_extra_http_headers({"User-Agent": chromium.agent(str(next(versions)))})
        TEXTS["now"], post, page = WRITTEN[kind], factories.post(), window.new_page()
        text = Text(page, post, WRITTEN[kind], script)
        go(text)
        text.leave()
        page.close()
        found = numbers_reports.reading(post)
        table[way][0] += 1
        if (found.views, found.engaged, found.reads) == (1, int(is_engaged), int(is_read)):
            table[way][1] += 1
        else:
            wrong.append((way, kind, found))
    with capsys.disabled():
        sys.stdout.writelines(
            f"\n{way}: {right} of {drawn} judged right"
            for way, (drawn, right) in table.items()
            if DEEP
        )
    assert len(wrong) <= len(some) / 100, wrong


def test_a_text_that_is_swapped_into_a_page_without_one_is_read(reader: Reader) -> None:
    """Does what Turbo does: shows another page's body, and runs the scripts in it."""
    page, post, TEXTS["now"] = reader(is_new=True), factories.post(), ENGLISH
    page.add_init_script("\n".join((TAB, PERSON)))
    page.clock.install()
    page.goto("/index/")
    for _ in range(2):
        page.evaluate(
            """async url => {
                const made = new DOMParser().parseFromString(await (await fetch(url)).text(), "text/html");
                document.body.replaceWith(document.adoptNode(made.body));
                const old = document.querySelector("script[data-page]"), run = document.createElement("script");
                for (const { name, value } of old.attributes) run.setAttribute(name, value);
                await new Promise(done => { run.onload = done; old.replaceWith(run); });
            }""",
            f"/text/{post.pk}/",
        )
        # A page that tells of its reading before its first answer has no cookie yet.
        settle(page, least=1)
        page.mouse.move(20, 20)
        page.keyboard.press("Shift")
        page.clock.run_for(9_000)
        settle(page)
    found = numbers_reports.reading(post)
    assert (found.views, found.engaged, found.reads) == (
        1,
        1,
        0,
    )  # nobody waited as long for the server's clock
    assert page.evaluate("readtrack.reads")


def test_who_leaves_by_a_link_is_told_of(reader: Reader, settings: Settings) -> None:
    # What playwright calls itself goes along with what is sent on leaving.
    settings.READTRACK = {"BOTS": {"people": ["HeadlessChrome"]}}
    page, post, TEXTS["now"] = reader(is_new=True), factories.post(), ENGLISH
    page.add_init_script(PERSON)
    page.clock.install()
    page.goto(f"/text/{post.pk}/")
    page.mouse.move(20, 20)
    page.keyboard.press("Shift")
    page.clock.run_for(3_000)
    page.goto("/index/")
    assert comes_true(lambda: numbers_reports.reading(post).engaged == 1)
