"""The stream of events: an ASGI application that tells open pages of publications at once.

It asks Redis for messages alone, and no database.
"""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from functools import partial
from random import randint
from typing import Any

from readtrack.live import dots, options
from readtrack.live.dots import LiveDots
from readtrack.live.subscription import Publication, Subscription

Message = MutableMapping[str, Any]  # of ASGI, or a scope
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

HEARTBEAT = 20.0  # seconds of silence after which a stream sends something, so that proxies keep it
SLOW = 10.0  # seconds after which a client that takes nothing is dropped
# Of the pages that show what was published, so many are told in STEP seconds: all of them ask for
# their reader's dots.
AT_ONCE = 20
STEP = 0.1
# Milliseconds until a browser connects again: different ones, because all lose a server at once.
SOONEST, LATEST = 1_000, 10_000

STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would keep events back
]


class Client:
    """An open page, with what it is to be told."""

    def __init__(self, live_dots: LiveDots) -> None:
        self.live_dots = live_dots
        self.news: dict[str, int] = {}  # times (µs) by subject
        self.is_gone = False
        self._work = asyncio.Event()

    @property
    def watched(self) -> list[tuple[str, str]]:
        """Returns the prefix and the subject of each category that the page shows."""
        return [(self.live_dots.prefix, subject) for subject in self.live_dots.subjects]

    def take(self, publication: Publication) -> None:
        """Keeps the publication for the page. Of several in a category only the last one
        matters.
        """
        self.news[publication.subject] = publication.time
        self._work.set()

    def leave(self) -> None:
        """Ends the stream of the page."""
        self.is_gone = True
        self._work.set()

    async def next_text(self) -> bytes:
        """Waits for news. Returns them as an event, or a comment after HEARTBEAT seconds."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._work.wait(), HEARTBEAT)
        self._work.clear()
        if not self.news:
            return b":\n\n"
        news = self.live_dots.news(self.news)
        self.news = {}
        return f"data: {json.dumps(news)}\n\n".encode()


class Events:
    """The ASGI application of `with_events`. All of its clients share one subscription.

    The subscription begins with the first client and ends with the server. If it ended with the
    last client, one who comes and goes could begin hundreds of them.
    """

    def __init__(self, application: Application, *, most_clients: int) -> None:
        self._application = application
        self._most_clients = most_clients
        self._clients: set[Client] = set()
        self._watchers: dict[tuple[str, str], set[Client]] = {}
        self._waiting: dict[tuple[str, str], Publication] = {}  # that pages are still to be told of
        self._telling: asyncio.Task[None] | None = None
        self._subscription: Subscription | None = None
        self._is_closed = False
        self._hears_signals = False

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http" and _is_of_events(scope):
            await self._answer(scope, receive, send)
        else:
            await self._application(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Follows the start and the end of the server, which Django does not."""
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answers with the stream of a page, or with a refusal, after which the page polls."""
        live_dots = dots.parse(scope["query_string"].decode("latin-1"))
        if scope["method"] != "GET":
            await _refuse(send, status=405)
        elif live_dots is None:
            await _refuse(send, status=403)
        elif self._is_closed or len(self._clients) >= self._most_clients:
            await _refuse(send, status=503)
        else:
            await self._serve(Client(live_dots), receive, send)

    async def _serve(self, client: Client, receive: Receive, send: Send) -> None:
        """Sends the client its events until it leaves, is too slow, or the server ends."""
        self._add(client)
        disconnection = asyncio.ensure_future(_until_gone(client, receive))
        send_in_time = partial(_send_in_time, send)
        try:
            await send_in_time({"type": "http.response.start", "status": 200, "headers": STREAM})
            text = f"retry: {randint(SOONEST, LATEST)}\n\n".encode()  # noqa: S311 - no secret
            while not client.is_gone:
                await send_in_time({"type": "http.response.body", "body": text, "more_body": True})
                text = await client.next_text()
            await send_in_time({"type": "http.response.body"})
        except (asyncio.TimeoutError, OSError):
            pass  # a client that is slow, or gone without a word
        finally:
            disconnection.cancel()
            self._remove(client)

    def _add(self, client: Client) -> None:
        self._clients.add(client)
        for watched in client.watched:
            self._watchers.setdefault(watched, set()).add(client)
        self._hear_signals()
        if self._subscription is None:
            loop = asyncio.get_running_loop()
            take = partial(_call_in, loop, self._take)
            self._subscription = Subscription(take)
            self._subscription.start()

    def _remove(self, client: Client) -> None:
        self._clients.discard(client)
        for watched in client.watched:
            watchers = self._watchers[watched]
            watchers.discard(client)
            if not watchers:
                del self._watchers[watched]

    def _take(self, publication: Publication) -> None:
        """Has the pages told that show the category of the publication."""
        watched = (publication.prefix, publication.subject)
        if watched not in self._watchers:
            return
        self._waiting[watched] = publication
        if self._telling is None or self._telling.done():
            self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        """Tells the pages, AT_ONCE of them in each STEP."""
        pages_told = 0
        while self._waiting:
            watched = next(iter(self._waiting))
            publication = self._waiting.pop(watched)
            for client in tuple(self._watchers.get(watched, ())):
                client.take(publication)
                pages_told += 1
                if pages_told % AT_ONCE == 0:
                    await asyncio.sleep(STEP)

    def close(self) -> None:
        """Ends all streams, and takes no new ones."""
        self._is_closed = True
        if self._subscription is not None:
            self._subscription.end()
        for client in self._clients:
            client.leave()

    def _hear_signals(self) -> None:
        """Ends the streams at the signals that end a server, which would wait for them
        otherwise.
        """
        if self._hears_signals:
            return
        self._hears_signals = True
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            earlier_handler = signal.getsignal(number)
            if callable(earlier_handler):
                handler = partial(self._on_signal, loop, earlier_handler)
                with suppress(ValueError):  # in another thread than the main one
                    signal.signal(number, handler)

    def _on_signal(
        self,
        loop: asyncio.AbstractEventLoop,
        earlier_handler: Callable[[int, Any], Any],
        number: int,
        frame: Any,
    ) -> None:
        """Ends the streams, and lets the server handle the signal."""
        _call_in(loop, self.close)
        earlier_handler(number, frame)


def _is_of_events(scope: Message) -> bool:
    """Returns True for a request for the path of events."""
    events = options.events()
    path = scope["path"]
    # Some servers leave the path out below which they serve the site.
    return bool(events) and events in (path, scope.get("root_path", "") + path)


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> None:
    """Calls the function in the thread of the loop, unless the loop has ended."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *args)


async def _until_gone(client: Client, receive: Receive) -> None:
    """Ends the stream once its client closes the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    client.leave()


async def _send_in_time(send: Send, message: Message) -> None:
    """Sends the message. Raises asyncio.TimeoutError for a client that does not take it."""
    await asyncio.wait_for(send(message), SLOW)


async def _refuse(send: Send, *, status: int) -> None:
    """Sends an empty response. A browser does not connect again after it."""
    headers = [(b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body"})
