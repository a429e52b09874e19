"""The script of pages in Firefox, which has no speculation rules, and keeps pages for the Back
button.
"""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from django.core.cache import caches
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from readtrack import reports, tracker
from readtrack.script import shown
from tests.browser.conftest import session
from tests.browser.test_comments import KINDS, NAMES
from tests.browser.test_reading import PERSON
from tests.browser.urls import COMMENTS, POLICY, TEXTS, asked
from tests.site.models import Post
from tests.support import factories
from tests.support.depth import DEEP, examples
from tests.support.firefox import Firefox, firefox
from tests.support.waiting import comes_true

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.browser.urls"),
    pytest.mark.skipif(not DEEP, reason="starts another browser: READTRACK_DEEP=1"),
]

READERS = examples(1)
SHIFT = "\ue008"
versions = count(140)


@pytest.fixture(scope="module")
def window(django_db_setup: None) -> Iterator[Firefox]:
    with firefox() as window:
        yield window


@pytest.fixture
def post() -> Post:
    return factories.post(category=factories.category())


class Reader:
    """A new reader in Firefox, and the pages of the site."""

    def __init__(self, window: Firefox, site: str) -> None:
        self.window, self.site = window, site
        self.window.goto("about:blank")
        self.window.begin(next(versions))

    def opens(self, path: str, *, answers: int = 1) -> None:
        """Opens the page, and waits until its script has the answers."""
        self.window.goto(self.site + path)
        assert self.window.waits_for_answers(answers)

    def reloads(self) -> None:
        self.window.command("WebDriver:Refresh")
        assert self.window.waits_for_answers(1)

    def shows(self, views: str) -> bool:
        """Waits until the page shows this count."""
        return comes_true(
            lambda: self.window.run("return document.getElementById('views').textContent") == views
        )


@pytest.fixture
def reader(window: Firefox, live_server: LiveServer, settings: Settings) -> Callable[[], Reader]:
    pages = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "firefox"}
    settings.CACHES = {**settings.CACHES, "pages": pages}
    caches["pages"].clear()
    asked.clear()
    return lambda: Reader(window, live_server.url)


def plain(reader: Reader, post: Post, kind: str = "post") -> None:
    # A new reader of a shared page tells of it a second time, with the cookie.
    reader.opens(f"/{kind}/{post.pk}/", answers=2 if kind == "shared" else 1)
    reader.reloads()


def history(reader: Reader, post: Post) -> None:
    reader.window.goto(f"{reader.site}/index/")
    script = (
        "const link = document.getElementById(arguments[0]); history.pushState({}, '', link.href);"
    )
    reader.window.run(script + "readtrack.page(link.dataset.token);", f"post{post.pk}")
    assert reader.window.waits_for_answers(1)


def by_turbo(reader: Reader, post: Post) -> None:
    reader.window.goto(f"{reader.site}/turbo/?pk={post.pk}")
    reader.window.click(f"#post{post.pk}")
    assert comes_true(lambda: "view" in reader.window.run("return document.body.textContent"))


WAYS: dict[str, Callable[[Reader, Post], None]] = {
    "plain": plain,
    "cache_page": lambda reader, post: plain(reader, post, "cached"),
    "shared page": lambda reader, post: plain(reader, post, "shared"),
    "history": history,
    "Turbo": by_turbo,
}


@pytest.mark.parametrize("way", WAYS)
def test_each_reader_counts_once(reader: Callable[[], Reader], post: Post, way: str) -> None:
    for _ in range(READERS):
        WAYS[way](reader(), post)
    assert comes_true(lambda: reports.views([post])[post] >= READERS)
    assert reports.views([post])[post] == READERS


def test_back_shows_counts_of_the_moment(reader: Callable[[], Reader], post: Post) -> None:
    for number in range(READERS):
        page = reader()
        plain(page, post)
        page.window.run("window.stays = true")
        page.window.goto(f"{page.site}/index/")
        tracker.record(factories.hit(f"site.post:{post.pk}"))
        page.window.command("WebDriver:Back")
        assert page.window.run("return window.stays")
        assert page.shows(f"{2 * number + 2} views")
    assert reports.views([post])[post] == 2 * READERS


def test_a_strict_policy_is_enough(reader: Callable[[], Reader], post: Post) -> None:
    page = reader()
    POLICY["now"] = "default-src 'self'"
    try:
        plain(page, post, "policy")
    finally:
        POLICY.clear()
    assert page.shows("1 view")


@pytest.mark.parametrize("kind", KINDS)
def test_an_elements_name_takes_nothing_from_the_script(
    reader: Callable[[], Reader], post: Post, kind: str
) -> None:
    COMMENTS["now"] = "".join(KINDS[kind].format(name) for name in NAMES)
    try:
        reader().opens(f"/commented/{post.pk}/")
    finally:
        COMMENTS.clear()
    assert reports.views([post])[post] == 1


@pytest.mark.needs_parts("numbers")
def test_a_short_text_is_really_read(reader: Callable[[], Reader], post: Post) -> None:
    from readtrack.numbers import reports as numbers_reports

    TEXTS.update(now="Every evening at six a door opens on the quay.", script=PERSON)
    page = reader()
    try:
        page.opens(f"/text/{post.pk}/")
    finally:
        TEXTS.clear()
    page.window.act("key", {"type": "keyDown", "value": SHIFT}, {"type": "keyUp", "value": SHIFT})
    page.window.act("pointer", {"type": "pointerMove", "x": 20, "y": 20})
    assert comes_true(lambda: numbers_reports.reading(post).reads == 1)  # after five seconds


def test_a_dot_comes_on_without_a_reload(
    reader: Callable[[], Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    for version, script in shown.scripts().items():
        monkeypatch.setitem(shown.scripts(), version, script.replace(b"19 * second", b"500"))
    category = factories.category()
    user = factories.user()
    tracker.mark_read(user, [category])
    page = reader()
    page.window.goto(f"{page.site}/index/")
    page.window.run(f"document.cookie = 'sessionid={session(user)}; path=/'")
    page.opens("/live/?options=title")
    tracker.mark_unread([category])
    dots = "return document.querySelectorAll('.readtrack-dot').length"
    assert comes_true(lambda: page.window.run(dots) == 1)
    assert page.window.run("return document.title") == "(1)\u2060 Board"
    page.window.run("document.cookie = 'sessionid=; path=/; max-age=0'")
