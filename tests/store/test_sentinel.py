"""Redis behind Sentinel: a failover breaks no page, and loses only the views that the replica
lagged behind.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from socket import create_server, socket
from typing import Any

import pytest
from pytest_django import Settings

from demo_project.engines.valkey import Valkey
from readtrack import reports, tracker
from readtrack.doctor.report import examine
from readtrack.flush.run import flush
from readtrack.store import scripts
from readtrack.store.circuit import Circuit
from readtrack.store.connection import RedisError, connect
from readtrack.store.counters import totals
from tests.site.models import Post
from tests.support import factories
from tests.support.sentinel import Watched

pytestmark = [pytest.mark.django_db, pytest.mark.one_server("Sentinel has no cluster")]

_addresses = cycle(range(1, 255))


@pytest.fixture
def watched(settings: Settings) -> Iterator[Watched]:
    """Starts a primary, a replica and their Sentinel, which the site uses."""
    with Watched() as servers:
        settings.CACHES = {"default": servers.cache()}
        Circuit.longest_pause = 0.01
        yield servers


def page(post: Post) -> str:
    """Returns the page that a new visitor gets."""
    browser = factories.browser(REMOTE_ADDR=f"10.0.0.{next(_addresses)}")
    response = browser.get(f"/posts/{post.pk}/")
    assert response.status_code == 200
    return response.text


def view(post: Post, times: int = 1) -> int:
    """Records views of different visitors. Returns their number."""
    for _ in range(times):
        assert tracker.record(factories.hit(f"site.post:{post.pk}")).counted
    return times


def stored(post: Post) -> int:
    post.refresh_from_db()
    count: int = post.view_count
    return count


def live(post: Post) -> int:
    return reports.views([post])[post]


def held(server: Valkey, post: Post) -> int:
    """Returns the views that this server holds."""
    with server.client(decode_responses=True) as client:
        count: Any = client.get(f"views:total:site.post:{post.pk}")
        return int(count or 0)


def until_shown(post: Post, views: int) -> None:
    """Opens the page as new visitors until it shows that number. No page may be an error."""
    assert any(f">{views}<" in page(post) for _ in range(100))


def test_everything_works_over_sentinel(watched: Watched) -> None:
    category = factories.category()
    post = factories.post(category=category)
    tracker.mark_unread([category])
    reader = factories.browser(factories.user())
    assert "readtrack-dot" in reader.get("/list/").text
    reader.get(f"/categories/{category.pk}/")
    assert "readtrack-dot" not in reader.get("/list/").text
    assert ">1<" in page(post)
    tracker.refresh_trending()
    assert [entry[0] for entry in reports.trending()] == [post]
    assert flush().error == ""
    assert stored(post) == live(post) == 1
    assert {
        finding.name: finding.message for finding in examine() if finding.level == "error"
    } == {}


@pytest.mark.parametrize("end", ["kill", "pause"])
def test_pages_are_served_through_a_failover_and_count_again_by_themselves(
    watched: Watched, settings: Settings, end: str
) -> None:
    post = factories.post(view_count=7)
    assert ">8<" in page(post)
    watched.sync()
    settings.READTRACK = {"TIMEOUT": 0.5}
    Circuit.longest_pause = 0.01
    with watched.announced():
        getattr(watched.primary, end)()
        for _ in range(3):
            assert ">7<" in page(post)  # what SQL stores
    until_shown(post, 9)
    assert held(watched.replica, post) == 2
    flush()
    assert stored(post) == live(post) == 9


def test_a_primary_that_is_demoted_while_it_is_well_is_left_for_its_successor(
    watched: Watched,
) -> None:
    post = factories.post()
    view(post, 3)
    watched.sync()
    watched.hand_over()
    view(post, 2)
    assert held(watched.replica, post) == 5
    flush()
    assert stored(post) == 5


def test_a_replica_that_lagged_is_lifted_to_what_sql_stores(watched: Watched) -> None:
    post = factories.post()
    view(post, 2)
    flush()
    watched.sync()
    watched.detach()
    acknowledged = 2 + view(post, 5)
    flush()
    assert stored(post) == 7
    acknowledged += view(post, 1)  # after the last flush: lost with the primary
    with watched.announced():
        watched.primary.kill()
    assert held(watched.replica, post) == 2
    flush()
    assert stored(post) == live(post) == 7
    acknowledged += view(post, 3)
    flush()
    assert stored(post) == live(post) == 10 == acknowledged - 1
    assert flush().written == 0


def test_marks_that_a_lagging_replica_brings_back_add_no_base_twice(watched: Watched) -> None:
    post = factories.post(view_count=100)
    flush()
    view(post, 3)
    watched.sync()
    watched.detach()
    flush()
    assert stored(post) == live(post) == 103
    with watched.announced():
        watched.primary.kill()
    flush()
    assert stored(post) == live(post) == 103
    view(post, 2)
    flush()
    assert stored(post) == live(post) == 105


def test_a_flush_without_a_primary_fails_and_the_next_one_makes_up_for_it(watched: Watched) -> None:
    post = factories.post()
    view(post, 3)
    watched.sync()
    with watched.announced():
        watched.primary.kill()
        with pytest.raises(RedisError):
            flush()
    assert flush().error == ""
    assert stored(post) == 3


@pytest.fixture
def silent() -> Iterator[socket]:
    """Starts a Sentinel that takes connections and never answers."""
    with create_server(("127.0.0.1", 0)) as listener:
        yield listener


def use_sentinels(settings: Settings, cache: dict[str, Any], *addresses: tuple[str, int]) -> None:
    name = "sentinels" if "sentinels" in cache["OPTIONS"] else "SENTINELS"  # by the library
    settings.CACHES = {"default": {**cache, "OPTIONS": {**cache["OPTIONS"], name: [*addresses]}}}


def asked(listener: socket) -> int:
    """Returns the number of connections that wait there."""
    listener.settimeout(0)
    count = 0
    with suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
            count += 1
    return count


def test_a_sentinel_that_hangs_costs_one_page_its_share_of_the_time_out(
    watched: Watched, settings: Settings, silent: socket
) -> None:
    use_sentinels(
        settings, watched.cache(), silent.getsockname(), ("127.0.0.1", watched.sentinel.port)
    )
    settings.READTRACK = {"TIMEOUT": 2.0}
    post = factories.post()
    begin = time.perf_counter()
    assert ">1<" in page(post)
    assert time.perf_counter() - begin < 20  # by itself redis-py asks eleven times, for 5 s each
    connect().connection_pool.disconnect()
    assert ">2<" in page(post)
    assert asked(silent) == 1  # from then on the one that answered is asked first


def test_without_any_sentinel_a_page_asks_each_once(
    settings: Settings, silent: socket, caplog: pytest.LogCaptureFixture
) -> None:
    use_sentinels(settings, Watched().cache(), silent.getsockname(), silent.getsockname())
    settings.READTRACK = {"TIMEOUT": 0.5}
    assert ">7<" in page(factories.post(view_count=7))
    assert asked(silent) == 2
    assert "MasterNotFoundError" in caplog.text


def test_an_answer_that_came_too_late_is_not_taken_for_the_next_one(
    watched: Watched, settings: Settings
) -> None:
    settings.READTRACK = {"TIMEOUT": 1.0}
    post, other = factories.post(), factories.post()
    view(post), view(other, 2)
    with watched.primary.client() as client:
        client.client_pause(
            60_000, all=False
        )  # a pause of writes, of which scripts are held to be some
        with pytest.raises(RedisError):
            scripts.run(totals([f"site.post:{post.pk}"]))
        client.client_unpause()
    assert scripts.run(totals([f"site.post:{other.pk}"])) == {f"site.post:{other.pk}": (2, False)}
