"""Redis is slow, gone and back again: every page is served, and waits once at most."""

import logging
import socketserver
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.cache import caches
from django.test import AsyncClient
from pytest_django import Settings
from redis import VERSION, Redis
from redis.connection import Connection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from demo_project.engines.valkey import Valkey
from readtrack import reports, signals, tracker
from readtrack.store import connection, scripts
from readtrack.store.circuit import Circuit, circuit, fail_open
from readtrack.store.connection import connect
from readtrack.store.counting import count_views
from tests.conftest import DJANGO_REDIS, use_redis
from tests.support import factories
from tests.support.addresses import RESP2
from tests.support.caches import use_pool
from tests.support.waiting import comes_true
from tests.support.wire import Wire

pytestmark = [pytest.mark.django_db, pytest.mark.one_server("is about connections to one")]


@pytest.fixture
def server(settings: Settings) -> Iterator[Valkey]:
    """Starts a Redis for this test alone, to be killed and paused."""
    with Valkey() as engine:
        use_redis(settings, engine.url)
        Circuit.longest_pause = 60.0
        yield engine


@pytest.fixture
def failures() -> Iterator[list[Exception]]:
    """Collects the errors that `redis_failed` sends."""
    errors: list[Exception] = []

    def note(*, error: Exception, **kwargs: Any) -> None:
        errors.append(error)

    signals.redis_failed.connect(note)
    yield errors
    signals.redis_failed.disconnect(note)


@pytest.fixture(params=["kill", "pause"])
def lost(request: pytest.FixtureRequest, server: Valkey, settings: Settings) -> Valkey:
    """Kills the site's Redis, or freezes it."""
    settings.READTRACK = {"TIMEOUT": 0.1}
    Circuit.longest_pause = 60.0
    assert comes_true(answers)
    getattr(server, request.param)()
    return server


def answers() -> bool:
    """Returns True if Redis answers within the site's time-out."""
    with suppress(RedisError):
        return bool(connect().ping())
    return False


def bring_back(server: Valkey) -> None:
    if server.is_running:
        server.resume()
    server.start()


