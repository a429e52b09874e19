"""All of a page's waiting for Redis is at most TIMEOUT, and no answer of Redis is a page that
failed.
"""

import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import AsyncClient, RequestFactory
from django.urls import reverse
from pytest_django import Settings
from redis import Redis
from redis.exceptions import RedisError

from readtrack import reports, tracker
from readtrack.middleware import ReadTrackMiddleware
from readtrack.page.placeholders import Placeholder
from readtrack.page.tags import html_of
from readtrack.store import clock, connection, keys, scripts
from readtrack.store.circuit import Circuit, Page, circuit
from readtrack.store.connection import AnswerError, connect
from readtrack.store.counting import count_views
from readtrack.store.scripts import Call
from tests.conftest import use_redis
from tests.support import factories
from tests.support.addresses import RESP2
from tests.support.caches import use_pool
from tests.support.depth import some
from tests.support.waiting import is_ever_below, making
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

TIMEOUT = 0.9
SLACK = 0.7  # for the page itself; less than another wait


@contextmanager
def waited() -> Iterator[list[float]]:
    found: list[float] = []
    began = time.perf_counter()
    yield found
    found.append(time.perf_counter() - began)


def slow(wire: Wire, seconds: float) -> None:
    """Makes each answer come late."""
    wire.hook = lambda moment, trip: time.sleep(seconds) if moment == "answer" else None


def connect_anew(wire: Wire) -> None:
    """Opens a connection whose answers come at once, and closes the circuit."""
    wire.hook = None
    circuit.close()
    connect().ping()


