"""`python -m tests.imports.victim`: imports a log for each line it reads, or takes it back, in a fork
that kills itself at a step.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

import django

# Whatever changes anything goes through one of these; its start and its end are steps.
FUNCTIONS = {"_exchange", "_pipelined", "_execute_with_wrappers", "_execute_command"}


def main() -> None:
    """Imports the log that a line names after the step and `import`, with other processes after
    `jobs`, or takes it back: `undo`.
    """
    django.setup()
    from readtrack.imports import ledger, undo, weblog

    weblog.LINES_AT_ONCE, ledger.VIEWS = 40, 10

    def work(words: str) -> object:
        command, path = words.split(" ", 1)
        if command == "undo":
            return undo.undo(path)
        return weblog.Importer(jobs=2 if command == "jobs" else 1).run([path])

    serve(work)


def serve(work: Callable[[str], object]) -> None:
    """Works on the rest of each line, in a fork that dies at the step that the line begins with.
    Prints exit codes.
    """
    from django.db import connections

    connections.close_all()
    for request in sys.stdin:
        step, rest = request.strip().split(" ", 1)
        if not (fork := os.fork()):
            try:
                sys.setprofile(Killer(int(step)))
                work(rest)
                sys.setprofile(None)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])}\n")
        sys.stdout.flush()


class Killer:
    """Counts the steps and kills this process at one of them."""

    def __init__(self, step: int) -> None:
        self.left = step

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if frame.f_code.co_name in FUNCTIONS and event in {"call", "return"}:
            self.left -= 1
            if not self.left:
                os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
