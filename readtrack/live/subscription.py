"""Events: Redis tells each process that listens of publications as they happen.

What nobody hears is not kept. A reader's page finds out by its next poll.
"""

import re
from collections.abc import Callable
from random import choice, random
from threading import Event, Thread
from time import monotonic
from typing import NamedTuple

from readtrack.conf import logger
from readtrack.store import keys
from readtrack.store.channel import channel
from readtrack.store.connection import make
from readtrack.store.servers import SeveralServers

PAUSE = 1.0  # seconds after which a subscription looks if it is to end
# Seconds between two questions whether the connection is still there. After twice as many seconds
# without an answer it is given up.
PING = 10.0
AGAIN = 5.0  # seconds, at most, until a broken subscription is made again

# What publish.lua sends: the key with the time of the last publication, and that time.
MESSAGE = re.compile(f"(?P<prefix>.*?){keys.published.expression.pattern} (?P<time>[0-9]{{1,19}})")


class Publication(NamedTuple):
    """A publication that Redis tells of."""

    prefix: str  # of the keys of the site or the tenant
    subject: str  # of the category
    time: int  # µs by Redis's clock


def parse(message: str) -> Publication | None:
    """Returns the publication that a message tells of; None for a message that is not ours."""
    match = MESSAGE.fullmatch(message)
    if match is None:
        return None
    return Publication(match["prefix"], match["subject"], int(match["time"]))


class Subscription:
    """The subscription of this process, with a thread that waits for messages."""

    def __init__(self, take: Callable[[Publication], None]) -> None:
        """`take` is called with each publication, in the thread of the subscription."""
        self._take = take
        self._is_ended = Event()
        self._thread = Thread(target=self._run, name="readtrack events", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Lets the thread end within PAUSE seconds."""
        self._is_ended.set()

    def _run(self) -> None:
        """Listens until the end, and subscribes again after an error."""
        while not self._is_ended.is_set():
            try:
                self._listen()
            except Exception as error:  # of Redis or of its client: all pages share this thread
                logger.warning("Events of publications are interrupted: %s", error)
                # At different times, because all processes lose a server at the same moment.
                self._is_ended.wait(AGAIN * (0.5 + random() / 2))  # noqa: S311 - no secret

    def _listen(self) -> None:
        """Passes messages on until the end. Raises redis.RedisError and OSError."""
        client = make(2 * PING)
        server = client
        if isinstance(client, SeveralServers):  # each of them tells all messages
            server = choice(client.clients())  # noqa: S311
        with server.pubsub() as pubsub:  # type: ignore[no-untyped-call]
            pubsub.subscribe(channel())
            heard = asked = monotonic()
            while not self._is_ended.is_set():
                message = pubsub.get_message(timeout=PAUSE)
                now = monotonic()
                if message is not None:
                    heard = now
                    self._pass_on(message)
                if now - heard > 2 * PING:
                    raise ConnectionError("Redis does not answer")
                if now - asked > PING:
                    asked = now
                    pubsub.ping()

    def _pass_on(self, message: dict[str, object]) -> None:
        """Passes on the publication in a message, unless it is an answer of the server."""
        content = message["data"]
        if message["type"] != "message" or not isinstance(content, bytes):
            return
        publication = parse(content.decode(errors="replace"))
        if publication is not None:
            self._take(publication)
