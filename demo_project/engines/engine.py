"""What the two servers have in common: a folder, a port, and a life of start, stop, kill and pause."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from demo_project.engines.process import Child, ChildError, free_port, is_free, unprivileged

if TYPE_CHECKING:
    from typing_extensions import Self

READY_WITHIN = 30.0  # seconds; a start takes well under one


class Engine:
    """A server on a loopback port. It starts where its folder left off, so data outlive a stop."""

    farewell = signal.SIGTERM

    def __init__(self, *, folder: Path | None = None, port: int | None = None) -> None:
        """A folder of one's own is kept at the end; as root it must be reachable by the user
        nobody.
        """
        self.user = unprivileged()
        self.folder = folder or Path(
            tempfile.mkdtemp(prefix=f"readtrack-{type(self).__name__.lower()}-")
        )
        self.port = port or free_port()
        self._rubbish = None if folder else self.folder
        self._owner = os.getpid()
        self._child: Child | None = None
        atexit.register(self.close)
        self._hand_over(self.folder)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.is_running

    @property
    def pid(self) -> int:
        """The server's process id, while it is started."""
        return self._started().pid

    def start(self) -> None:
        """Start the server and wait until it answers."""
        if self.is_running:
            return
        if not is_free(self.port):
            raise ChildError(f"{type(self).__name__}: port {self.port} is in use.")
        self._child = self._spawn()
        self._wait_until_ready(self._child)

    def pause(self) -> None:
        """Freeze the server: connections stay open and nothing is answered."""
        self._started().send(signal.SIGSTOP)

    def resume(self) -> None:
        self._started().send(signal.SIGCONT)

    def last_lines(self, count: int = 15) -> str:
        """The end of the server's log."""
        return self._started().last_lines(count)

    def close(self) -> None:
        """Stop for good and remove the folder, unless it was given."""
        if os.getpid() != self._owner:  # a forked process leaves through atexit too
            return
        atexit.unregister(self.close)
        self._end(self.farewell)
        if self._rubbish:
            shutil.rmtree(self._rubbish, ignore_errors=True)

    def kill(self) -> None:
        """End it as a crash does."""
        raise NotImplementedError

    def _spawn(self) -> Child:
        raise NotImplementedError

    def _is_ready(self, child: Child) -> bool:
        raise NotImplementedError

    def _started(self) -> Child:
        if self._child is None:
            raise ChildError(f"{type(self).__name__} is not started.")
        return self._child

    def _end(self, number: signal.Signals) -> None:
        if self._child:
            self._child.stop(number)
            self._child = None

    def _hand_over(self, path: Path) -> None:
        """Let the server's user own what we made for it."""
        if self.user:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def _wait_until_ready(self, child: Child) -> None:
        deadline = time.monotonic() + READY_WITHIN
        while not self._is_ready(child):
            if not child.is_running or time.monotonic() > deadline:
                self._end(signal.SIGKILL)
                raise ChildError(f"{type(self).__name__} did not start:\n{child.last_lines()}")
            time.sleep(0.01)
