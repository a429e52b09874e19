"""The pages of the demo site, over HTTP."""

import re
from collections.abc import Callable

from demo_project.traffic.browser import Browser, Page
from tests.demo.conftest import AGENT

Reader = Callable[[str], Browser]
POST = {"category": "3", "title": "A test of the presses", "body": "One.\n\nTwo."}


def sections_with_dot(page: Page) -> set[str]:
    link = r'<a href="(/category/\d+/)"[^>]*><span>[^<]+</span>(<span[^>]* class="readtrack-dot")?'
    rows = re.findall(link, page.html)
    return {path for path, dot in rows if dot}


def live_views(page: Page) -> int:
    found = re.search(r"Live, in Redis</dt><dd>([\d,]+)<", page.html)
    assert found
    return int(found[1].replace(",", ""))


def test_checks_pass_and_no_migration_is_missing(manage: Callable[..., str]) -> None:
    manage("check", "--fail-level", "WARNING")
    assert "No changes" in manage("makemigrations", "--check", "--dry-run")


def test_seeding_again_adds_nothing(manage: Callable[..., str]) -> None:
    assert manage("seed").startswith("Seeded 0 users, 0 categories and 0 posts")


def test_the_front_page_lists_posts_sections_and_rankings(browser: Browser) -> None:
    page = browser.get("/")
    assert page.status == 200
    assert len(page.links("post")) >= 13
    assert len(page.links("category")) == 8
    assert "Most read" in page.html
    assert not sections_with_dot(page)


def test_the_style_sheets_are_served(browser: Browser) -> None:
    sheets = re.findall(r'<link rel="stylesheet" href="([^"]+)"', browser.get("/").html)
    assert [browser.get(sheet).status for sheet in sheets] == [200, 200]


def test_opening_a_post_counts_once(browser: Browser) -> None:
    before = live_views(browser.get("/post/50/"))
    assert live_views(browser.get("/post/50/")) == before
    assert before > 0


def test_opening_a_section_takes_its_dot_away_and_publishing_brings_it_back(reader: Reader) -> None:
    one, two = reader("reader1"), reader("reader2")
    assert "/category/3/" in sections_with_dot(one.get("/"))
    assert "/category/3/" not in sections_with_dot(one.get("/category/3/"))
    assert "/category/3/" not in sections_with_dot(one.get("/"))
    published = two.submit(two.get("/publish/?category=3"), POST)
    assert "Published." in published.html
    assert "/category/3/" in sections_with_dot(one.get("/"))


def test_the_author_of_a_post_gets_no_dot_for_it(reader: Reader) -> None:
    author = reader("reader2")
    author.get("/category/4/")
    assert "Published." in author.submit(author.get("/publish/?category=4"), POST).html
    assert "/category/4/" not in sections_with_dot(author.get("/"))


def test_a_count_is_read_aloud_as_words(browser: Browser) -> None:
    page = browser.get("/post/57/").html
    assert '<span aria-hidden="true">1</span><span class="visually-hidden">' in page
    assert 'title="1">1 view</span>' in page


def test_the_user_who_adds_a_post_in_the_admin_is_its_author(demo_url: str) -> None:
    browser = Browser(demo_url, AGENT)
    login = browser.get("/admin/login/?next=/admin/blog/post/add/")
    page = browser.submit(login, {"username": "admin", "password": "admin", "next": "/admin/blog/post/add/"})
    assert re.findall(r"<option value=\"\d+\" selected>(\w+)</option>", page.html) == ["admin"]


def test_djangos_own_options_stand_behind_the_word(manage: Callable[..., str]) -> None:
    words = ("-v", "0", "--settings", "demo_project.settings", "--traceback", "--no-color")
    assert manage("readtrack", "flush", *words) == ""


def test_sections_have_pages(browser: Browser) -> None:
    page = browser.get("/category/2/?page=2")
    assert page.status == 200
    assert "Page 2 of 2" in page.html


def test_publishing_asks_to_sign_in_and_signing_in_says_how(browser: Browser) -> None:
    page = browser.get("/publish/")
    assert page.path == "/login/"
    assert "reader1" in page.html


def test_an_incomplete_post_is_not_published(reader: Reader) -> None:
    two = reader("reader2")
    page = two.submit(two.get("/publish/"), {**POST, "title": ""})
    assert page.path == "/publish/"
    assert "This field is required" in page.html
