"""Debian's PgBouncer between Django and PostgreSQL, which hands out connections for a transaction."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Barrier, Thread

import pytest
from django.db import connection, transaction

from demo_project.engines import private
from demo_project.engines.engine import Engine
from demo_project.engines.process import Child

SERVER_CONNECTIONS = 2
CONFIGURATION = """\
[databases]
* = host={server[HOST]} port={server[PORT]}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = transaction
default_pool_size = {connections}
; Takes the one that was used the longest time ago, so that two transactions in a row have different ones.
server_round_robin = 1
"""


class PgBouncer(Engine):
    """A pool of connections to the server of Django's default database."""

    ready = "process up"

    def _spawn(self) -> Child:
        server = connection.settings_dict
        user, password = server["USER"], server["PASSWORD"]
        users = private.write(
            self.folder / "users.txt", f'"{user}" "{password}"\n', reader=self.user
        )
        configuration = CONFIGURATION.format(
            server=server, port=self.port, users=users, connections=SERVER_CONNECTIONS
        )
        path = private.write(self.folder / "pgbouncer.ini", configuration, reader=self.user)
        return self._server([_program(), path])


@contextmanager
def pooled() -> Iterator[None]:
    """Leads Django's default database through PgBouncer. Skips the test where there is none, save
    in CI.
    """
    if not _program():
        reason = "no PgBouncer on this machine (Debian: apt install pgbouncer)"
        pytest.fail(reason) if os.environ.get("READTRACK_CI") else pytest.skip(reason)
    # The dictionary is that of the connections of all threads.
    settings = connection.settings_dict
    direct = dict(settings)
    with PgBouncer() as pool:
        connection.close()
        settings.update(PORT=pool.port, DISABLE_SERVER_SIDE_CURSORS=True)
        try:
            _open_all()
            yield
        finally:
            connection.close()
            settings.clear()
            settings.update(direct)


def _open_all() -> None:
    """Has PgBouncer open all its connections: by as many transactions at the same time."""
    together = Barrier(SERVER_CONNECTIONS)

    def begin() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SELECT 1")
                together.wait(30)
        finally:
            connection.close()

    threads = [Thread(target=begin) for _ in range(SERVER_CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _program() -> str:
    return shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin") or ""
