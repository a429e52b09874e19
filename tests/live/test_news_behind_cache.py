"""News of 10,000 open tabs behind a cache: Django is asked once in the time that the cache keeps an
answer.
"""

import http.client
from collections.abc import Iterator
from threading import Thread
from time import monotonic, sleep
from urllib.parse import urlsplit

import pytest
from django.core.signals import request_started
from pytest_django.live_server_helper import LiveServer

from readtrack.live import dots as live
from readtrack.page.placeholders import DOT, Placeholder
from readtrack.subjects import subject_of
from tests.support import factories
from tests.support.depth import DEEP
from tests.support.nginx import nginx

pytestmark = [pytest.mark.django_db(transaction=True)]

TABS = 10_000
EVERY = 17.0  # seconds between two polls of a tab, on average
SECONDS = EVERY if DEEP else 6.0
CONNECTIONS = 8
FEWEST = int(TABS / EVERY / CONNECTIONS * SECONDS * 0.8)  # of a connection on a busy machine


@pytest.fixture
def requests() -> Iterator[list[float]]:
    """Yields the times of the requests that reach Django."""
    times: list[float] = []

    def note(**kwargs: object) -> None:
        times.append(monotonic())

    request_started.connect(note)
    yield times
    request_started.disconnect(note)


def poll(url: str, path: str, statuses: list[int]) -> None:
    """Asks as often as a share of the tabs does, for SECONDS."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    pause = EVERY / TABS * CONNECTIONS
    began = monotonic()
    number = 0
    while (now := monotonic()) < began + SECONDS or number < FEWEST:
        sleep(max(0.0, began + number * pause - now))
        connection.request("GET", path, headers={"Cookie": f"sessionid=of-tab-{number}"})
        response = connection.getresponse()
        response.read()
        statuses.append(response.status)
        number += 1
    connection.close()


def test_the_tabs_of_a_list_ask_django_less_than_every_second_second(
    live_server: LiveServer, requests: list[float]
) -> None:
    placeholders = [Placeholder(DOT, subject_of(factories.category())) for _ in range(30)]
    path = f"/readtrack/news/?{live.name_of(live.dots_of(placeholders))}"
    statuses: list[int] = []
    began = monotonic()
    with nginx(live_server.url) as url:
        threads = [Thread(target=poll, args=(url, path, statuses)) for _ in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(statuses) == {200}
    took = monotonic() - began
    # The first request, and one each time that the answer is too old.
    assert 1 <= len(requests) <= 1 + took / 5, len(requests)
    assert len(requests) < len(statuses) / 10
