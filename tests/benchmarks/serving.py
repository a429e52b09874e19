"""Requests a second of a real server: granian with one worker, with the middleware and without it, in turn."""

import os
import selectors
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter

from demo_project.engines.process import Child, free_port

SECONDS = 1.0  # of a round
ROUNDS = 9
CONNECTIONS = 16
VARIANTS = {"untracked": ("", ""), "tracked": ("tracked", "0.40")}
END = b"</title>"

_numbers = count()


def requests_a_second() -> Iterator[tuple[str, tuple[float, float], str]]:
    """Yields each variant, its requests a second and their ratio to those of the untracked page, and the least one."""
    speeds: dict[str, list[float]] = {name: [] for name in VARIANTS}
    with ExitStack() as stack:
        ports = {name: stack.enter_context(Server(variant)).port for name, (variant, _) in VARIANTS.items()}
        for _ in range(ROUNDS):
            for name, port in ports.items():
                speeds[name].append(speed(port))
    base = speeds["untracked"][1:]  # the first round only warms up
    for name, (_, least) in VARIANTS.items():
        found = speeds[name][1:]
        yield name, (median(found), median(one / other for one, other in zip(found, base, strict=True))), least


class Server:
    """A granian that serves one page of `served.py`."""

    def __init__(self, variant: str) -> None:
        self._variant = variant
        self.port = free_port()

    def __enter__(self) -> "Server":
        command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--host", "127.0.0.1", "--workers", "1"]
        command += ["--port", str(self.port), "--log-level", "warning", "tests.benchmarks.served:application"]
        self._folder = tempfile.TemporaryDirectory()
        self._child = Child(
            command,
            log=Path(self._folder.name) / "log",
            env={**os.environ, "READTRACK_BENCHMARK": self._variant},
            folder=Path.cwd(),
        )
        until = monotonic() + 30
        while monotonic() < until and self._child.is_running:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    return self
            except OSError:
                pass
        raise RuntimeError(f"granian did not start: {self._child.last_lines()}")

    def __exit__(self, *error: object) -> None:
        self._child.stop()
        self._folder.cleanup()


def speed(port: int) -> float:
    """Returns the pages a second that the server answers, of visitors whom nobody has seen before."""
    answered = 0
    with selectors.DefaultSelector() as selector:
        for _ in range(CONNECTIONS):
            connection = socket.create_connection(("127.0.0.1", port))
            selector.register(connection, selectors.EVENT_READ)
            connection.sendall(request())
        start = perf_counter()
        while (passed := perf_counter() - start) < SECONDS:
            for key, _ in selector.select(1):
                connection = key.fileobj  # type: ignore[assignment]
                answer = connection.recv(65536)
                if not answer.endswith(END):
                    if not answer.startswith(b"HTTP/1.1 200"):
                        raise RuntimeError(f"The page does not work: {answer!r}")
                    continue  # the body comes in a segment of its own
                connection.sendall(request())
                answered += 1
        for key in list(selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
    return answered / passed


def request() -> bytes:
    """Returns a request as nginx passes it on."""
    number = next(_numbers)
    address = f"93.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    return HEAD % address.encode()


HEAD = (
    b"GET /post/ HTTP/1.1\r\nHost: news.example\r\nAccept: text/html\r\nSec-Fetch-Dest: document\r\n"
    b"User-Agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    b"Chrome/142.0.0.0 Safari/537.36\r\nX-Forwarded-For: %s\r\n\r\n"
)
