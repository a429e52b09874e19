"""A MariaDB server, if one is installed. There is no wheel of it."""

from __future__ import annotations

import shutil
import signal
import socket
from pathlib import Path

from demo_project.engines.engine import Engine
from demo_project.engines.process import Child, ChildError


def is_installed() -> bool:
    return shutil.which("mariadbd") is not None and shutil.which("mariadb-install-db") is not None


class MariaDB(Engine):
    """A server with the user `root`, without a password."""

    @property
    def url(self) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/readtrack"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _spawn(self) -> Child:
        if not self.data.exists():
            self._initialise()
        return Child(
            [
                "mariadbd",
                "--no-defaults",
                f"--datadir={self.data}",
                f"--socket={self.folder / 'mariadb.sock'}",
                f"--port={self.port}",
                "--bind-address=127.0.0.1",
                "--skip-name-resolve",
                "--innodb-flush-log-at-trx-commit=0",
            ],
            log=self.folder / "mariadb.log",
            folder=self.folder,
            user=self.user,
            farewell=signal.SIGTERM,
            rubbish=self._rubbish,
        )

    def _initialise(self) -> None:
        options = [
            "--no-defaults",
            f"--datadir={self.data}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ]
        command = Child(
            ["mariadb-install-db", "--no-defaults", *options],
            log=self.folder / "install.log",
            folder=self.folder,
            user=self.user,
        )
        if command.wait() != 0:
            raise ChildError(f"mariadb-install-db failed:\n{command.last_lines()}")

    def _is_ready(self, child: Child) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0
