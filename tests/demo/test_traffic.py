"""The simulated visitors visit only this machine, and end when they are told to."""

import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from functools import partial
from random import Random
from threading import Thread

import pytest
from redis import Redis

from demo_project.engines.process import free_port
from demo_project.traffic import agents, browser, visitor
from demo_project.traffic import crowd as crowd_module
from demo_project.traffic.browser import Browser, site
from demo_project.traffic.crowd import Crowd
from readtrack.hits.bots import name_of, reason_of
from tests.demo.conftest import ROOT
from tests.support.waiting import ENOUGH, comes_true

TRAFFIC = [sys.executable, "-m", "demo_project.traffic"]


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000/some/page", "http://localhost:80", "http://[::1]:8000"]
)
def test_this_machine_is_a_target(url: str) -> None:
    assert site(url) == url.removesuffix("/some/page")


@pytest.mark.parametrize(
    "url", ["http://example.com", "http://10.0.0.1:8000", "https://127.0.0.1", "127.0.0.1:8000", ""]
)
def test_any_other_place_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="not on this machine"):
        site(url)


def test_the_command_refuses_other_machines() -> None:
    done = subprocess.run(
        [*TRAFFIC, "--url", "http://192.0.2.1"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "not on this machine" in done.stderr


def test_simulated_people_differ_and_simulated_robots_are_recognised() -> None:
    rng = Random(1)
    people = {agents.person(rng) for _ in range(500)}
    assert len(people) > 350
    assert not any(map(reason_of, people))
    assert {reason_of(agent) for agent in agents.ROBOTS} == {"bot"}
    assert {reason_of(agent) for agent in agents.ASSISTANTS} == {"agent"}
    for table, draw in ((agents.ROBOTS, agents.robot), (agents.ASSISTANTS, agents.assistant)):
        assert len(set(map(name_of, table))) == len(table)
        numbers = Counter(draw(rng) for _ in range(1_000)).values()
        assert max(numbers) > 2 * min(numbers)


def test_three_stories_an_hour_are_published_and_the_first_one_soon() -> None:
    assert 3600 / crowd_module.PUBLISH_EVERY == 3
    soon = Crowd(visitors=1, rate=50)._next_post - time.monotonic()
    assert 30 < soon < 60


def test_few_posts_attract_most() -> None:
    appeals = sorted((visitor.appeal(f"/post/{number}/") for number in range(120)), reverse=True)
    assert sum(appeals[:12]) > sum(appeals[12:]) / 2
    assert visitor.appeal("/post/7/") == visitor.appeal("/post/7/")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_browses_until_it_is_told_to_stop(
    demo_url: str, redis: Redis, number: signal.Signals
) -> None:
    command = [*TRAFFIC, "--url", demo_url, "--visitors", "4", "--rate", "40"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert comes_true(lambda: len(redis.keys("viewed:*")) > 3)
        process.send_signal(number)
        output, _ = process.communicate(timeout=ENOUGH)
    assert process.returncode == 0
    assert " pages" in output


def test_a_server_that_stays_away_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitor, "PATIENCE", (0, 0))
    crowd = Crowd(visitors=1, rate=100)
    visitor.come_and_go(crowd, f"http://127.0.0.1:{free_port()}", Random(1))
    assert crowd.is_lost
    assert crowd.stop.is_set()


def test_a_server_that_keeps_its_visitors_waiting_is_not_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visitor, "PATIENCE", (0,))
    monkeypatch.setattr(browser, "TIMEOUT", 0.05)
    crowd = Crowd(visitors=1, rate=100)
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        server.settimeout(ENOUGH)
        site = f"http://127.0.0.1:{server.getsockname()[1]}"
        thread = Thread(target=visitor.come_and_go, args=(crowd, site, Random(1)))
        thread.start()
        for _ in range(4):  # more often than its patience has attempts
            stack.enter_context(server.accept()[0])  # it stays open, and answers nothing
        crowd.stop.set()
        thread.join()
    assert not crowd.is_lost


def test_the_rate_is_shared() -> None:
    crowd = Crowd(visitors=2, rate=50)
    started = time.monotonic()
    for _ in range(11):
        crowd.take_turn()
    assert time.monotonic() - started >= 0.2


def test_one_visitor_publishes_at_a_time() -> None:
    crowd = Crowd(visitors=2, rate=50, _next_post=0)
    assert [crowd.is_time_to_publish() for _ in range(3)] == [True, False, False]
    crowd = Crowd(visitors=2, rate=50, _next_reply=0)
    assert [crowd.is_time_to_reply() for _ in range(3)] == [True, False, False]


def test_a_reading_is_told_by_whoever_comes_by_once_it_is_over() -> None:
    crowd, told = Crowd(visitors=2, rate=50), list[str]()
    for name, seconds in (("second", 0.0), ("third", 0.0), ("never", 3600.0), ("first", -1.0)):
        crowd.put_off(partial(told.append, name), seconds=seconds)
    assert told == []
    crowd.do_what_is_due()
    assert told == ["first", "second", "third"]


def test_some_readers_take_the_time_that_a_text_needs_and_some_give_up(demo_url: str) -> None:
    crowd, times = Crowd(visitors=1, rate=50), list[float]()
    page = Browser(demo_url, agents.person(Random(1))).get("/post/70/")
    assert page.seconds >= 5
    for number in range(200):
        reader = visitor.Person(Browser(demo_url, "nobody"), crowd, Random(number))
        start = time.monotonic()
        reader.read(page)
        times += [due - start for due, *_ in crowd._later]
        crowd._later.clear()
    assert 80 < len(times) < 160
    assert 30 < sum(seconds >= page.seconds for seconds in times) < len(times) - 30


def test_a_simulated_reading_is_counted_as_far_as_there_was_time_for_it(
    demo_url: str, redis: Redis
) -> None:
    browser = Browser(demo_url, agents.person(Random(2)))
    page = browser.get("/post/71/")
    browser.tell_reading(page, page.seconds)
    assert int(redis.hget("reading:blog.post:71", "engaged") or 0) == 1
    assert browser.came_from == ""
