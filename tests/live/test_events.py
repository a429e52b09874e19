"""Events: a publication reaches each open page at once, by one subscription of a process."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from pytest_django import Settings
from redis import Redis

from demo_project.engines.process import Child, free_port
from readtrack import reports, tracker
from readtrack.live import dots, subscription
from readtrack.live import server as stream
from readtrack.live.asgi import with_events
from readtrack.page.placeholders import DOT, Placeholder
from readtrack.script.rendering import element_keys
from readtrack.store import keys, read_state, scripts
from readtrack.store.channel import channel
from readtrack.subjects import subject_of
from tests.conftest import Start, use_redis
from tests.site.models import Category
from tests.support import factories
from tests.support.events import PATH, Listener, serving, site, subscriptions
from tests.support.waiting import ENOUGH, comes_true, is_ever_below
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db(transaction=True)

Listen = Callable[..., Listener]


@pytest.fixture(autouse=True)
def _events(settings: Settings) -> None:
    settings.READTRACK = {**settings.READTRACK, "LIVE": {"events": PATH}}


@pytest.fixture
def category() -> Category:
    return factories.category()


@pytest.fixture
def server() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.fixture
def listen(server: str, redis: Redis) -> Iterator[Listen]:
    """Returns a function that opens a page with the dots of the categories, once Redis knows that
    the server listens.
    """
    with ExitStack() as stack:

        def connect(*categories: Category, url: str = server) -> Listener:
            listener = Listener(url, name_of(*categories))
            stack.callback(listener.close)
            assert listener.response.status == 200
            assert listener.line().startswith("retry: ")
            assert comes_true(lambda: subscriptions(redis) > 0)
            return listener

        yield connect


def name_of(*categories: Category) -> str:
    placeholders = [Placeholder(DOT, subject_of(category)) for category in categories]
    return dots.name_of(dots.dots_of(placeholders))


def news_of(category: Category) -> Any:
    """Returns what a poll would answer about the category."""
    subject = subject_of(category)
    calls = read_state.last_published([subject])
    [published] = scripts.run_all(*calls)
    [key] = element_keys(Placeholder(DOT, subject))
    return {"dots": {key: published[subject]}, "numbers": {}}


def test_a_publication_reaches_a_page_within_a_second(category: Category, listen: Listen) -> None:
    page = listen(category)

    def publish() -> float:
        began = time.monotonic()
        tracker.mark_unread([category])
        assert page.news() == news_of(category)
        return time.monotonic() - began

    assert is_ever_below(1, publish)


def test_a_page_hears_of_what_it_shows_and_of_nothing_else(
    category: Category, listen: Listen
) -> None:
    others = [factories.category() for _ in range(3)]
    page = listen(category, others[0])
    tracker.mark_unread(others[1:])
    tracker.mark_unread([category])
    assert page.news() == news_of(category)
    tracker.mark_unread([others[0]])
    assert page.news() == news_of(others[0])


def test_a_page_of_one_site_hears_nothing_of_another_site(
    category: Category, listen: Listen, settings: Settings, redis: Redis
) -> None:
    page = listen(category)
    own_settings = settings.READTRACK
    settings.READTRACK = {**own_settings, "PREFIX": "other:"}
    tracker.mark_unread([category])
    settings.READTRACK = own_settings
    redis.publish(channel(), f"other:{keys.published(subject_of(category))} 1795000000000000")
    tracker.mark_unread([category])
    assert page.news() == news_of(category)


def test_all_pages_share_one_subscription_also_if_they_come_and_go(
    listen: Listen, redis: Redis
) -> None:
    categories = [factories.category() for _ in range(3)]
    pages = [listen(category) for category in categories * 5]
    assert subscriptions(redis) == 1
    tracker.mark_unread(categories)
    for page, category in zip(pages, categories * 5, strict=True):
        assert page.news() == news_of(category)
    for page in pages:
        page.close()
    for _ in range(30):
        page = listen(categories[0])
        page.close()
    page = listen(categories[0])
    assert subscriptions(redis) == 1
    tracker.mark_unread(categories)
    assert page.news() == news_of(categories[0])


def test_nothing_is_published_to_a_channel_while_events_are_off(
    category: Category, settings: Settings, redis: Redis
) -> None:
    with redis.pubsub() as everything:  # type: ignore[no-untyped-call]
        everything.psubscribe("*")
        assert everything.get_message(timeout=10)["type"] == "psubscribe"
        own_settings = settings.READTRACK
        settings.READTRACK = {**own_settings, "LIVE": {}}
        tracker.mark_unread([category])
        assert everything.get_message(timeout=0.2) is None
        settings.READTRACK = own_settings
        tracker.mark_unread([category])
        assert everything.get_message(timeout=10)["type"] == "pmessage"


@pytest.mark.parametrize(
    "message",
    [
        "",
        "category:site.category:1:published",
        "category:site.category:1:published x",
        "category:site.category:1:published 12345678901234567890",
        "views:total:site.post:1 5",
        "category:site.category:1:published 5\n",
    ],
)
def test_a_message_that_is_not_ours_is_no_publication(message: str) -> None:
    assert subscription.parse(message) is None


def test_a_message_has_prefix_subject_and_time() -> None:
    message = f"tenant:{keys.published.placed({'subject': 'site.page:a%3Ab'}, tag='')} 17"
    assert subscription.parse(message) == ("tenant:", "site.page:a%3Ab", 17)
    message = "category:{rt07}:site.category:1:published 17"
    assert subscription.parse(message) == ("", "site.category:1", 17)


def test_a_server_goes_on_after_messages_that_are_not_ours(
    category: Category, listen: Listen, redis: Redis
) -> None:
    page = listen(category)
    for message in (b"", b"\xff\xfe", b"x" * 100_000):
        redis.publish(channel(), message)
    tracker.mark_unread([category])
    assert page.news() == news_of(category)


@pytest.mark.parametrize("name", ["", "forged", "x" * 10_000, "%00"])
def test_a_name_that_is_not_ours_is_refused(server: str, name: str) -> None:
    listener = Listener(server, name)
    assert listener.response.status == 403
    listener.close()


def test_further_pages_are_refused_and_get_a_place_once_another_page_leaves(
    category: Category,
) -> None:
    with serving(most_clients=2) as url:
        pages = [Listener(url, name_of(category)) for _ in range(3)]
        assert [page.response.status for page in pages] == [200, 200, 503]
        pages[0].close()

        def is_let_in() -> bool:
            pages.append(Listener(url, name_of(category)))
            return pages[-1].response.status == 200

        assert comes_true(is_let_in)
        for page in pages:
            page.close()


def test_all_other_paths_are_those_of_the_site(server: str, settings: Settings) -> None:
    with urlopen(f"{server}/posts/1/") as response:
        assert response.read() == b"/posts/1/"
    settings.READTRACK = {"LIVE": {}}
    with urlopen(f"{server}{PATH}?x") as response:
        assert response.read() == PATH.encode()


def test_a_silent_stream_has_a_heartbeat(
    category: Category, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT", 0.05)
    page = listen(category)
    assert [page.line() for _ in range(3)] == [":"] * 3
    tracker.mark_unread([category])
    assert page.news() == news_of(category)


def test_a_page_that_takes_nothing_is_dropped(
    category: Category, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "SLOW", 0.05)
    monkeypatch.setattr(stream, "HEARTBEAT", 0.05)
    sent = []

    async def receive() -> Any:
        await asyncio.sleep(60)

    async def send(message: Any) -> None:
        sent.append(message["type"])
        if len(sent) > 2:
            await asyncio.sleep(60)

    application: Any = with_events(site)
    query = name_of(category).encode()
    scope = {"type": "http", "method": "GET", "path": PATH, "query_string": query}
    asyncio.run(asyncio.wait_for(application(scope, receive, send), timeout=ENOUGH))
    assert len(sent) == 3
    assert not application._clients
    assert not application._watchers
    application.close()


def test_of_many_pages_only_some_are_told_at_once(
    category: Category, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "AT_ONCE", 5)
    monkeypatch.setattr(stream, "STEP", 0.2)
    pages = [listen(category) for _ in range(20)]
    began = time.monotonic()
    for _ in range(50):
        tracker.mark_unread([category])
    news = [page.news() for page in pages]
    assert time.monotonic() - began > 0.5
    # Of the publications meanwhile a page is told only the last one.
    for page, first in zip(pages, news, strict=True):
        told = [first]
        while told[-1] != news_of(category):
            told.append(page.news())
        assert len(told) < 25


def test_events_come_again_after_redis_was_away(
    category: Category, wire: Wire, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    with serving() as url:
        page = Listener(url, name_of(category))
        assert comes_true(lambda: subscriptions(redis) == 1)
        wire.cut()
        assert comes_true(lambda: "interrupted" in caplog.text)
        # A server may know the connection that was cut a little longer.
        assert comes_true(lambda: subscriptions(redis) == 0)
        wire.mend()
        assert comes_true(lambda: subscriptions(redis) == 1)
        tracker.mark_unread([category])
        assert page.news() == news_of(category)
        page.close()


def test_a_subscription_notices_a_server_that_is_silent(
    category: Category, wire: Wire, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("PAUSE", 0.1), ("PING", 1.0), ("AGAIN", 0.1)):
        monkeypatch.setattr(subscription, name, seconds)
    with serving() as url:
        page = Listener(url, name_of(category))
        assert comes_true(lambda: subscriptions(redis) == 1)
        number = redis.info("stats")["total_connections_received"]
        wire.change = lambda answer: b""  # the network loses each answer
        assert comes_true(lambda: redis.info("stats")["total_connections_received"] > number)
        wire.change = None

        def is_back() -> bool:
            if subscriptions(redis):
                return True
            wire.drop()  # a connection that waits for an answer which is lost
            return False

        assert comes_true(is_back, every=1.0)
        page.close()


def test_a_user_of_redis_who_may_not_publish_loses_events_alone(
    category: Category, start_redis: Start, settings: Settings
) -> None:
    valkey = start_redis()
    with Redis.from_url(valkey.url) as client:
        client.execute_command(
            "ACL", "SETUSER", "site", "on", ">secret", "~*", "+@all", "resetchannels"
        )
    use_redis(settings, valkey.url_of("site", "secret"))
    read_state.begin(0)
    user = factories.user()
    tracker.mark_read(user, [category])
    tracker.mark_unread([category])
    assert reports.unread(user, [category]) == {category}


SERVER = """
import os
from django.conf import settings
from django.core.asgi import get_asgi_application
from readtrack.live.asgi import with_events
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
settings.READTRACK = {"LIVE": {"events": "/events/"}}
application = with_events(get_asgi_application())
"""


SERVERS = {
    "uvicorn": "uvicorn --port {port} --log-level warning served:application",
    "granian": "granian --interface asgi --port {port} --log-level warning served:application",
}


@pytest.mark.parametrize(
    ("program", "number"),
    [("uvicorn", signal.SIGTERM), ("uvicorn", signal.SIGINT), ("granian", signal.SIGTERM)],
)
def test_a_server_with_open_streams_ends_at_once(
    category: Category,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    number: signal.Signals,
) -> None:
    (tmp_path / "served.py").write_text(SERVER)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}")
    port = free_port()
    command = [sys.executable, "-m", *SERVERS[program].format(port=port).split()]
    child = Child(command, log=tmp_path / "log", folder=Path(__file__).parents[2])
    try:
        pages: list[Listener] = []

        def is_connected() -> bool:
            try:
                pages.append(Listener(f"http://127.0.0.1:{port}", name_of(category)))
            except OSError:
                return False
            return True

        assert comes_true(is_connected), child.last_lines()
        assert pages[0].line().startswith("retry: ")
        child.send(number)
        assert pages[0].line() == ""
        child.end(grace=ENOUGH)
        pages[0].close()
    finally:
        child.stop()
