"""Starts the demo, watches it, and ends every process of it."""

from __future__ import annotations

import http.client
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import NoReturn

from demo_project.engines.engine import Engine
from demo_project.engines.process import Child, ChildError, is_free
from demo_project.engines.valkey import Valkey
from demo_project.run.options import Options
from demo_project.run.services import ALONE, WEB, WORKER, Services
from demo_project.state import path, told

ANSWERS_WITHIN = 60.0  # seconds
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(options: Options) -> int:
    """Run the demo until it is interrupted, which is success, or something in it fails."""
    for number in STOPPING:
        signal.signal(number, interrupt)
    with ExitStack() as ends:
        try:
            watch(start(options, ends), lose_after=options.lose_after)
        except KeyboardInterrupt:
            say("\nStopping …")
            return 0
        except ChildError as failure:
            print(failure, file=sys.stderr)
            return 1


def interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """End the demo, once: a second Ctrl-C must not interrupt the stopping."""
    for each in STOPPING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def start(options: Options, ends: ExitStack) -> Services:
    """Everything, in the order in which one needs the other."""
    if not is_free(options.port):
        raise ChildError(f"Port {options.port} is in use; choose another with --port.")
    name = TemporaryDirectory(prefix="readtrack-demo-", ignore_cleanup_errors=True)
    with step("Starting the servers"):
        services = Services(options, folder=Path(ends.enter_context(name)), ends=ends)
    # The site and the worker start meanwhile. They have nothing to do before beat and the visitors.
    services.start(
        "site", command=[*WEB, "--port", str(options.port), "demo_project.wsgi:application"]
    )
    services.start("worker", command=[*WORKER, *ALONE])
    if options.has_past:
        with step("Making the tables, the posts and a year of views"):
            services.finish("fill")
    else:
        with step("Making the tables and the posts"):
            services.finish("fill", "--no-past")
    with step("Starting the site, the Celery worker and beat"):
        services.start("beat", command=services.beat())
        wait_for_site(services, port=options.port)
    if options.has_traffic:
        with step("Sending the simulated visitors"):
            url = f"http://127.0.0.1:{options.port}"
            services.start("traffic", command=["demo_project.traffic", "--url", url])
    is_told = ends.enter_context(told(services.own))
    introduce(services, port=options.port, is_told=is_told)
    return services


@contextmanager
def step(words: str) -> Iterator[None]:
    """Tell what is being done, and in the same line how long it took."""
    print(f"{words} … ", end="", flush=True)
    start = time.monotonic()
    try:
        yield
    except BaseException:
        print(flush=True)  # or the reason would stand in the middle of a line
        raise
    say(f"{time.monotonic() - start:.1f} s")


def wait_for_site(services: Services, *, port: int) -> None:
    """Return when the front page is there."""
    deadline = time.monotonic() + ANSWERS_WITHIN
    while (status := front_page(port)) != http.client.OK:
        check(services)
        if time.monotonic() > deadline:
            said = services.children["site"].last_lines()
            raise ChildError(f"The site does not answer (status {status}):\n{said}")
        time.sleep(0.1)


def front_page(port: int) -> int:
    """The status of the front page, 0 when nobody answers."""
    # Unlike urllib this knows no proxies, which could not reach us.
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/", headers={"User-Agent": "readtrack-demo-bot"})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def introduce(services: Services, *, port: int, is_told: bool) -> None:
    """Where to look."""
    prefix = services.own["REDIS_PREFIX"]
    say(f"\nSite:      http://127.0.0.1:{port}/")
    say(f"Admin:     http://127.0.0.1:{port}/admin/ (admin / admin)")
    say(f"Dashboard: http://127.0.0.1:{port}/admin/readtrack/dashboard/")
    say(f"Redis:     {without_password(services.redis_url)}")
    if prefix:
        say(f"Keys:      {prefix}* (removed at the start and at the end; no others are touched)")
    say(f"Database:  {without_password(services.database_url)}")
    if is_told:
        say("Doctor:    python3 manage.py readtrack doctor (or any command, at another terminal)")
    else:
        say(f"Doctor:    not here: {path()} is another demo's, or cannot be written")
    say("Press Ctrl-C to stop.")


def without_password(url: str) -> str:
    """The URL as it may stand on a screen others see."""
    return re.sub(r"(://[^:/@]*):[^/@]*@", r"\1:***@", url)


def watch(services: Services, *, lose_after: float | None) -> NoReturn:
    """Look after them until one fails or we are interrupted; kill Valkey once after so many
    seconds, if told to.
    """
    loss = None if lose_after is None else time.monotonic() + lose_after
    while True:
        if loss is not None and time.monotonic() >= loss:
            loss = None
            services.engines["Valkey"].kill()
        revive(services)
        check(services)
        time.sleep(0.5)


def revive(services: Services) -> None:
    """Start an empty Valkey in place of one that was killed: what its loss costs is part of what
    the demo shows.
    """
    valkey = services.engines.get("Valkey")
    if isinstance(valkey, Valkey) and not valkey.is_running:
        say("\nValkey was killed. An empty one takes its place …")
        valkey.restart(keep=False)
        say(
            "Valkey is back. Counts go on from what SQL stores; dots and the last seconds' views are lost."
        )


def check(services: Services) -> None:
    """Raise when something that should be running is not."""
    running: dict[str, Engine | Child] = {**services.engines, **services.children}
    for name, process in running.items():
        if not process.is_running:
            raise ChildError(f"The demo's {name} has ended:\n{process.last_lines()}")


def say(line: str) -> None:
    """Tell the person at the console, at once even through a pipe."""
    print(line, flush=True)
