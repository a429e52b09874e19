"""The circuit: after a failure one page at a time tries Redis again, at once and then ever later."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from pytest_django import Settings
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from demo_project.engines.valkey import Valkey
from readtrack.store.circuit import (
    BusyError,
    Circuit,
    Page,
    ask_anyway,
    circuit,
    fail_open,
)
from tests.conftest import use_redis
from tests.support import factories
from tests.support.waiting import making

GONE = RedisError("gone")


class Clock:
    """A monotonic clock that stands still."""

    seconds = 100.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Clock:
    settings.READTRACK = {"TIMEOUT": 0.25}
    Circuit.longest_pause = 5.0
    clock = Clock()
    of_circuit = SimpleNamespace(monotonic=clock.monotonic, perf_counter=clock.monotonic)
    monkeypatch.setattr("readtrack.store.circuit.time", of_circuit)
    return clock


def pauses(own: Circuit, clock: Clock, number: int) -> Iterator[float]:
    """Yields how long nobody tries after each of so many failures."""
    for _ in range(number):
        own.open(GONE)
        failed = clock.seconds
        while not own.lets_pass():
            clock.seconds += 1 / 16  # exact in binary
        yield round(clock.seconds - failed, 2)


def test_the_pause_before_a_try_doubles_up_to_the_setting(clock: Clock) -> None:
    assert [*pauses(Circuit(), clock, 8)] == [0, 0.25, 0.75, 1.75, 3.75, 5.0, 5.0, 5.0]


def test_of_several_callers_one_tries_and_the_others_do_without(clock: Clock) -> None:
    own = Circuit()
    own.open(GONE)
    assert [own.lets_pass() for _ in range(3)] == [True, False, False]


def test_those_that_fail_together_are_one_failure(clock: Clock) -> None:
    own = Circuit()
    for _ in range(16):
        own.open(GONE)
    assert own.lets_pass()


def test_a_caller_that_never_came_back_is_not_waited_for(clock: Clock) -> None:
    own = Circuit()
    own.open(GONE)
    assert own.lets_pass()
    clock.seconds += 0.6
    assert own.lets_pass()


def test_a_quick_page_makes_the_failures_forgotten(clock: Clock) -> None:
    assert [*pauses(circuit, clock, 3)] == [0, 0.25, 0.75]
    clock.seconds += 5.0
    page = Page(None, 0.25)
    with making(page):
        assert fail_open(lambda: "back", "gone") == "back"
        page.seconds_left = 0.2
    assert [*pauses(circuit, clock, 2)] == [0, 0.25]


def test_pages_that_go_on_failing_at_their_second_trip_ask_ever_less(clock: Clock) -> None:
    """Each first answer closes the circuit, and says nothing about how slow Redis is."""

    def page() -> None:
        made = Page(None, 0.25)
        with making(made):
            asked.append(fail_open(lambda: True, False))  # noqa: FBT003
            made.seconds_left = 0.0
            fail_open(late, None)

    def late() -> None:
        raise RedisTimeoutError

    asked: list[bool] = []
    for _ in range(2000):
        page()
        clock.seconds += 0.01
    assert sum(asked) < 12


def test_a_page_with_little_time_left_does_not_try(clock: Clock) -> None:
    circuit.open(GONE)
    page = Page(None, 0.25)
    with making(page):
        page.seconds_left = 0.1
        assert not circuit.lets_pass()
    assert circuit.lets_pass()


def test_a_shortage_of_connections_opens_nothing(clock: Clock) -> None:
    def busy() -> None:
        raise BusyError

    assert fail_open(busy, 7) == 7
    assert ask_anyway(busy, 7) == 7
    assert circuit.opened is None


def test_what_waits_for_redis_asks_it_though_pages_do_without(clock: Clock) -> None:
    circuit.open(GONE)
    assert circuit.lets_pass()
    assert not circuit.lets_pass()
    assert ask_anyway(lambda: "back", "gone") == "back"
    assert circuit.opened is None


@pytest.mark.django_db
@pytest.mark.one_server("is about one that hangs for a moment")
def test_one_slow_moment_costs_the_views_of_that_moment(settings: Settings) -> None:
    with Valkey() as server:
        use_redis(settings, server.url)
        settings.READTRACK = {"TIMEOUT": 0.9, "DEBUG_HEADER": True}
        Circuit.longest_pause = 60.0
        posts = [factories.post() for _ in range(4)]
        browser = factories.browser()
        assert browser.get(f"/posts/{posts[0].pk}/")["X-Readtrack"] == "counted"
        server.pause()
        assert browser.get(f"/posts/{posts[1].pk}/")["X-Readtrack"] == "skipped; reason=error"
        server.resume()
        for post in posts[2:]:
            assert browser.get(f"/posts/{post.pk}/")["X-Readtrack"] == "counted"
