"""The pages of the demo site, over HTTP."""

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

from django.core import signing
from django.http import HttpResponse
from django.test import RequestFactory

from demo_project.blog.hits import judged_hits, noting_hits
from demo_project.settings import SECRET_KEY
from demo_project.traffic.browser import Browser, Page
from demo_project.traffic.visitor import KEEPS_NO_COOKIES
from readtrack.hits.stages import ENGAGED, READS
from readtrack.request import Recorder, Report
from readtrack.script.reading import Reading
from readtrack.script.shown import END_OF_TOKEN
from tests.demo.conftest import AGENT
from tests.support.waiting import comes_true

Reader = Callable[[str], Browser]
ROBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
POST = {"category": "3", "title": "A test of the presses", "body": "One.\n\nTwo."}


def sections_with_dot(page: Page) -> set[str]:
    link = r'<a href="(/category/\d+/)"[^>]*><span>[^<]+</span>(<span[^>]* class="readtrack-dot")?'
    rows = re.findall(link, page.html)
    return {path for path, dot in rows if dot}


def has_read(reader: Browser, section: str) -> bool:
    """Opens the section until its dot is out.

    Redis was just emptied, and marks nothing for pages that may have begun before, by a clock that
    was learnt late.
    """
    return comes_true(lambda: section not in sections_with_dot(reader.get(section)))


def live_views(page: Page) -> int:
    found = re.search(r"Live, in Redis</dt><dd>([\d,]+)<", page.html)
    assert found
    return int(found[1].replace(",", ""))


def verdicts(browser: Browser) -> list[str]:
    """Returns the line at the foot of the page, and below it what became of everybody's last hits."""
    page = browser.get("/hits/").html
    line, lists = (re.sub(r"\s+", " ", text) for text in page.split('<div id="hits-lists">'))
    everybodys = re.findall(r"</time> (.*?) ?</li>", lists.rpartition("<ol>")[2])
    return [re.sub(r"<.*?>", "", text).strip() for text in (line, *everybodys)]


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
    assert [browser.get(sheet).status for sheet in sheets] == [200, 200, 200]


def test_opening_a_post_counts_once(browser: Browser) -> None:
    before = live_views(browser.get("/post/50/"))
    assert live_views(browser.get("/post/50/")) == before
    assert before > 0


def test_opening_a_section_takes_its_dot_away_and_publishing_brings_it_back(reader: Reader) -> None:
    one, two = reader("reader1"), reader("reader2")
    assert "/category/3/" in sections_with_dot(one.get("/"))
    assert has_read(one, "/category/3/")
    assert "/category/3/" not in sections_with_dot(one.get("/"))
    published = two.submit(two.get("/publish/?category=3"), POST)
    assert "Published." in published.html
    assert "/category/3/" in sections_with_dot(one.get("/"))


def test_the_author_of_a_post_gets_no_dot_for_it(reader: Reader) -> None:
    author = reader("reader2")
    assert has_read(author, "/category/4/")
    assert "Published." in author.submit(author.get("/publish/?category=4"), POST).html
    assert "/category/4/" not in sections_with_dot(author.get("/"))


def test_a_count_is_read_aloud_as_words(browser: Browser) -> None:
    page = browser.get("/post/57/").html
    assert '<span aria-hidden="true">1</span><span class="visually-hidden">' in page
    assert 'title="1">1 view</span>' in page


def test_the_user_who_adds_a_post_in_the_admin_is_its_author(demo_url: str) -> None:
    browser = Browser(demo_url, AGENT)
    login = browser.get("/admin/login/?next=/admin/blog/post/add/")
    page = browser.submit(
        login, {"username": "admin", "password": "admin", "next": "/admin/blog/post/add/"}
    )
    assert re.findall(r"<option value=\"\d+\" selected>(\w+)</option>", page.html) == ["admin"]


def test_an_author_sees_the_numbers_of_what_they_have_written_and_no_others(demo_url: str) -> None:
    ada = Browser(demo_url, AGENT)
    front = ada.submit(ada.get("/login/"), {"username": "ada", "password": "author"})
    [link] = re.findall(r'<a href="([^"]+)">Your numbers</a>', front.html)
    page = ada.get(link)
    assert (page.status, "Numbers of Ada Lindqvist" in page.html) == (200, True)
    assert ada.get("/admin/readtrack/dashboard/").status == 403
    assert "reset_counts" not in ada.get("/admin/blog/post/").html


def test_djangos_own_options_stand_behind_the_word(manage: Callable[..., str]) -> None:
    words = ("-v", "0", "--settings", "demo_project.settings", "--traceback", "--no-color")
    assert manage("readtrack", "flush", *words) == ""


