"""Each web server counts each of many requests at once, and counts it once."""

import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from redis import Redis

from tests.benchmarks.serving import BUFFERED, MOUNTED, PROGRAMS, Server
from tests.support.addresses import redis_url_of
from tests.support.depth import some
from tests.support.factories import BROWSER

CLIENTS = 20
PAGES = 20  # that each client asks for
TWO_CONNECTIONS = "?max_connections=2"  # to Redis, for all requests of a process
MOUNTING = some(["gunicorn, threads", "uvicorn"], deep=PROGRAMS)
SERVERS = some(["gunicorn, gevent", "gunicorn, threads"], deep=PROGRAMS)


@pytest.fixture
def database(redis_url: str) -> Iterator[Redis]:
    """Yields an empty database that no other test uses."""
    url = f"{redis_url.rpartition('/')[0]}/1"
    with Redis.from_url(url, decode_responses=True) as client:
        client.flushdb()
        yield client
        client.flushdb()


def ask_for_pages(port: int, *, client_number: int) -> None:
    """Asks for pages, each of them as another visitor."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        for page_number in range(PAGES):
            address = f"93.1.{client_number}.{page_number}"
            headers = {"User-Agent": BROWSER, "X-Forwarded-For": address}
            connection.request("GET", "/post/", headers=headers)
            with connection.getresponse() as response:
                response.read()
            assert response.status == 200


def counted(redis: Redis) -> int:
    """Returns the views of all posts that Redis holds."""
    return sum(int(redis.get(key) or 0) for key in redis.scan_iter("views:total:*"))


def skipped(redis: Redis) -> list[dict[str | bytes, str | bytes]]:
    """Returns the numbers of hits that did not count, by reason, of each hour."""
    return [redis.hgetall(key) for key in redis.scan_iter("views:skips:*")]


def report_pages(port: int, *, client_number: int) -> None:
    """Sends reports of a page, each of them as another visitor."""
    from readtrack.script.shown import token_of

    token = token_of("/post/|0|0|site.post:1|", ())
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        for page_number in range(PAGES):
            headers = {
                "User-Agent": BROWSER,
                "X-Forwarded-For": f"93.2.{client_number}.{page_number}",
                "Sec-Fetch-Site": "same-origin",
                "Content-Type": "text/plain",
            }
            connection.request("POST", "/readtrack/page.js", token, headers)
            with connection.getresponse() as response:
                answer = json.loads(response.read())
            assert answer["again"]


@pytest.mark.needs_parts("script")
@pytest.mark.parametrize("program", MOUNTING)
def test_each_of_many_reports_that_are_answered_before_django_counts_once(
    program: str, database: Redis
) -> None:
    url = redis_url_of(database, database=1) + TWO_CONNECTIONS
    server = Server(MOUNTED, program=program, READTRACK_TEST_REDIS_URL=url)
    with server, ThreadPoolExecutor(CLIENTS) as clients:
        asking = [
            clients.submit(report_pages, server.port, client_number=number)
            for number in range(CLIENTS)
        ]
        for client in asking:
            client.result()
    assert counted(database) == CLIENTS * PAGES


@pytest.mark.parametrize("program", SERVERS)
@pytest.mark.parametrize(("variant", "options"), [("tracked", TWO_CONNECTIONS), (BUFFERED, "")])
def test_each_of_many_requests_at_once_counts_once(
    program: str, variant: str, options: str, database: Redis
) -> None:
    url = redis_url_of(database, database=1) + options
    server = Server(variant, program=program, READTRACK_TEST_REDIS_URL=url)
    with server, ThreadPoolExecutor(CLIENTS) as clients:
        asking = [
            clients.submit(ask_for_pages, server.port, client_number=number)
            for number in range(CLIENTS)
        ]
        for client in asking:
            client.result()
    # The end of the server, by SIGTERM, sends what a buffer still has.
    assert skipped(database) == []
    assert counted(database) == CLIENTS * PAGES
