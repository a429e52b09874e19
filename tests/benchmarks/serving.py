"""Requests a second of a real server: granian with one worker, with the middleware and without it,
in turn.
"""

import os
import random
import selectors
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count, repeat
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter, sleep

from demo_project.engines.process import Child, free_port

LEAD, SECONDS = (
    0.5,
    1.0,
)  # of a run: before it is measured, so that buffers are sent at the rate at which they fill
ROUNDS = 15
CONNECTIONS = 16
# Without it granian begins 20 to 80 threads, as chance has it, and with 80 an untracked page takes
# a quarter longer.
POOL = {"GRANIAN_BLOCKING_THREADS": str(CONNECTIONS)}
UNTRACKED, BUFFERED = "untracked", "buffered"
BUFFER = 1  # seconds
REST = (
    BUFFER + 0.2
)  # seconds until the rest of a buffer is sent, which is no cost of the run that comes next
NAIVE = (
    "one INCR by redis-py"  # in the view of the untracked page: no page that asks Redis is faster
)
VARIANTS = {UNTRACKED: "", NAIVE: "", "tracked": "0.40", BUFFERED: "0.70"}  # and their least ratios
END = b"</title>"
WSGI, ASGI = "tests.benchmarks.served:application", "tests.benchmarks.served:asgi"
PROGRAMS = {
    "granian": f"granian --interface wsgi --workers 1 --port {{port}} --log-level warning {WSGI}",
    "granian, asgi": f"granian --interface asgi --port {{port}} --log-level warning {ASGI}",
    "gunicorn": f"gunicorn --workers 2 --bind 127.0.0.1:{{port}} {WSGI}",
    "gunicorn, threads": f"gunicorn --threads 4 --preload --bind 127.0.0.1:{{port}} {WSGI}",
    "uvicorn": f"uvicorn --port {{port}} --log-level warning {ASGI}",
}

_numbers = count()


def requests_a_second(cookies: Iterator[bytes]) -> Iterator[tuple[str, float, float, str]]:
    """Yields each variant and kind of visitor, its requests a second, their ratio to the untracked
    ones, and the least.

    `cookies` are those of visitors who have one.
    """
    kinds = {"new visitors": repeat(b""), "with a cookie": cookies}
    others = [name for name in VARIANTS if name != UNTRACKED]
    found: dict[tuple[str, str], list[tuple[float, float]]] = {
        (kind, name): [] for kind in kinds for name in VARIANTS
    }
    for _ in range(ROUNDS):
        # In new processes, because one may be a fifth faster than another of the same code for as
        # long as it runs.
        with ExitStack() as stack:
            ports = {
                name: stack.enter_context(Server(name, **POOL)).port
                for name in VARIANTS
                if name != NAIVE
            }
            for port in ports.values():
                speed(port, repeat(b""), page=b"post")  # warms up
            sleep(REST)
            for kind, cookie in kinds.items():
                # Each between two runs of the untracked page, because the machine's own speed
                # changes by the second.
                before = speed(ports[UNTRACKED], cookie, page=b"post")
                for name in random.sample(others, len(others)):
                    port, page = (
                        (ports[UNTRACKED], b"naive") if name == NAIVE else (ports[name], b"post")
                    )
                    own = speed(port, cookie, page=page)
                    if name == BUFFERED:
                        sleep(REST)
                    after = speed(ports[UNTRACKED], cookie, page=b"post")
                    found[kind, name].append((own, own / ((before + after) / 2)))
                    found[kind, UNTRACKED].append((after, after / before))
                    before = after
    for (kind, name), runs in found.items():
        speeds, ratios = zip(*runs, strict=True)
        yield f"{name}, {kind}", median(speeds), median(ratios), VARIANTS[name]


class Server:
    """A server of the pages of `served.py`."""

    def __init__(self, variant: str, *, program: str = "granian", **environment: str) -> None:
        self._environment = {**os.environ, "READTRACK_BENCHMARK": variant, **environment}
        self.port = free_port()
        self._command = [sys.executable, "-m", *PROGRAMS[program].format(port=self.port).split()]

    def __enter__(self) -> "Server":
        self._folder = tempfile.TemporaryDirectory()
        log = Path(self._folder.name) / "log"
        self.child = Child(self._command, log=log, env=self._environment, folder=Path.cwd())
        until = monotonic() + 30
        while monotonic() < until and self.child.is_running:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    return self
            except OSError:
                sleep(0.01)
        raise RuntimeError(f"granian did not start: {self.child.last_lines()}")

    def __exit__(self, *error: object) -> None:
        self.child.stop()
        self._folder.cleanup()


def speed(port: int, cookies: Iterator[bytes], *, page: bytes) -> float:
    """Returns the pages a second that the server answers, each to another visitor."""
    answered, start = 0, perf_counter() + LEAD
    with selectors.DefaultSelector() as selector:
        for _ in range(CONNECTIONS):
            connection = socket.create_connection(("127.0.0.1", port))
            selector.register(connection, selectors.EVENT_READ)
            connection.sendall(request(page, next(cookies)))
        while (passed := perf_counter() - start) < SECONDS:
            for key, _ in selector.select(1):
                connection = key.fileobj  # type: ignore[assignment]
                answer = connection.recv(65536)
                if not answer.endswith(END):
                    if not answer.startswith(b"HTTP/1.1 200"):
                        raise RuntimeError(f"The page does not work: {answer!r}")
                    continue  # the body comes in a segment of its own
                connection.sendall(request(page, next(cookies)))
                answered += passed > 0
        for key in list(selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
    return answered / passed


def request(page: bytes, cookie: bytes) -> bytes:
    """Returns a request as nginx passes it on."""
    number = next(_numbers)
    address = f"93.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    return HEAD % (page, address.encode(), b"Cookie: %s\r\n" % cookie if cookie else b"")


HEAD = (
    b"GET /%s/ HTTP/1.1\r\nHost: news.example\r\nAccept: text/html\r\nSec-Fetch-Dest: document\r\n"
    b"User-Agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    b"Chrome/142.0.0.0 Safari/537.36\r\nX-Forwarded-For: %s\r\n%s\r\n"
)
