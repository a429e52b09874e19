"""A relay in front of a real server. It counts round trips, can call a hook at each of them, and
can be cut.
"""

import selectors
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

Moment = Literal["request", "answer"]
Hook = Callable[[Moment, int], None]


class Wire:
    """A relay for one port. `url` is the server's URL with the relay's address."""

    def __init__(self, url: str, *, tls: ssl.SSLContext | None = None) -> None:
        """With `tls`, clients have to speak TLS, even if the server cannot."""
        parts = urlsplit(url)
        self._tls = tls
        self._server = (parts.hostname or "127.0.0.1", parts.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        credentials, at, _ = parts.netloc.rpartition("@")
        self.url = urlunsplit(parts._replace(netloc=f"{credentials}{at}127.0.0.1:{port}"))
        self.trips = 0
        # Called before a request, or the answer to it, is passed on, with the number of the trip.
        self.hook: Hook | None = None
        # Changes what is passed on as an answer.
        self.change: Callable[[bytes], bytes] | None = None
        self._is_cut = False
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @contextmanager
    def counted(self) -> Iterator[list[int]]:
        """Fills the list with the number of round trips made inside."""
        before, found = self.trips, list[int]()
        yield found
        found.append(self.trips - before)

    def cut(self) -> None:
        """Breaks every connection, and each new one at once, until `mend`."""
        self._break(is_cut=True)

    def drop(self) -> None:
        """Breaks every connection. New ones work."""
        self._break(is_cut=self._is_cut)

    def mend(self) -> None:
        """Lets new connections through, once a cut that another thread began has broken all old
        ones.
        """
        with self._lock:
            self._is_cut = False

    def _break(self, *, is_cut: bool) -> None:
        with self._lock:
            self._is_cut = is_cut
            for end in self._open:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def lead_to(self, port: int) -> None:
        """Leads new connections to another server, as a change of DNS does. Open connections stay."""
        self._server = (self._server[0], port)

    def close(self) -> None:
        self.hook = None
        self._listener.shutdown(socket.SHUT_RDWR)
        self.cut()
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            if self._is_cut:
                client.close()
                continue
            thread = threading.Thread(target=self._relay, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _relay(self, client: socket.socket) -> None:
        with suppress(OSError):
            client = self._tls.wrap_socket(client, server_side=True) if self._tls else client
        with client, suppress(OSError), socket.create_connection(self._server) as server:
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open |= {client, server}
            try:
                self._pass_on(client, server)
            finally:
                with self._lock:
                    self._open -= {client, server}

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        selector = selectors.DefaultSelector()
        for each in (client, server):
            selector.register(each, selectors.EVENT_READ, each)
        speaker = server
        with selector:
            while not self._is_cut:
                end: socket.socket = selector.select()[0][0].data
                data = end.recv(1 << 20)
                while isinstance(end, ssl.SSLSocket) and end.pending():
                    data += end.recv(1 << 20)
                if not data:
                    return
                if end is not speaker:
                    speaker = client if end is client else server
                    self._step(is_request=end is client)
                if end is server and self.change:
                    data = self.change(data)
                if not self._is_cut:
                    (server if end is client else client).sendall(data)

    def _step(self, *, is_request: bool) -> None:
        if is_request:
            self.trips += 1
        if self.hook:
            self.hook("request" if is_request else "answer", self.trips)
