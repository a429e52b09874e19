"""A child process that cannot outlive us, and the port and the user it runs with."""

from __future__ import annotations

import os
import pwd
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from demo_project.engines import private

# Waits for our end of its standard input to close, which the kernel does however we die. Unlike
# Linux's PR_SET_PDEATHSIG it works on macOS, for processes started from a thread, and it can sweep
# the folder.
LIFELINE = 'read _; kill -s "$1" "$2"; sleep 1; kill -s KILL -- "-$2"; [ -z "$3" ] || exec "$4" -Ic "$5" "$3"'
# Not every `rm -rf` is safe from links that a server's user plants meanwhile.
SWEEP = "import shutil, sys; shutil.rmtree(sys.argv[1], ignore_errors=True)"

# Below the ports an operating system hands out by itself, and below 55000, where a cluster's bus
# still fits.
PORTS = range(20000, 32000)


class ChildError(RuntimeError):
    """A process did not start, or ended too early; the message holds what it said last."""


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with socket.socket() as candidate:
        # As servers do, so that connections still closing do not count as somebody listening.
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A free loopback port. No call gives it again while this process runs, not in another one
    either.
    """
    return next(port for port in random.sample(PORTS, 200) if is_free(port) and _claim(port))


def _claim(port: int) -> bool:
    """Hold the datagram port of the same number, which no server of ours uses; False if another
    process does.
    """
    with socket.socket(type=socket.SOCK_DGRAM) as claim:
        try:
            claim.bind(("127.0.0.1", port))
        except OSError:
            return False
        claim.detach()  # open as long as this process
    return True


def unprivileged() -> pwd.struct_passwd | None:
    """The user servers run as when we are root; None when we are not, and they run as ourselves."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


class Child:
    """One process of ours: in a session of its own, its output in a file, gone when we are gone."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
        user: pwd.struct_passwd | None = None,
        farewell: signal.Signals = signal.SIGTERM,
        rubbish: Path | None = None,
    ) -> None:
        """Start it in `folder`. Should we be killed, it gets the farewell signal and the rubbish is
        removed. The log is in a folder that only we can write to.
        """
        self.log = log
        with private.append(log) as output:
            self._begin = output.seek(0, os.SEEK_END)  # of its own output in the log
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # a Ctrl-C at the terminal is ours to pass on
                user=user and user.pw_uid,
                group=user and user.pw_gid,
                extra_groups=user and [],
            )
        self.pid = self._process.pid
        self._lifeline = subprocess.Popen(
            [
                "/bin/sh",
                "-c",
                LIFELINE,
                "lifeline",
                farewell.name[3:],
                str(self.pid),
                str(rubbish or ""),
                sys.executable,
                SWEEP,
            ],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens when the process has ended."""
        self._process.send_signal(number)

    def wait(self) -> int:
        """The exit code, once the process has ended by itself."""
        code = self._process.wait()
        self.kill()
        return code

    def stop(self, number: signal.Signals = signal.SIGTERM, *, grace: float = 10) -> None:
        """Ask it to end, and kill what is left after the grace, in seconds."""
        self.send(number)
        self.send(signal.SIGCONT)  # a paused process would not hear the request
        self.end(grace=grace)

    def end(self, *, grace: float) -> None:
        """Give a process that was asked to end the grace, in seconds, and kill what is left."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace)
        self.kill()

    def kill(self) -> None:
        """End it and every process it started in its session, at once."""
        with suppress(
            ProcessLookupError, PermissionError
        ):  # macOS refuses where only zombies are left
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._lifeline.kill()
        self._lifeline.communicate()

    def output(self) -> str:
        """What it has written so far."""
        return private.read(self.log, begin=self._begin)

    def last_lines(self, count: int = 15) -> str:
        """The end of its output."""
        return "\n".join(private.read(self.log).splitlines()[-count:])
