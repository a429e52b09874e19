"""A MariaDB server, if one is installed. There is no wheel of it."""

from __future__ import annotations

import shutil
from pathlib import Path

from demo_project.engines import private
from demo_project.engines.engine import Engine
from demo_project.engines.process import Child

# A statement on each line. The installation makes several accounts, all without a password.
PASSWORDS = """\
UPDATE mysql.global_priv SET priv = json_set(priv, '$.plugin', 'mysql_native_password', '$.authentication_string', password('{password}'));
FLUSH PRIVILEGES;
"""


def is_installed() -> bool:
    return shutil.which("mariadbd") is not None and shutil.which("mariadb-install-db") is not None


class MariaDB(Engine):
    """A server with the user `root`."""

    ready = "ready for connections"
    _is_initialised = False

    @property
    def url(self) -> str:
        return f"mysql://root:{self.password}@127.0.0.1:{self.port}/readtrack"

    def _spawn(self) -> Child:
        if not self._is_initialised:
            self._initialise()
        return self._server(
            [
                "mariadbd",
                "--no-defaults",
                f"--datadir={self.data}",
                f"--tmpdir={self.data}",
                f"--socket={self.data / 'mariadb.sock'}",
                f"--port={self.port}",
                "--bind-address=127.0.0.1",
                "--skip-name-resolve",
                "--innodb-flush-log-at-trx-commit=0",
                # Run before the first connection is served.
                f"--init-file={self._password_file()}",
            ]
        )

    def _password_file(self) -> Path:
        statements = PASSWORDS.format(password=self.password)
        return private.write(self.folder / "passwords.sql", statements, reader=self.user)

    def _initialise(self) -> None:
        options = [
            "--no-defaults",
            f"--datadir={self.data}",
            f"--tmpdir={self.data}",  # in a shared one, two installations remove each other's tables
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ]
        self._prepare(["mariadb-install-db", *options])
        self._is_initialised = True
