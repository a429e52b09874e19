"""What tests of imports share: a log to write, and a process that dies while it imports one."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.imports import weblogs
from tests.support.addresses import database_url

Write = Callable[..., str]


class Victim:
    """A process that imports and kills itself at a given step."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.imports.victim"],
            env={
                **os.environ,
                "DATABASE_URL": database_url(),
                "DJANGO_SETTINGS_MODULE": "tests.settings",
            },
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, path: str, *, step: int, command: str = "import") -> int:
        """Imports the log, or takes it back by `undo`, and dies at that step. Returns the exit code,
        negative for a signal.
        """
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{step} {command} {path}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def log(*lines: str, name: str = "access.log", packed: bool = False) -> str:
        return weblogs.write(tmp_path / name, lines, packed=packed)

    return log


@pytest.fixture
def victim() -> Iterator[Victim]:
    process = Victim()
    yield process
    process.close()
