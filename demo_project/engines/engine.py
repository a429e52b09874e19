"""What the servers have in common: a folder, a port, a password, and a life of start, stop, kill
and pause.
"""

from __future__ import annotations

import atexit
import os
import secrets
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
    """A server on a loopback port. It starts where its folder left off, so data outlive a stop.

    Every user of the machine can connect to the port, so the server asks for a password, which is
    in the URL. Configuration and log are in `folder`, where only we can write. The server writes
    into `data` only: started by root it runs as nobody, and any program that runs as nobody could
    plant links there. So nothing here opens or changes a file in `data`.
    """

    farewell = signal.SIGTERM
    ready = ""  # what the server writes into its log once it answers

    def __init__(self, *, port: int | None = None, password: str = "") -> None:
        """A password is drawn, unless one is given that other servers know."""
        self.user = unprivileged()
        self.folder = Path(tempfile.mkdtemp(prefix=f"readtrack-{type(self).__name__.lower()}-"))
        self.data = self.folder / "data"
        self.port = port or free_port()
        self.password = password or secrets.token_urlsafe(24)
        # The developer's other settings and secrets are not for a server.
        self.env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
        self._owner = os.getpid()
        self._child: Child | None = None
        atexit.register(self.close)
        self.data.mkdir(mode=0o700)
        if self.user:
            self.folder.chmod(0o711)  # so that the server reaches its data
            self._hand_over(self.data)

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
        """Stop for good and remove the folder."""
        if os.getpid() != self._owner:  # a forked process leaves through atexit too
            return
        atexit.unregister(self.close)
        self._end(self.farewell)
        # It follows no links, wherever they come from while it runs.
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """End it as a crash does, with SIGKILL."""
        self._end(signal.SIGKILL)

    def _spawn(self) -> Child:
        raise NotImplementedError

    def _server(self, command: list[str | Path]) -> Child:
        """Start the server's program, with a log."""
        return Child(
            command,
            log=self.folder / "server.log",
            env=self.env,
            folder=self.data,
            user=self.user,
            farewell=self.farewell,
            rubbish=self.folder,
        )

    def _prepare(self, command: list[str | Path]) -> None:
        """Run a program that makes the server's data. Raises ChildError when it fails."""
        child = Child(
            command,
            log=self.folder / "preparation.log",
            env=self.env,
            folder=self.data,
            user=self.user,
        )
        if child.wait() != 0:
            raise ChildError(f"{Path(command[0]).name} failed:\n{child.last_lines()}")

    def _started(self) -> Child:
        if self._child is None:
            raise ChildError(f"{type(self).__name__} is not started.")
        return self._child

    def _end(self, number: signal.Signals) -> None:
        if self._child:
            self._child.stop(number)
            self._child = None

    def _hand_over(self, path: Path) -> None:
        """Let the server's user own what we have just made for it."""
        if self.user:
            os.chown(path, self.user.pw_uid, self.user.pw_gid, follow_symlinks=False)

    def _wait_until_ready(self, child: Child) -> None:
        deadline = time.monotonic() + READY_WITHIN
        while self.ready not in child.output():
            if not child.is_running or time.monotonic() > deadline:
                self._end(signal.SIGKILL)
                raise ChildError(f"{type(self).__name__} did not start:\n{child.last_lines()}")
            time.sleep(0.01)
