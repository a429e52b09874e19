"""Sends a request of HTTP within a time. `urllib` by itself waits so long for each read: a server
that sends one byte after the other would be waited for without an end.
"""

import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPSConnection
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import (
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    Request,
    build_opener,
)


def post(request: Request, *, seconds: float) -> str:
    """Sends the request. Returns why it failed; "" for an answer of success.

    Everything together takes so many seconds at most: to find the host, to connect, and the head of
    the answer. The body of the answer is not read. Raises OSError.
    """
    outcome: SimpleQueue[str | Exception] = SimpleQueue()
    calls = _Calls(seconds)
    # In a thread, because the system looks names up as long as it likes.
    work = partial(_put, outcome, partial(_answer, request, calls))
    Thread(target=work, name="readtrack-webhook", daemon=True).start()
    try:
        answer = outcome.get(timeout=seconds)
    except Empty:
        raise TimeoutError(f"no whole answer within {seconds:g} seconds") from None
    finally:
        calls.end()
    if isinstance(answer, Exception):
        raise answer
    return answer


def _put(outcome: "SimpleQueue[str | Exception]", work: Callable[[], str]) -> None:
    try:
        outcome.put(work())
    except Exception as error:  # the thread that waits raises it
        outcome.put(error)


def _answer(request: Request, calls: "_Calls") -> str:
    try:
        opener = build_opener(_NoRedirects, _Plain(calls), _Secure(calls))
        # Longer than the one who waits does, who ends the connections.
        with opener.open(request, timeout=2 * calls.seconds):
            return ""
    except HTTPError as error:
        with error:
            return f"HTTP {error.code}"


class _NoRedirects(HTTPRedirectHandler):
    """Makes an error of each redirect: another address was not chosen by the site."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class _Calls:
    """The connections of one request, which end with its time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds  # that the request may take
        self._is_over = Event()
        self._sockets: list[socket.socket] = []

    def end(self) -> None:
        """Ends the connections, and with them the thread that reads from them."""
        self._is_over.set()
        for connected in self._sockets:
            with suppress(OSError):  # it has ended
                connected.shutdown(socket.SHUT_RDWR)
            connected.close()

    def connection(self, kind: type[HTTPConnection], host: str, **options: Any) -> HTTPConnection:
        """Returns a connection of that kind to the host, which is not connected yet."""
        connection: Any = kind(host, **options)
        connection._create_connection = self._connected
        return connection  # type: ignore[no-any-return]

    def _connected(self, *args: Any, **options: Any) -> socket.socket:
        connected = socket.create_connection(*args, **options)
        # A second one of the same connection, because TLS takes the first one over.
        self._sockets.append(connected.dup())
        if self._is_over.is_set():
            self.end()
        return connected


class _Plain(HTTPHandler):
    """Opens URLs of http by connections that end in time."""

    def __init__(self, calls: _Calls) -> None:
        super().__init__()
        self._calls = calls

    def http_open(self, req: Request) -> Any:
        return self.do_open(partial(self._calls.connection, HTTPConnection), req)


class _Secure(HTTPSHandler):
    """Opens URLs of https by connections that end in time."""

    def __init__(self, calls: _Calls) -> None:
        super().__init__()
        self._calls = calls

    def https_open(self, req: Request) -> Any:
        return self.do_open(partial(self._calls.connection, HTTPSConnection), req)
