"""The demo's forum: dots of threads and boards, the first new reply, everything marked read."""

import re
from collections.abc import Callable
from random import Random

from demo_project.traffic.browser import Browser, Page
from demo_project.traffic.crowd import Crowd
from demo_project.traffic.visitor import Person

Reader = Callable[[str], Browser]
BOARD, OTHER_BOARD = "/forum/board/1/", "/forum/board/2/"


def with_dot(page: Page, folder: str) -> set[str]:
    """Returns the boards or threads with a dot or a number."""
    rows = re.findall(r"<li>(.*?)</li>", page.html, re.DOTALL)
    link = re.compile(rf'href="(/forum/{folder}/\d+/)"')
    found = [link.search(row) for row in rows if "readtrack-dot" in row or "readtrack-un" in row]
    return {match[1] for match in found if match}


def reply(browser: Browser, thread: str, text: str) -> Page:
    return browser.submit(browser.get(f"{thread}reply/"), {"text": text})


def test_a_reply_lights_the_dots_of_its_thread_and_board_for_everybody_else(
    reader: Reader,
) -> None:
    one, two = reader("reader1"), reader("reader2")
    thread = one.get(BOARD).links("forum/thread")[3]
    page = reply(two, thread, "First new words")
    assert page.path == thread
    reply(two, thread, "Second new words")
    assert BOARD in with_dot(one.get("/forum/"), "board")
    assert thread in with_dot(one.get(BOARD), "thread")
    assert BOARD not in with_dot(two.get("/forum/"), "board")
    page = one.get(thread)
    [first] = re.findall(r'<a class="button" href="#(reply-\d+)">Go to the first new', page.html)
    assert re.search(rf'<li id="{first}">First new words', page.html)
    assert "Go to the first new" not in one.get(thread).html
    assert thread not in with_dot(one.get(BOARD), "thread")


def test_everything_is_marked_read_or_one_board(reader: Reader) -> None:
    one, two = reader("reader3"), reader("reader4")
    for board in (BOARD, OTHER_BOARD):
        reply(two, one.get(board).links("forum/thread")[5], "Something new")
    assert with_dot(one.get("/forum/"), "board") >= {BOARD, OTHER_BOARD}
    form = one.get(BOARD)._replace(path="/forum/read/")
    assert one.submit(form, {"board": "1"}).path == BOARD
    dots = with_dot(one.get("/forum/"), "board")
    assert BOARD not in dots
    assert OTHER_BOARD in dots
    form = one.get("/forum/")._replace(path="/forum/read/")
    assert one.submit(form, {}).path == "/forum/"
    assert with_dot(one.get("/forum/"), "board") == set()


def test_somebody_without_an_account_has_no_dots(browser: Browser) -> None:
    assert with_dot(browser.get("/forum/"), "board") == set()
    assert "Mark everything" not in browser.get("/forum/").html
    assert browser.get("/forum/thread/1/reply/").path == "/login/"


def test_the_simulated_visitors_reply(reader: Reader) -> None:
    person = Person(reader("reader7"), Crowd(visitors=1, rate=50), Random(3))
    page = person.reply()
    assert page.status == 200
    assert page.path.startswith("/forum/thread/")
