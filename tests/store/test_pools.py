"""A shortage of connections is no failure of Redis: pages wait for one another, and the others go on."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from random import Random
from socket import socketpair
from threading import Timer
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from pytest_django import Settings
from redis import Redis
from redis.connection import DefaultParser
from redis.exceptions import ConnectionError as RedisConnectionError

from demo_project.engines.valkey import Valkey
from readtrack import reports
from readtrack.middleware import ReadTrackMiddleware
from readtrack.store import connection, pools, scripts
from readtrack.store.circuit import BusyError, Circuit, circuit
from readtrack.store.connection import connect
from readtrack.store.pools import Connections
from readtrack.store.scripts import Call
from readtrack.store.skips import skip_buffer
from tests.conftest import Start, use_redis
from tests.support import factories
from tests.support.caches import use_pool
from tests.support.waiting import comes_true, is_ever_below
from tests.support.wire import Wire

pytestmark = [pytest.mark.django_db, pytest.mark.one_server("has a pool of few connections")]

POOLS = ["ConnectionPool", "BlockingConnectionPool"]
TIMEOUT = 0.8
THREADS = 16
PAGES = 160
visitors = count(PAGES)


def limit(settings: Settings, connections: int, pool: str = POOLS[0]) -> None:
    """Gives the cache a pool of few connections."""
    use_pool(settings, pool_class=pool, max_connections=connections)


def connections() -> Connections:
    """Returns the connections of pages."""
    found: Connections = scripts.sender(False).__self__  # type: ignore[attr-defined]  # noqa: FBT003
    return found


@contextmanager
def all_taken() -> Iterator[Any]:
    """Takes the only connection away, as another page does that waits for its answer."""
    ours = connections()
    taken = ours._take()
    yield taken
    ours._release(taken)


def view(number: int) -> str:
    """Views a subject by a new visitor, without SQL. Returns what became of it."""

    def page(request: Any) -> HttpResponse:
        request.readtrack.views[f"site.post:{number % 8}"] = None
        return HttpResponse()

    address = f"192.0.{number // 250}.{number % 250 + 1}"
    headers = {"User-Agent": factories.BROWSER}
    request: Any = RequestFactory().get("/", REMOTE_ADDR=address, headers=headers)
    response: Any = ReadTrackMiddleware(page)(request)
    return str(response["X-Readtrack"])


def view_while_taken(seconds: float) -> str:
    """Views a subject by a new visitor, while the only connection is taken for so many seconds."""
    ours = connections()
    taken = ours._take()
    other = Timer(seconds, ours._release, [taken])
    other.start()
    became = view(next(visitors))
    other.join()
    return became


def views_by_threads() -> list[str]:
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(view, range(PAGES)))


@pytest.mark.parametrize("pool", POOLS)
def test_more_threads_than_connections_lose_no_view(
    wire: Wire, settings: Settings, pool: str
) -> None:
    settings.READTRACK = {"DEBUG_HEADER": True}
    limit(settings, 2, pool)
    wire.hook = lambda moment, trip: time.sleep(0.002) if moment == "answer" else None
    assert views_by_threads() == ["counted"] * PAGES
    assert circuit.opened is None


def test_a_server_that_takes_no_more_clients_loses_no_view(
    start_redis: Start, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.READTRACK = {"DEBUG_HEADER": True}
    valkey = start_redis()
    with Redis.from_url(valkey.url) as client:
        client.config_set("maxclients", 4)
        assert views_by_threads() == ["counted"] * PAGES
    assert circuit.opened is None
    assert not caplog.records


@pytest.mark.parametrize("pool", POOLS)
def test_a_page_that_finds_no_connection_in_time_is_busy_and_the_next_one_counts(
    settings: Settings, caplog: pytest.LogCaptureFixture, pool: str
) -> None:
    settings.READTRACK = {"TIMEOUT": TIMEOUT, "DEBUG_HEADER": True}
    Circuit.longest_pause = 60.0
    limit(settings, 1, pool)
    post, browser = factories.post(view_count=7), factories.browser()
    times: list[float] = []

    def look_at_the_page() -> float:
        began = time.perf_counter()
        page = browser.get(f"/posts/{post.pk}/")
        times.append(time.perf_counter() - began)
        assert ">7<" in page.text
        assert page["X-Readtrack"] == "skipped; reason=busy"
        return times[-1]

    with all_taken():
        look_at_the_page()
        assert is_ever_below(2 * TIMEOUT, look_at_the_page)
    assert min(times) >= TIMEOUT
    assert circuit.opened is None
    assert ">8<" in browser.get(f"/posts/{post.pk}/").text
    skip_buffer.send_rest()
    assert reports.skips()["busy"] == len(times)
    [record] = caplog.records  # not one for each page
    assert "This process has 1, and gets no more" in record.getMessage()


def test_a_page_goes_on_as_soon_as_a_connection_is_free(settings: Settings) -> None:
    settings.READTRACK = {"TIMEOUT": 30.0, "DEBUG_HEADER": True}
    limit(settings, 1)
    ours = connections()
    taken = ours._take()
    Timer(0.1, ours._release, [taken]).start()
    began = time.perf_counter()
    assert view(1) == "counted"
    assert time.perf_counter() - began < 15


def test_time_spent_on_waiting_for_a_connection_is_no_fault_of_redis(
    wire: Wire, settings: Settings
) -> None:
    settings.READTRACK = {"TIMEOUT": TIMEOUT, "DEBUG_HEADER": True}
    Circuit.longest_pause = 60.0
    limit(settings, 1)
    wire.hook = lambda moment, trip: time.sleep(0.4 * TIMEOUT) if moment == "answer" else None
    # Where the machine is busy, the connection may be free too late.
    assert comes_true(lambda: view_while_taken(0.8 * TIMEOUT) == "skipped; reason=error")
    assert (circuit.opened, circuit.slow_since) == (None, None)


def test_pages_that_wait_for_connections_only_do_not_make_redis_slow(settings: Settings) -> None:
    settings.READTRACK = {"TIMEOUT": TIMEOUT, "DEBUG_HEADER": True}
    Circuit.longest_pause = 60.0
    limit(settings, 1)
    for _ in range(4):
        assert comes_true(lambda: view_while_taken(0.7 * TIMEOUT) == "counted")
    assert (circuit.opened, circuit.slow_since) == (None, None)


def test_who_waits_is_told_at_once_that_redis_died(
    start_redis: Start, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    valkey: Valkey = start_redis()
    settings.READTRACK = {"TIMEOUT": 30.0, "DEBUG_HEADER": True}
    Circuit.longest_pause = 60.0
    with ThreadPoolExecutor(1) as threads:
        with all_taken() as taken:
            valkey.kill()
            waiting = threads.submit(view, 1)
            assert comes_true(lambda: connections()._waiting == 1)
            taken.disconnect()
        assert waiting.result(15) == "skipped; reason=error"
    assert circuit.opened is not None


def test_where_nobody_has_a_connection_a_page_does_not_wait(
    settings: Settings, start_redis: Start
) -> None:
    settings.READTRACK = {"TIMEOUT": 30.0, "DEBUG_HEADER": True}
    valkey = start_redis()
    with Redis.from_url(valkey.url, single_connection_client=True) as client:
        client.config_set("maxclients", 1)
        began = time.perf_counter()
        assert view(1) == "skipped; reason=busy"
        assert time.perf_counter() - began < 15
        assert circuit.opened is None
        client.config_set("maxclients", 100)
        assert view(2) == "counted"


def test_without_a_free_file_or_port_it_is_a_shortage_as_well() -> None:
    error = RedisConnectionError("Error 24 connecting to 127.0.0.1:6379.")
    assert not pools.is_shortage(error)
    error.__context__ = OSError(24, "Too many open files")
    assert pools.is_shortage(error)


def test_long_work_waits_for_a_connection_as_well(settings: Settings) -> None:
    limit(settings, 1)
    ours: Connections = scripts.sender(True).__self__  # type: ignore[attr-defined]  # noqa: FBT003
    taken = ours._take()
    Timer(0.1, ours._release, [taken]).start()
    assert scripts.run(Call("EXISTS", ["nothing"], (), int), patient=True) == 0


def test_a_password_that_changed_stops_no_process_that_is_connected(
    start_redis: Start, settings: Settings
) -> None:
    """New connections are refused, and those that are open go on."""
    settings.READTRACK = {"DEBUG_HEADER": True, "TIMEOUT": 30.0}
    valkey = start_redis()
    assert view(0) == "counted"
    with Redis.from_url(valkey.url) as client:
        client.config_set("requirepass", "another")
    assert views_by_threads() == ["skipped; reason=repeat", *["counted"] * (PAGES - 1)]
    assert circuit.opened is None


def test_a_call_that_finds_no_connection_says_why(settings: Settings) -> None:
    settings.READTRACK = {"TIMEOUT": 0.1}
    limit(settings, 1)
    with all_taken(), pytest.raises(BusyError, match="Too many connections"):
        scripts.run(Call("EXISTS", ["nothing"], (), int))


def test_idle_connections_are_closed_by_every_pool(settings: Settings, redis_url: str) -> None:
    class Older:
        """A blocking pool of redis-py before 7."""

        closed = 0

        def disconnect(self) -> None:
            self.closed += 1

    pool = Older()
    pools.close_idle(pool)
    assert pool.closed == 1
    use_redis(settings, redis_url)
    assert connection.connect().ping()


ANSWERS = [
    b":1\r\n",
    b"$-1\r\n",
    b"+OK\r\n",
    b"$3\r\nabc\r\n",
    b"*2\r\n:1\r\n$1\r\nx\r\n",
    b"*0\r\n",
]
ANSWERS += [b"*1\r\n:2\r\n", b"-ERR wrong\r\n", b"-NOSCRIPT none\r\n", b"$1\r\n\xff\r\n"]


def answers_of(stream: bytes, count: int, *, cut: int, is_quick: bool) -> list[Any]:
    """Returns the answers that a page reads if the stream arrives in two pieces.

    It reads the first ones past redis-py's functions, or all of them by these.
    """
    ours, server = socketpair()
    pool = connect().connection_pool
    pages = pool.connection_class(**pool.connection_kwargs)
    pages._sock = connection._Socket(ours, TIMEOUT) if is_quick else ours
    pages._parser.on_connect(pages)
    server.sendall(stream[:cut])
    later = Timer(0.002, server.sendall, [stream[cut:]])
    later.start()
    try:
        return [
            (type(answer), str(answer)) if isinstance(answer, Exception) else answer
            for answer in pools._read(pages, count)
        ]
    finally:
        later.join()
        pages._sock = None
        ours.close()
        server.close()


def test_answers_are_those_that_redis_py_reads() -> None:
    chance = Random(7)
    for _ in range(60):
        answers = chance.choices(ANSWERS, k=chance.randint(1, 4))
        stream = b"".join(answers)
        cut = chance.randint(0, len(stream))
        quick = answers_of(stream, len(answers), cut=cut, is_quick=True)
        assert quick == answers_of(stream, len(answers), cut=cut, is_quick=False)


@pytest.mark.parametrize("is_quick", [True, False])
@pytest.mark.parametrize("answer", [b"-READONLY no writes\r\n", b"-LOADING wait\r\n"])
def test_a_connection_that_is_of_no_more_use_is_an_error(answer: bytes, *, is_quick: bool) -> None:
    with pytest.raises(RedisConnectionError):
        answers_of(b":1\r\n" + answer, 2, cut=0, is_quick=is_quick)


@pytest.mark.skipif(
    not hasattr(DefaultParser, "handle_push_response"),
    reason="redis-py speaks no protocol in which a server announces something",
)
def test_what_a_server_announces_is_no_answer() -> None:
    stream = b">2\r\n+moved\r\n:1\r\n:5\r\n"
    assert answers_of(stream, 1, cut=4, is_quick=True) == [5]
    assert answers_of(stream, 1, cut=len(stream), is_quick=True) == [5]
