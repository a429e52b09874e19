"""HTML of visitors in a page with the script: elements whose ids and names take the place of what
scripts ask the browser for (DOM clobbering), and attributes that are readtrack's own.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings

from readtrack import reports
from tests.browser.conftest import Reader
from tests.browser.test_script import told
from tests.browser.urls import COMMENTS
from tests.site.models import Post
from tests.support import factories
from tests.support.depth import some

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.browser.urls"),
    pytest.mark.usefixtures("redis_in_use"),
    pytest.mark.long,
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
    settings.READTRACK = {**settings.READTRACK, "COUNT_BY": "script"}
    yield
    COMMENTS.clear()


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
