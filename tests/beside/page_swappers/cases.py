"""Libraries that fetch a page, put a part of it in place of a part of this one, and change the address:
each page that is shown counts once, and one that is fetched ahead and never opened does not.
"""

from typing import Any

import pytest
from playwright.sync_api import expect

from readtrack import reports
from tests.beside.page_swappers.urls import LIBRARIES
from tests.browser.conftest import Reader, settle
from tests.browser.conftest import display as display
from tests.browser.conftest import reader as reader
from tests.browser.conftest import tab as tab
from tests.site.models import Post
from tests.support import factories
from tests.support.waiting import comes_true

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.beside.page_swappers.urls"),
]


@pytest.fixture
def posts() -> list[Post]:
    return [factories.post() for _ in range(5)]


@pytest.mark.parametrize("library", LIBRARIES)
def test_four_pages_count_once_each(reader: Reader, posts: list[Post], library: str) -> None:
    page = reader(user=factories.user())  # who has no new cookie to prove
    *opened, never_opened = posts
    page.goto(f"/{library}/{opened[0].pk}/")
    page.evaluate("window.stays = true")
    for post in opened[1:]:
        page.hover(f"#to{never_opened.pk}")
        page.click(f"#to{post.pk}")
        expect(page.locator(f"#shows{post.pk}")).to_be_visible()
        assert comes_true(lambda post=post: reports.views([post])[post] == 1), post
        expect(page.locator("#views")).to_have_text("1 view")
    settle(page)
    assert page.evaluate("window.stays")
    assert list(reports.views(posts).values()) == [1, 1, 1, 1, 0]
    told_pages = 1 if LIBRARIES[library].get("is_counted_by_server") else 4
    assert page.evaluate("asked") == told_pages


@pytest.mark.parametrize("library", ["swup", "barba"])
def test_back_counts_no_second_time(reader: Reader, posts: list[Post], library: str) -> None:
    page: Any = reader(user=factories.user())
    page.goto(f"/{library}/{posts[0].pk}/")
    page.click(f"#to{posts[1].pk}")
    expect(page.locator(f"#shows{posts[1].pk}")).to_be_visible()
    assert comes_true(lambda: reports.views(posts)[posts[1]] == 1)
    page.go_back()
    expect(page.locator(f"#shows{posts[0].pk}")).to_be_visible()
    settle(page, least=3)
    assert list(reports.views(posts).values()) == [1, 1, 0, 0, 0]