def test_pages_are_served_without_redis_and_the_failure_is_told_once(
    lost: Valkey, failures: list[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    post, category = factories.post(view_count=1234), factories.category()
    browser = factories.browser(factories.user())
    for _ in range(3):
        assert ">1.2k<" in browser.get(f"/posts/{post.pk}/").text
        assert category.name in browser.get(f"/categories/{category.pk}/").text
        assert "readtrack-dot" not in browser.get("/list/").text
    assert [type(error).__mro__[-4:-3] for error in failures] == [(RedisError,)]
    lines = [record for record in caplog.records if record.name == "readtrack"]
    assert [line.levelno for line in lines] == [logging.WARNING]
    assert "pages go on without it" in lines[0].getMessage()


def test_an_async_page_is_served_without_redis(lost: Valkey) -> None:
    post = factories.post(view_count=7)
    assert (
        ">7<" in factories.fetch_async(AsyncClient(), f"/posts/{post.pk}/async/").content.decode()
    )


def test_a_failed_redis_is_not_asked_again_until_the_circuit_lets_one_request_try(
    wire: Wire,
) -> None:
    Circuit.longest_pause = 60.0
    post, browser = factories.post(), factories.browser()
    wire.cut()
    browser.get(f"/posts/{post.pk}/")
    wire.mend()
    with wire.counted() as trips:
        for _ in range(5):
            assert browser.get(f"/posts/{post.pk}/").status_code == 200
    assert trips == [0]


def test_the_site_counts_again_when_redis_is_back(lost: Valkey, settings: Settings) -> None:
    post, browser = factories.post(view_count=7), factories.browser()
    settings.READTRACK = {"TIMEOUT": 0.1}
    Circuit.longest_pause = 0.01
    assert ">7<" in browser.get(f"/posts/{post.pk}/").text
    bring_back(lost)
    # The circuit closes a hundredth of a second after the last failure, and a busy machine may fail
    # again.
    assert comes_true(
        lambda: ">8<" in browser.get(f"/posts/{post.pk}/").text and circuit.lets_pass()
    )


def test_saving_a_post_works_without_redis(
    lost: Valkey, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True) as callbacks:
        factories.post(category=factories.category())
    assert len(callbacks) == 1


@pytest.mark.needs_parts("numbers")
def test_reports_for_pages_fall_back_and_have_no_dots(lost: Valkey) -> None:
    from readtrack.numbers import reports as numbers_reports

    post, category, user = factories.post(view_count=7), factories.category(), factories.user()
    assert reports.views([post]) == {post: 7}
    assert reports.unread(user, [category]) == set()
    assert reports.trending() == []
    assert [point.views for point in numbers_reports.series(hours=3)] == [0, 0, 0]


def test_away_from_pages_a_failure_surfaces(lost: Valkey) -> None:
    with pytest.raises(RedisError):
        tracker.record(factories.hit("site.post:1"))
    with pytest.raises(RedisError):
        tracker.mark_unread([factories.category()])


def test_of_many_requests_one_tries_a_failed_redis_again(
    failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 100.0
    monkeypatch.setattr("readtrack.store.circuit.time", SimpleNamespace(monotonic=lambda: seconds))
    circuit.open(RedisError("gone"))
    start = Barrier(8)

    def ask(_: int) -> bool:
        start.wait()
        return circuit.lets_pass()

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(ask, range(8))) == 1
    circuit.open(RedisError("still gone"))
    assert len(failures) == 1
    assert not circuit.lets_pass()
    seconds += 10
    assert fail_open(lambda: "back", "gone") == "back"
    assert circuit.lets_pass()


def test_an_error_that_is_not_redis_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        fail_open(lambda: 1 // 0, 0)


def test_a_listener_that_fails_does_not_break_the_page(
    server: Valkey, caplog: pytest.LogCaptureFixture
) -> None:
    def listener(**kwargs: Any) -> None:
        raise ValueError("the site's own mistake")

    server.kill()
    signals.redis_failed.connect(listener)
    try:
        assert factories.browser().get(f"/posts/{factories.post().pk}/").status_code == 200
    finally:
        signals.redis_failed.disconnect(listener)


def test_a_lost_connection_is_replaced_without_an_error(wire: Wire, redis: Redis) -> None:
    post = factories.post()
    wire.cut()
    wire.mend()
    assert ">1<" in factories.browser().get(f"/posts/{post.pk}/").text


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"RATE": (0, 10)},
        {"WINDOW": 1},
        {"UNIQUE": "daily", "NUMBERS": {"funnels": True, "dimensions": ["device"]}},
    ],
)
def test_a_view_whose_answer_was_lost_counts_once_though_it_is_sent_again(
    wire: Wire, redis: Redis, settings: Settings, overrides: dict[str, Any]
) -> None:
    settings.READTRACK = overrides
    tracker.record(factories.hit("site.post:0"))

    def lose(moment: str, trip: int) -> None:
        if moment == "answer":
            wire.hook = None
            wire.drop()

    wire.hook = lose
    outcome = tracker.record(factories.hit("site.post:1"))
    assert redis.get("views:total:site.post:1") == "1"
    assert outcome.skipped == {"site.post:1": "repeat"}


def test_a_view_is_sent_once_more_at_most(wire: Wire, redis: Redis) -> None:
    connect().connection_pool.disconnect()
    with wire.counted() as trips:
        tracker.record(factories.hit("site.post:0"))
    answers = (
        wire.trips + 1,
        wire.trips + 1 + trips[0],
    )  # the second follows on a new connection's handshake

    def lose(moment: str, trip: int) -> None:
        if moment == "answer" and trip in answers:
            taken.append(trip)
            wire.drop()

    taken: list[int] = []
    redis.config_resetstat()
    wire.hook = lose
    with pytest.raises(RedisConnectionError):
        tracker.record(factories.hit("site.post:1"))
    assert tuple(taken) == answers
    stats: Any = redis.info("commandstats")
    assert stats["cmdstat_evalsha"]["calls"] == 2
    assert redis.get("views:total:site.post:1") == "1"


def test_a_view_that_took_too_long_is_not_sent_again(server: Valkey, settings: Settings) -> None:
    relay = Wire(server.url)
    use_redis(settings, relay.url)
    settings.READTRACK = {"TIMEOUT": 0.1}
    assert comes_true(answers)
    server.pause()
    with relay.counted() as trips, pytest.raises(RedisTimeoutError):
        tracker.record(factories.hit("site.post:1"))
    assert trips == [1]
    server.resume()
    relay.close()


@pytest.mark.parametrize("keep", [True, False])
def test_a_restart_between_two_requests_costs_neither_of_them_anything(
    server: Valkey, settings: Settings, caplog: pytest.LogCaptureFixture, keep: bool
) -> None:
    post, browser = factories.post(view_count=5), factories.browser()
    other = factories.browser(REMOTE_ADDR="10.0.0.1")
    assert ">6<" in browser.get(f"/posts/{post.pk}/").text
    server.restart(keep=keep)
    assert (">7<" if keep else ">6<") in other.get(f"/posts/{post.pk}/").text
    assert not caplog.records