@contextmanager
def served(settings: Settings, answer: Callable[[Any], object]) -> Iterator[None]:
    """Points readtrack at a server that gives each request this answer."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while self.request.recv(65536):
                try:
                    answer(self.request)
                except OSError:  # the page has gone
                    return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        use_redis(settings, f"redis://127.0.0.1:{server.server_address[1]}/0{RESP2}")
        yield
        server.shutdown()


def trickle(request: Any) -> None:
    """Sends an answer that takes 5 seconds, byte by byte."""
    request.sendall(b"$1000000\r\n")
    for _ in range(100):
        time.sleep(0.05)
        request.sendall(b"x")


def test_scripts_that_redis_forgot_cost_each_trip_of_a_page_one_more(
    wire: Wire, redis: Redis
) -> None:
    browser = factories.browser()
    browser.get(f"/posts/{factories.post().pk}/")
    redis.script_flush()
    with wire.counted() as trips:
        assert ">1<" in browser.get(f"/posts/{factories.post().pk}/").text
    assert trips == [4]
    with wire.counted() as trips:
        assert ">1<" in browser.get(f"/posts/{factories.post().pk}/").text
    assert trips == [2]


@pytest.mark.parametrize("is_async", [False, True])
def test_both_trips_of_a_page_and_lost_scripts_share_one_time_out(
    wire: Wire, redis: Redis, settings: Settings, is_async: bool
) -> None:
    settings.READTRACK = {"TIMEOUT": TIMEOUT}
    Circuit.longest_pause = 60.0
    post, url = factories.post(view_count=7), "/posts/{}/async/" if is_async else "/posts/{}/"
    ask: Any = (
        partial(factories.fetch_async, AsyncClient()) if is_async else factories.browser().get
    )

    def look_at_the_page() -> float:
        connect_anew(wire)
        redis.script_flush()
        slow(wire, TIMEOUT * 0.7)
        with waited() as seconds:
            assert ">7<" in ask(url.format(post.pk)).text
        assert circuit.opened is not None
        return seconds[0]

    assert is_ever_below(TIMEOUT + SLACK, look_at_the_page)


def test_a_new_connection_and_its_handshake_take_of_the_same_time(
    wire: Wire, settings: Settings
) -> None:
    settings.READTRACK = {"TIMEOUT": TIMEOUT}
    Circuit.longest_pause = 60.0
    post, browser = factories.post(view_count=7), factories.browser()
    slow(wire, TIMEOUT * 0.6)

    def look_at_the_page() -> float:
        connect().connection_pool.disconnect()
        circuit.close()
        with waited() as seconds:
            assert ">7<" in browser.get(f"/posts/{post.pk}/").text
        return seconds[0]

    assert is_ever_below(TIMEOUT + SLACK, look_at_the_page)


@pytest.mark.parametrize("pool", ["ConnectionPool", "BlockingConnectionPool"])
def test_bytes_that_trickle_take_no_longer(settings: Settings, pool: str) -> None:
    post, browser = factories.post(view_count=7), factories.browser()
    use_pool(settings, pool_class=pool)
    settings.READTRACK = {"TIMEOUT": TIMEOUT}
    Circuit.longest_pause = 60.0

    def look_at_the_page() -> float:
        circuit.close()
        with waited() as seconds:
            assert ">7<" in browser.get(f"/posts/{post.pk}/").text
        return seconds[0]

    with served(settings, trickle):
        assert is_ever_below(TIMEOUT + SLACK, look_at_the_page)


def test_the_parts_of_a_streamed_page_share_its_time_out(wire: Wire, settings: Settings) -> None:
    settings.READTRACK = {"TIMEOUT": TIMEOUT}
    Circuit.longest_pause = 0.001
    browser = factories.browser()
    for _ in range(5):
        factories.post()

    def look_at_the_page() -> float:
        connect_anew(wire)
        slow(wire, TIMEOUT * 0.4)
        with waited() as seconds:
            response: Any = browser.get("/stream/")
            assert b"".join(response.streaming_content)
        return seconds[0]

    assert is_ever_below(TIMEOUT + SLACK, look_at_the_page)


def test_what_a_view_waits_for_by_itself_counts(wire: Wire, settings: Settings) -> None:
    settings.READTRACK = {"TIMEOUT": TIMEOUT}
    Circuit.longest_pause = 60.0
    post = factories.post(view_count=7)

    def page(request: Any) -> HttpResponse:
        for _ in range(3):
            with suppress(RedisError):
                reports.reader_counts([factories.category()])
        request.readtrack.view(post)
        return HttpResponse(html_of(Placeholder.of("count", post), {"request": request}))

    request: Any = RequestFactory().get("/", headers={"User-Agent": factories.BROWSER})

    def look_at_the_page() -> float:
        connect_anew(wire)
        slow(wire, TIMEOUT * 0.7)
        with waited() as seconds:
            response: Any = ReadTrackMiddleware(page)(request)
        assert b">7<" in response.content
        return seconds[0]

    assert is_ever_below(TIMEOUT + SLACK, look_at_the_page)


def test_a_page_that_has_no_time_left_sends_nothing() -> None:
    name = keys.total("site.post:1")
    connect().ping()  # opens the connection that the page would use
    with making(Page(None, 0.0)), suppress(RedisError):
        scripts.run(Call("INCR", [name], (), int))
    assert scripts.run(Call("EXISTS", [name], (), int)) == 0


def test_answers_that_stay_slow_open_the_circuit_though_they_are_in_time(
    wire: Wire, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    timeout = 2 * TIMEOUT  # so that a busy machine makes no answer late
    settings.READTRACK = {"TIMEOUT": timeout}
    Circuit.longest_pause = 60.0
    post, browser = factories.post(view_count=7), factories.browser()
    browser.get(f"/posts/{post.pk}/")
    slow(wire, timeout * 0.3)
    texts: list[str] = []
    while circuit.lets_pass() and len(texts) < 10:
        texts.append(browser.get(f"/posts/{post.pk}/").text)
    assert 2 <= len(texts) <= 4
    assert all(">8<" in text for text in texts)  # each in time
    assert "TimeoutError: pages wait" in caplog.text
    with wire.counted() as trips:
        browser.get(f"/posts/{post.pk}/")
    assert trips == [0]


def test_one_slow_moment_opens_nothing(wire: Wire, settings: Settings) -> None:
    settings.READTRACK = {"TIMEOUT": TIMEOUT}
    Circuit.longest_pause = 60.0
    post, browser = factories.post(), factories.browser()
    connect().ping()
    for _ in range(3):
        for delay in (TIMEOUT * 0.3, 0):
            slow(wire, delay)
            browser.get(f"/posts/{post.pk}/")
    assert circuit.lets_pass()


WRONG = [
    b"+OK",
    b":1",
    b":-7",
    b"$-1",
    b"$3\r\nabc",
    b"*0",
    b"*-1",
    b"*1\r\n$-1",
    b"*1\r\n*0",
    b"*1\r\n+OK",
    b"*2\r\n:1\r\n*1\r\n$1\r\nx",
    b"*2\r\n*1\r\n$3\r\nabc\r\n*1\r\n$-1",
    b"%1\r\n+a\r\n:1",
    b"#t",
    b",1.5",
    b"_",
    b"-ERR wrong",
    b"wrong",
]


@pytest.mark.needs_parts("front_end", "numbers")
@pytest.mark.parametrize("answer", some([*WRONG[::4], b"-ERR wrong", b"wrong"], deep=WRONG))
def test_an_answer_of_a_wrong_type_is_no_page_that_failed(
    wire: Wire, settings: Settings, answer: bytes, redis: Redis
) -> None:
    from readtrack.numbers import reports as numbers_reports

    settings.READTRACK = {"TIMEOUT": TIMEOUT / 2, "DOTS": {"readers": "ordinal"}}
    Circuit.longest_pause = 0.001
    post, category = factories.post(view_count=7), factories.category()
    reader = factories.browser(factories.user())
    pages = (f"/posts/{post.pk}/", f"/categories/{category.pk}/", "/list/", "/json/", "/stream/")
    unread = reverse("readtrack:unread")
    for is_known in (True, False):
        wire.change = None
        if is_known:
            assert connect().ping()
        else:
            connect().connection_pool.disconnect()
        wire.change = lambda data: answer + b"\r\n"
        clock._offsets.clear()
        for page in pages:
            response: Any = reader.get(page)
            assert response.status_code == 200
            assert b"".join(response.streaming_content) if response.streaming else response.content
        assert reader.get(unread, {"category": f"site.category:{category.pk}"}).status_code in (
            200,
            503,
        )
        assert [point.views for point in numbers_reports.series(post, hours=3)] == [0, 0, 0]
        assert reports.trending() == []
    wire.change = None
    circuit.opened = None
    assert ">8<" in reader.get(pages[0]).text


@pytest.mark.parametrize("answer", WRONG[1:4])
def test_away_from_pages_a_wrong_answer_is_an_error_of_redis(wire: Wire, answer: bytes) -> None:
    connect().ping()
    wire.change = lambda data: answer + b"\r\n"
    for ask in (
        connection.server_time,
        lambda: tracker.record(factories.hit("site.post:1", "site.post:2")),
    ):
        with pytest.raises(RedisError):
            ask()


def test_an_answer_to_another_question_is_not_taken_twice(wire: Wire) -> None:
    """A connection that gave a wrong answer is not asked again."""
    connect().ping()
    wire.change = lambda data: b"+OK\r\n"
    with pytest.raises(AnswerError):
        scripts.run(count_views(factories.hit("site.post:1", "site.post:2")))
    wire.change = None
    assert scripts.run(count_views(factories.hit("site.post:1"))).counted
