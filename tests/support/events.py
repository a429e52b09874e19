"""A server of events: uvicorn in a thread of this process, and pages that listen to it."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from redis import Redis

from demo_project.engines.process import free_port
from readtrack.live.asgi import with_events
from readtrack.store import connection, keys
from readtrack.store.channel import channel
from tests.support.waiting import ENOUGH, comes_true

PATH = "/events/"


async def site(scope: Any, receive: Any, send: Any) -> None:
    """The pages beside the events."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


@contextmanager
def serving(application: Any = None, **options: Any) -> Iterator[str]:
    """Starts a server of the application, by default one with these options. Yields its URL."""
    port = free_port()
    application = application or with_events(site, **options)
    config: Any = uvicorn.Config(
        application, port=port, log_level="warning", lifespan="on", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert comes_true(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(ENOUGH)
        assert not thread.is_alive()
        assert comes_true(has_no_subscription)


def subscriptions(redis: Redis) -> int:
    """Returns the number of connections that listen to the site's channel."""
    # Each server of a cluster knows its own.
    clients = connection.servers() if keys.is_divided() else [redis]
    return sum(int(client.pubsub_numsub(channel())[0][1]) for client in clients)


def has_no_subscription() -> bool:
    return all(thread.name != "readtrack events" for thread in threading.enumerate())


class Listener:
    """A page that listens to events."""

    def __init__(self, url: str, name: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=ENOUGH)
        self._connection.request("GET", f"{PATH}?{name}")
        self.response = self._connection.getresponse()

    def line(self) -> str:
        """Returns the next line that is not empty; "" at the end of the stream."""
        while line := self.response.readline():
            if line.strip():
                return line.decode().strip()
        return ""

    def news(self) -> Any:
        """Returns the next event. Raises TimeoutError if none comes in ENOUGH seconds."""
        deadline = time.monotonic() + ENOUGH
        while line := self.line():
            if line.startswith("data: "):
                return json.loads(line[len("data: ") :])
            if time.monotonic() > deadline:  # only the signs of life come
                raise TimeoutError
        raise EOFError

    def close(self) -> None:
        self._connection.close()
        self.response.close()