def test_a_server_demoted_under_our_connections_is_left_for_its_successor(
    server: Valkey, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    relay = Wire(server.url)
    use_redis(settings, relay.url)
    with (
        Valkey(password=server.password) as successor,
        Redis.from_url(server.url) as old,
        Redis.from_url(successor.url) as new,
    ):
        assert tracker.record(factories.hit("site.post:1")).counted
        relay.lead_to(successor.port)
        old.replicaof("127.0.0.1", 1)  # which leaves our connections open
        assert tracker.record(factories.hit("site.post:2")).counted
        assert scripts.run_all(*(count_views(factories.hit("site.post:2")) for _ in range(2)))
        assert new.get("views:total:site.post:2") == b"3"
    relay.close()


def test_a_server_that_takes_no_writes_at_all_costs_no_page(
    server: Valkey, caplog: pytest.LogCaptureFixture
) -> None:
    with Redis.from_url(server.url) as client:
        client.replicaof("127.0.0.1", 1)
    assert ">7<" in factories.browser().get(f"/posts/{factories.post(view_count=7).pk}/").text
    assert "ConnectionError: You can't write against a read only replica" in caplog.text


class _Old(socketserver.BaseRequestHandler):
    """A replica that refuses writes in the words of Redis 6.2."""

    def handle(self) -> None:
        while self.request.recv(65536):
            self.request.sendall(
                b"-ERR Error running script: @user_script:1: -READONLY You can't write here\r\n"
            )


def test_a_replica_of_an_older_redis_is_recognised_by_its_message(settings: Settings) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Old) as replica:
        replica.daemon_threads = True
        threading.Thread(target=replica.serve_forever, daemon=True).start()
        use_redis(settings, f"redis://127.0.0.1:{replica.server_address[1]}/0{RESP2}")
        with pytest.raises(RedisConnectionError, match="READONLY"):
            tracker.record(factories.hit("site.post:1"))
        replica.shutdown()


@DJANGO_REDIS
def test_the_sites_own_cache_keeps_its_time_outs(settings: Settings, redis_url: str) -> None:
    options = {"SOCKET_TIMEOUT": 7, "SOCKET_CONNECT_TIMEOUT": 8}
    # An address of its own, for django-redis has one pool for each.
    address = redis_url.removesuffix("/0") + "/1"
    settings.CACHES = {
        "default": {**settings.CACHES["default"], "LOCATION": address, "OPTIONS": options}
    }
    settings.READTRACK = {"TIMEOUT": 0.5}
    quick, patient = connect(), connect(patient=True)
    caches["default"].set("site", 1)
    own = caches["default"].client.get_client().connection_pool.connection_kwargs  # type: ignore[attr-defined]
    assert own["socket_timeout"] == 7
    assert quick.connection_pool.connection_kwargs["socket_timeout"] == 0.5
    assert patient.connection_pool.connection_kwargs["socket_timeout"] == connection.PATIENCE


def test_answers_are_read_alike_whatever_the_sites_own_options_are(settings: Settings) -> None:
    use_pool(settings, decode_responses=True)
    post = factories.post()
    assert ">1<" in factories.browser().get(f"/posts/{post.pk}/").text


class Interrupted(BaseException):
    """A signal's handler raises it, such as the one of Celery's soft time limit."""


@pytest.mark.skipif(VERSION < (5,), reason="redis-py greets no server before")
@pytest.mark.parametrize("timeout", [1.0, connection.PATIENCE])
def test_a_connection_whose_greeting_was_interrupted_is_not_used(
    redis_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch, timeout: float
) -> None:
    send = Connection.send_command

    def interrupted(self: Any, *args: Any, **named: Any) -> None:
        send(self, *args, **named)  # type: ignore[no-untyped-call]
        if args[0] == "HELLO":
            monkeypatch.undo()
            raise Interrupted

    use_redis(settings, f"{redis_url}?protocol=3")
    monkeypatch.setattr(Connection, "send_command", interrupted)
    client = connection.make(timeout)
    with pytest.raises(Interrupted):
        client.set("a", 1)
    client.set("a", 2)
    assert client.get("a") == b"2"
    client.connection_pool.disconnect()


def test_a_unix_socket_is_its_own_address() -> None:
    assert connection.address(Redis(unix_socket_path="/tmp/valkey.sock")) == "/tmp/valkey.sock"