def test_a_story_that_many_open_at_once_is_the_one_alert_and_leads_the_list_of_the_hour(
    demo_url: str, manage: Callable[..., str], demo_env: dict[str, str]
) -> None:
    manage("readtrack", "flush")
    with closing(sqlite3.connect(demo_env["DATABASE_URL"].removeprefix("sqlite:///"))) as sql, sql:
        sql.execute("UPDATE readtrack_flushrun SET started = datetime('now', '-1 hour')")
    manage("burst")
    admin = Browser(demo_url, AGENT)
    address = "/admin/readtrack_alerts/alert/"
    login = admin.get(f"/admin/login/?next={address}")
    page = admin.submit(login, {"username": "admin", "password": "admin", "next": address})
    assert page.path == address
    assert "180" in page.html
    assert "1 alert" in page.html
    trending = admin.get("/admin/readtrack/dashboard/?table=trending&format=json")
    views = [row[1] for row in json.loads(trending.html)["rows"]]
    assert views[0] >= 180
    assert len(views) > 5


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


def test_an_evening_page_is_the_same_for_everybody_and_its_script_counts(
    browser: Browser, demo_url: str
) -> None:
    other, robot = Browser(demo_url, AGENT.replace("147", "146")), Browser(demo_url, ROBOT)
    before = live_views(robot.get("/post/52/"))
    pages = [each.get("/evening/52/") for each in (browser, other, browser)]
    tokens = [re.findall(r'data-page="([^"]+)"', page.html)[0] for page in pages]
    # Of a page only its token differs, and the end of that, by which the script finds the text.
    without_tokens = [
        page.html.replace(token, "").replace(f'data-of="{token[END_OF_TOKEN]}"', "")
        for page, token in zip(pages, tokens, strict=True)
    ]
    assert without_tokens[0] == without_tokens[1] == without_tokens[2]
    # The token differs by the second in which it was made.
    contents = [signing.loads(token, key=SECRET_KEY, salt="page:") for token in tokens]
    assert contents[0][:-1] == contents[1][:-1] == contents[2][:-1]
    assert not list(browser.jar)
    assert live_views(robot.get("/post/52/")) == before
    for each in (browser, other, browser):
        each.run_script(pages[0])
    assert live_views(robot.get("/post/52/")) == before + 2


def test_the_foot_of_a_page_says_what_became_of_each_hit(browser: Browser, demo_url: str) -> None:
    repeat, left = "not counted: seen by the same visitor already", "left to the page&#x27;s script"
    assert verdicts(browser)[0].startswith("Open an article")
    # A script's word on a view that the server has counted is no other hit.
    browser.run_script(browser.get("/post/60/"))
    assert verdicts(browser)[:2] == ["counted /post/60/", "/post/60/ counted"]
    browser.get("/post/60/")
    assert verdicts(browser)[0] == f"{repeat} /post/60/"
    evening = browser.get("/evening/61/")
    assert verdicts(browser)[0] == f"{left} /evening/61/"
    browser.run_script(evening)
    browser.run_script(evening)
    Browser(demo_url, ROBOT).get("/post/60/")
    assert verdicts(browser) == [
        f"{repeat} /evening/61/",
        "/post/60/ not counted: robot, by its name",
        f"/evening/61/ {repeat} told by the page's script",
        "/evening/61/ counted told by the page's script",
        f"/evening/61/ {left}",
        f"/post/60/ {repeat}",
        "/post/60/ counted",
    ]


def test_an_answer_is_two_steps_of_the_funnel_and_views_are_broken_down(reader: Reader) -> None:
    one = reader("reader3")
    form = one.get(one.get("/post/64/").answer)
    assert (form.path, form.answered) == ("/publish/", "64")
    assert "Published." in one.submit(form, {**POST, "answer": form.answered}).html
    numbers = dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd>", one.get("/post/64/").html))
    assert [numbers[name] for name in ("Began an answer", "Answered", "By desktop")] == [
        "1",
        "1",
        "1",
    ]


def test_a_robot_in_disguise_is_known_by_the_honeypot(browser: Browser) -> None:
    browser.jar.set_policy(KEEPS_NO_COOKIES)
    page = browser.get("/post/65/")
    found = re.search(r'<a href="([^"]+)" rel="nofollow" aria-hidden="true"', page.html)
    assert found
    assert found[1] == page.trap
    assert browser.get(page.trap).status == 204
    browser.get("/post/66/")
    assert verdicts(browser)[1] == (
        "/post/66/ not counted: robot, by a link that people do not see"
    )


def test_the_foot_of_a_page_says_that_its_text_was_really_read(rf: RequestFactory) -> None:
    for is_script, is_read in ((False, False), (True, False), (True, True)):
        request: Any = rf.post("/post/1/")
        request.readtrack = Recorder()
        if is_script:
            reading = Reading("blog.post:1", 5, 60, READS if is_read else ENGAGED)
            request.readtrack.report = Report(as_of=0, language="", part_record=reading)
        noting_hits(lambda request: HttpResponse())(request)
    assert [(hit.path, hit.words, hit.is_script) for hit in judged_hits] == [
        ("/post/1/", "really read", True)
    ]
