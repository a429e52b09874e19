"""Runs code as `python -c` does, in forks of a process that has imported Django: a tenth of the
time of a new one.

`python -m tests.support.forks` is that process.
"""

import faulthandler
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
SETTINGS = "DJANGO_SETTINGS_MODULE"
MOST = 120  # seconds, after which a fork that hangs tells where, and ends
# Imported where there are no settings yet; with settings, the apps are loaded, too.
COMMON = [
    "django.core.management.commands.migrate",
    "django.core.management.commands.runserver",
    "django.db.backends.sqlite3.base",
    "django.test.client",
    "django.test.runner",
    "django.template.defaulttags",
    "django.views.generic",
    "django_redis.client",
]


class Ended(NamedTuple):
    """Returned by `Forks.run`: the exit code, negative for a signal, and the standard output."""

    code: int
    output: str


class Forks:
    """The process, which ends with the block."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def __enter__(self) -> "Forks":
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "tests.support.forks"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=self._environment, stdin=pipe, stdout=pipe, text=True, bufsize=1
        )
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()

    def run(self, code: str, *words: str, folder: Path = ROOT, **environment: str) -> Ended:
        """Runs the code with these words on its command line, in that folder."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([code, words, str(folder), environment]) + "\n")
        answer: list[Any] = json.loads(self._process.stdout.readline())
        return Ended(*answer)


def main() -> None:
    """Runs the code of each line in a fork, which ends as any process does: its `atexit` functions
    are called.
    """
    if SETTINGS in os.environ:
        import django

        django.setup()
    else:
        for name in COMMON:
            importlib.import_module(name)
    faulthandler.register(signal.SIGALRM, chain=True)
    for line in sys.stdin:
        code, words, folder, environment = json.loads(line)
        with TemporaryFile("w+") as output:
            if not (fork := os.fork()):
                signal.alarm(MOST)
                os.dup2(output.fileno(), sys.stdout.fileno())
                os.environ.update(environment)
                os.chdir(folder)
                sys.argv = ["-c", *words]
                sys.path.insert(0, folder)
                exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
                return
            end = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])
            output.seek(0)
            sys.stdout.write(json.dumps([end, output.read()]) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
