"""Where the running demo's servers are, for commands at another terminal; standard library only."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from demo_project.environment import ROOT


def path() -> Path:
    """The file that tells, in the checkout, where no other user can make it first.

    READTRACK_DEMO_STATE names another one: tests start demos beside the developer's.
    """
    other = os.environ.get("READTRACK_DEMO_STATE")
    return Path(other) if other else ROOT / ".venv" / "demo.json"


@contextmanager
def told(env: Mapping[str, str]) -> Iterator[bool]:
    """Tells while the block runs; gives whether it does, for another demo of this checkout may be
    the one that does.
    """
    file = _write(env)
    try:
        yield file is not None
    finally:
        if file:
            path().unlink(missing_ok=True)
            file.close()


def _write(env: Mapping[str, str]) -> IO[str] | None:
    """The file, written and locked until it is closed, however the process ends; None where that
    cannot be.
    """
    with suppress(OSError):
        path().parent.mkdir(exist_ok=True)
        file = _opened(os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.truncate()
            json.dump(dict(env), file)
            file.flush()
        except BaseException:
            file.close()
            raise
        return file
    return None


def known() -> dict[str, str]:
    """The environment of the demo that runs; empty when none does."""
    with suppress(OSError, ValueError), _opened(os.O_RDONLY) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return {str(name): str(value) for name, value in json.load(file).items()}
    return {}


def _opened(flags: int) -> IO[str]:
    """The file, which is nobody else's: others could send us to servers of theirs, or read a
    password.
    """
    number = os.open(path(), flags | os.O_NOFOLLOW, 0o600)
    if os.fstat(number).st_uid != os.getuid():
        os.close(number)
        raise PermissionError(path())
    return os.fdopen(number, "r+" if flags & os.O_RDWR else "r")
