"""Runs `manage.py demo` as a person does: in a process of its own that prints where everything is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from demo_project.engines.process import free_port
from tests.demo.conftest import ROOT
from tests.support.waiting import ENOUGH

WORDS = ("--no-traffic",)
OURS = ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL")  # the suite's servers are not the demo's


class Process(NamedTuple):
    """A line of the process table."""

    pid: int
    parent: int
    session: int


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo that is ready."""

    process: subprocess.Popen[str]
    port: int
    folder: Path  # where all its temporary files are
    lines: dict[str, str]  # what it printed, by the word before the colon
    servers: dict[str, str]  # their URLs, by the name of the variable

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def comes_to_say(self, words: str) -> bool:
        """Returns True once it prints a line that begins so, False if it ends without."""
        assert self.process.stdout
        return any(line.startswith(words) for line in self.process.stdout)

    def end(self, number: signal.Signals) -> int:
        """Sends the signal. Returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=ENOUGH)

    def sessions(self) -> set[int]:
        """Returns the sessions of all processes that the demo started. Each child has one of its
        own.
        """
        family = {self.process.pid}
        table = processes()
        while more := {each.pid for each in table if each.parent in family} - family:
            family |= more
        return {each.session for each in table if each.pid in family}


def processes() -> list[Process]:
    """Returns the process table without zombies."""
    table = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in brackets may hold anything, blanks too.
            state, parent, _, session = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue  # ended meanwhile
        if state != "Z":
            table.append(Process(int(path.parent.name), int(parent), int(session)))
    return table


def command(*words: str, port: int) -> list[str]:
    return [sys.executable, "manage.py", "demo", *WORDS, "--port", str(port), *words]


def environment(folder: Path) -> dict[str, str]:
    """Returns this environment without the tests' servers, and with a flush every second."""
    env = {name: value for name, value in os.environ.items() if name not in OURS}
    own = {"FLUSH_EVERY": "1", "TMPDIR": str(folder), "READTRACK_DEMO_STATE": str(state(folder))}
    return env | own


def state(folder: Path) -> Path:
    """Returns the file that names the demo's servers, while it runs."""
    return folder / "demo.json"


@contextmanager
def running(*words: str, has_past: bool = False, redis_url: str = "") -> Iterator[Demo]:
    """Starts a demo and ends it, if the test has not."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # as root, its servers run as nobody
        port = free_port()
        process = subprocess.Popen(
            command(*words, *(() if has_past else ("--no-past",)), port=port),
            cwd=ROOT,
            env=environment(folder) | ({"REDIS_URL": redis_url} if redis_url else {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        with process:
            try:
                lines = introduction(process)
                yield Demo(process, port, folder, lines, json.loads(state(folder).read_text()))
            finally:
                process.terminate()


def introduction(process: subprocess.Popen[str]) -> dict[str, str]:
    """Returns the lines that the demo prints until it is ready, by the word before the colon."""
    assert process.stdout
    said = []
    for line in process.stdout:
        said.append(line)
        if line.startswith("Press Ctrl-C"):
            parts = (text.partition(":") for text in said)
            return {name: rest.strip() for name, colon, rest in parts if colon}
    raise AssertionError(f"The demo did not start:\n{''.join(said)}")
