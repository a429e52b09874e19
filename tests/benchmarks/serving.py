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
from typing import NamedTuple
from urllib.request import urlopen

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
UNTRACKED, BUFFERED, MOUNTED = "untracked", "buffered", "mounted"
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
    "gunicorn, gevent": f"gunicorn --worker-class gevent --workers 2 --bind 127.0.0.1:{{port}} {WSGI}",
    "gunicorn, gevent, preload": f"gunicorn --worker-class gevent --preload --bind 127.0.0.1:{{port}} {WSGI}",
    "uvicorn": f"uvicorn --port {{port}} --log-level warning {ASGI}",
}

_numbers = count()


class Run(NamedTuple):
    """What was measured while a server was asked for one page."""

    speed: float  # pages a second
    spent: float  # CPU time (µs) of a page, in all threads of the server


class Row(NamedTuple):
    """Medians of the runs of a variant and kind of visitor; shares are those of the untracked
    page.
    """

    name: str
    speed: float
    share: float
    least: str
    spent: float
    share_by_spent: float


def requests_a_second(cookies: Iterator[bytes]) -> Iterator[Row]:
    """Yields a row for each variant and kind of visitor.

    `cookies` are those of visitors who have one.
    """
    kinds = {"new visitors": repeat(b""), "with a cookie": cookies}
    others = [name for name in VARIANTS if name != UNTRACKED]
    found: dict[tuple[str, str], list[tuple[Run, Run]]] = {
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
                run(port, repeat(b""), page=b"post")  # warms up
            sleep(REST)
            for kind, cookie in kinds.items():
                # Each between two runs of the untracked page, because the machine's own speed
                # changes by the second.
                before = run(ports[UNTRACKED], cookie, page=b"post")
                for name in random.sample(others, len(others)):
                    if name == NAIVE:
                        own = run(ports[UNTRACKED], cookie, page=b"naive")
                    elif name == BUFFERED:
                        own = run(ports[name], cookie, page=b"post", rest=REST)
                    else:
                        own = run(ports[name], cookie, page=b"post")
                    after = run(ports[UNTRACKED], cookie, page=b"post")
                    between = Run(
                        speed=(before.speed + after.speed) / 2,
                        spent=(before.spent + after.spent) / 2,
                    )
                    found[kind, name].append((own, between))
                    found[kind, UNTRACKED].append((after, before))
                    before = after
    for (kind, name), runs in found.items():
        yield Row(
            name=f"{name}, {kind}",
            speed=median(own.speed for own, _ in runs),
            share=median(own.speed / bare.speed for own, bare in runs),
            least=VARIANTS[name],
            spent=median(own.spent for own, _ in runs),
            share_by_spent=median(bare.spent / own.spent for own, bare in runs),
        )


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


def run(port: int, cookies: Iterator[bytes], *, page: bytes, rest: float = 0) -> Run:
    """Asks the server for as many pages as it answers, each for another visitor.

    After `rest` seconds more, in which a buffer is sent, the server tells its processor time.
    """
    spent = processor_time(port)
    answered = 0
    answered_after_lead = 0
    start = perf_counter() + LEAD
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
                answered += 1
                if passed > 0:
                    answered_after_lead += 1
        for key in list(selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
    sleep(rest)
    return Run(
        speed=answered_after_lead / passed,
        spent=(processor_time(port) - spent) / answered * 1_000_000,
    )


def processor_time(port: int) -> float:
    """Returns the CPU seconds that the server's one worker took until now."""
    with urlopen(f"http://127.0.0.1:{port}/processor-time/") as answer:
        return float(answer.read())


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
