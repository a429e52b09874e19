"""Buffered views under real servers: SIGTERM loses none that was acknowledged, SIGKILL those of the
last moment.
"""

import http.client
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from itertools import count
from threading import Event, Thread
from time import monotonic

import pytest
from redis import Redis

from tests.benchmarks.serving import BUFFERED, PROGRAMS, Server
from tests.support.addresses import redis_url_of
from tests.support.depth import DEEP, examples
from tests.support.factories import BROWSER
from tests.support.waiting import comes_true

BUFFER = 1.0  # seconds, as in tests/benchmarks/served.py
ROUNDS = examples(1)
SERVERS = (
    list(PROGRAMS) if DEEP else ["granian", "gunicorn, threads"]
)  # one that forks, and one that does not
CLIENTS = 3
PAUSE = Event()  # that nobody sets

_numbers = count()


class Load:
    """Clients that ask for pages until the server has gone. `answered` are the times of their
    answers.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self.answered: list[float] = []
        self.sent = 0
        self._threads = [Thread(target=self._ask) for _ in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _ask(self) -> None:
        # Closed in any case, because a server that is killed may leave a request half sent.
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        with closing(connection), suppress(OSError, http.client.HTTPException):
            while not PAUSE.wait(0.01):  # or the servers share this machine with an endless loop
                self._ask_once(connection)

    def _ask_once(self, connection: http.client.HTTPConnection) -> None:
        number = next(_numbers)
        address = f"93.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        self.sent += 1
        connection.request(
            "GET", "/post/", headers={"User-Agent": BROWSER, "X-Forwarded-For": address}
        )
        with connection.getresponse() as response:
            response.read()
        assert response.status == 200
        self.answered.append(monotonic())

    def end(self) -> None:
        for thread in self._threads:
            thread.join()


@pytest.fixture
def databases(redis_url: str) -> Iterator[list[Redis]]:
    """Yields a database for each server."""
    with ExitStack() as stack:
        found = []
        for number in range(1, len(SERVERS) + 1):
            client = stack.enter_context(Redis.from_url(f"{redis_url.rpartition('/')[0]}/{number}"))
            client.flushdb()
            found.append(client)
        yield found


def stored(redis: Redis) -> int:
    return sum(int(redis.get(key) or 0) for key in redis.keys("views:total:*"))


def url_of(redis: Redis) -> str:
    return redis_url_of(redis, database=redis.connection_pool.connection_kwargs["db"])


def test_of_views_that_were_acknowledged_sigterm_loses_none(databases: list[Redis]) -> None:
    for _ in range(ROUNDS):
        with ExitStack() as stack:
            servers = [
                stack.enter_context(
                    Server(BUFFERED, program=program, READTRACK_TEST_REDIS_URL=url_of(redis))
                )
                for program, redis in zip(SERVERS, databases, strict=True)
            ]
            loads = [Load(server.port) for server in servers]
            for load in loads:
                assert comes_true(lambda load=load: len(load.answered) > 20)  # type: ignore[misc]
            for server in servers:
                server.child.send(signal.SIGTERM)
            for server, load in zip(servers, loads, strict=True):
                load.end()
                server.child.end(grace=30)
        for program, load, redis in zip(SERVERS, loads, databases, strict=True):
            assert len(load.answered) <= stored(redis) <= load.sent, program
            redis.flushdb()


def test_sigkill_loses_no_more_than_the_views_of_the_time_that_they_wait(
    databases: list[Redis],
) -> None:
    redis = databases[0]
    for _ in range(ROUNDS):
        with Server(BUFFERED, READTRACK_TEST_REDIS_URL=url_of(redis)) as server:
            load = Load(server.port)
            assert comes_true(lambda: stored(redis) > 0)
            server.child.kill()
            killed = monotonic()
            load.end()
        # The thread may be late on a busy machine, by as much as an answer was.
        late = max(
            after - before for before, after in zip(load.answered, load.answered[1:], strict=False)
        )
        lost = len(load.answered) - stored(redis)
        assert lost <= sum(killed - BUFFER - 3 * late - 0.1 < at for at in load.answered)
        redis.flushdb()
