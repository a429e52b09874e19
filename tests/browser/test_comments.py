"""HTML of visitors in a page with the script: elements whose ids and names take the place of what
scripts ask the browser for (DOM clobbering), and attributes that are readtrack's own.
"""

import re
from collections.abc import Iterator
from time import time

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings

from readtrack import reports
from tests.browser.conftest import Reader
from tests.browser.test_reading import ENGLISH, PERSON, Text
from tests.browser.test_reading import reader as read_to_the_end
from tests.browser.test_script import told
from tests.browser.urls import COMMENTS, TEXTS
from tests.site.models import Post
from tests.support import factories
from tests.support.depth import some
from tests.support.waiting import comes_true

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.browser.urls"),
]

# What the script asks of the window and of the document.
NAMES = [
    "readtrack",
    "currentScript",
    "hidden",
    "prerendering",
    "referrer",
    "querySelector",
    "querySelectorAll",
    "hasFocus",
    "addEventListener",
    "documentElement",
    "fetch",
    "location",
    "origin",
    "parent",
    "window",
    "document",
    "Document",
    "Reflect",
    "Object",
    "Promise",
    "setTimeout",
    "clearTimeout",
    "setInterval",
    "navigator",
    "innerHeight",
    "src",
    "dataset",
    "page",
    "tell",
    "reads",
]
KINDS = {
    "element": '<p id="{0}">a comment</p>',
    "two elements": '<p id="{0}">a comment</p><p id="{0}">another one</p>',
    "image": '<img name="{0}" id="{0}" alt="">',
    "form": '<form name="{0}" id="{0}"><input name="page"><input name="tell"><input name="call"></form>',
    "link": '<a id="{0}"></a><a id="{0}" name="page" href="https://evil.example/"></a>',
    "object": '<object name="{0}" id="{0}"></object>',
    "embed": '<embed name="{0}">',
    "frame": '<iframe name="{0}" hidden></iframe>',
    "form of objects": '<form id="{0}"><object name="page"></object><object name="tell"></object></form>',
}


@pytest.fixture(autouse=True)
def _comments(settings: Settings) -> Iterator[None]:
    settings.READTRACK = {**settings.READTRACK, "SCRIPT": {"count_by": "script"}}
    yield
    COMMENTS.clear()
    TEXTS.clear()


@pytest.fixture
def post() -> Post:
    return factories.post(category=factories.category())


def noted_errors(page: Page) -> list[str]:
    """Returns the list that the page's errors will be in."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    return errors


@pytest.mark.parametrize("kind", KINDS)
def test_an_elements_name_takes_nothing_from_the_script(
    reader: Reader, post: Post, kind: str
) -> None:
    comments = ["".join(KINDS[kind].format(name) for name in NAMES)]
    for number, comment in enumerate(some(comments, deep=map(KINDS[kind].format, NAMES))):
        COMMENTS["now"] = comment
        page = reader()
        errors = noted_errors(page)
        with told(page):
            page.goto(f"/commented/{post.pk}/")
        expect(page.locator("#views")).to_have_text(
            "1 view" if not number else f"{number + 1} views"
        )
        assert errors == []
        assert reports.views([post]) == {post: number + 1}


@pytest.mark.parametrize("tag", ["p", "a", "form", "img"])
def test_a_token_in_a_comment_counts_nothing(reader: Reader, post: Post, tag: str) -> None:
    COMMENTS["now"] = ""
    page = reader()
    token = page.request.get(f"/data/{post.pk}/").json()["token"]
    COMMENTS["now"] = f'<{tag} data-page="{token}" data-rt="x" id="readtrack">a comment</{tag}>'
    page.goto("/commented/")
    page.evaluate("readtrack.page()")
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    other = factories.post(category=post.category)
    with told(page):
        page.goto(f"/commented/{other.pk}/")
    assert reports.views([post, other]) == {post: 0, other: 1}


def test_an_element_that_takes_the_place_of_a_count_shows_the_count_at_most(
    reader: Reader, post: Post
) -> None:
    COMMENTS["now"] = ""
    page = reader()
    with told(page):
        page.goto(f"/commented/{post.pk}/")
    name = page.locator("#views [data-rt]").get_attribute("data-rt")
    COMMENTS["now"] = (
        f'<form data-rt="{name}"><input name="outerHTML"><input name="dataset"></form>'
        f'<b id="typed" data-rt="{name}">a comment</b>'
    )
    errors = noted_errors(page)
    with told(page):
        page.goto(f"/commented/{post.pk}/")
    expect(page.locator("#views")).to_have_text("1 view")
    assert errors == []


LONG_TEXT = ENGLISH * 30
# Marks that visitors type above the text, with what they may know: the end of an earlier token.
MARKS = {
    "without a time": '<p data-read="0">a comment</p>',
    "beyond every time": '<p data-read="99999">a comment</p>',
    "without a token": '<p data-read="99999" data-of="">a comment</p>',
    "of an earlier token": '<p data-read="99999" data-of="{end}">a comment</p>',
    "with a selector": '<p data-read="0" data-of="{end}" data-text="p">a comment</p>',
    "with no selector": '<p data-read="0" data-text="](">a comment</p>',
}


def opened(reader: Reader, post: Post, mark: str = "") -> tuple[Text, list[str]]:
    """Returns the text below a visitor's mark, in a tab; and the list of the page's errors."""
    TEXTS["now"] = LONG_TEXT
    page = reader()
    html = page.request.get(f"/text/{post.pk}/").text()
    [end] = re.findall('data-of="([^"]*)"', html)
    made = int(time())
    assert comes_true(lambda: int(time()) > made)  # within a second tokens are the same
    COMMENTS["now"] = mark.format(end=end)
    errors = noted_errors(page)
    return Text(page, post, LONG_TEXT, PERSON), errors


@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_in_a_comment_does_not_take_the_place_of_the_text(
    reader: Reader, post: Post, mark: str
) -> None:
    from readtrack.numbers import reports as numbers_reports

    text, errors = opened(reader, post, MARKS[mark])
    read_to_the_end(text)
    text.leave()
    assert errors == []
    assert comes_true(lambda: numbers_reports.reading(post).reads == 1)


@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize("mark", MARKS)
def test_who_stays_with_a_mark_in_a_comment_has_not_read_the_text(
    reader: Reader, post: Post, mark: str
) -> None:
    from readtrack.numbers import reports as numbers_reports

    text, errors = opened(reader, post, MARKS[mark])
    text.press("ArrowDown")
    text.move()
    text.stay(text.least * 2)
    text.leave()
    assert errors == []
    assert comes_true(lambda: numbers_reports.reading(post).engaged == 1)
    assert numbers_reports.reading(post).reads == 0


@pytest.mark.needs_parts("numbers")
def test_a_selector_of_the_site_that_is_none_is_left_out(reader: Reader, post: Post) -> None:
    from readtrack.numbers import reports as numbers_reports

    TEXTS["selector"] = "]("
    text, errors = opened(reader, post)
    read_to_the_end(text)
    text.leave()
    assert errors == []
    assert comes_true(lambda: numbers_reports.reading(post).reads == 1)
