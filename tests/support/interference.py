"""Events that disturb a flush at any of its steps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.sql import SQL, Identifier
from redis import Redis

from tests.support.partitions import servers
from tests.support.wire import Moment, Wire

Dump = dict[str, bytes]


def dump(redis: Redis) -> Dump:
    """Returns a snapshot of Redis."""
    found: Dump = {}
    for client in servers(redis):
        found |= {
            key: client.execute_command("DUMP", key, NEVER_DECODE=True) for key in client.keys("*")
        }
    return {key: value for key, value in found.items() if value is not None}


def restore(redis: Redis, snapshot: Dump) -> None:
    """Replaces the data of Redis by the snapshot, as a restart does."""
    redis.flushdb()
    for key, value in snapshot.items():
        redis.restore(key, 0, value)


@contextmanager
def at_step(wire: Wire, trip: int, moment: Moment, deed: Callable[[], Any]) -> Iterator[list[int]]:
    """Calls `deed` once, at that round trip from now on, while the caller waits. The list then
    holds the trip.
    """
    done: list[int] = []
    target = wire.trips + trip

    def step(now: Moment, number: int) -> None:
        if (number, now) == (target, moment):
            wire.hook = None
            done.append(number)
            deed()

    wire.hook = step
    yield done
    wire.hook = None


@contextmanager
def shared_connections() -> Iterator[Callable[[Callable[[], Any]], Callable[[], Any]]]:
    """Wraps a function so that another thread can run it on this thread's database connections."""
    own = connections.all()
    for connection in own:
        connection.inc_thread_sharing()

    def sharing(deed: Callable[[], Any]) -> Callable[[], Any]:
        def do() -> None:
            for connection in own:
                connections[connection.alias] = connection
            deed()

        return do

    yield sharing
    for connection in own:
        connection.dec_thread_sharing()


@contextmanager
def database_down(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Ends all connections to the PostgreSQL database, and lets nobody in."""
    name = connection.settings_dict["NAME"]
    with _administrator(connection.settings_dict) as administrator:
        administrator.execute(
            SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(Identifier(name))
        )
        disconnect(connection.settings_dict)
        try:
            yield
        finally:
            administrator.execute(
                SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(Identifier(name))
            )
            connection.close()


def disconnect(options: dict[str, Any]) -> None:
    """Ends all connections to the PostgreSQL database, as a restart does."""
    with _administrator(options) as administrator:
        everybody = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        administrator.execute(everybody, [options["NAME"]])


def _administrator(options: dict[str, Any]) -> psycopg.Connection:
    """Connects to another database, whose connections are not ended."""
    address = {
        "host": options["HOST"],
        "port": options["PORT"],
        "user": options["USER"],
        "password": options["PASSWORD"],
    }
    return psycopg.connect(**address, dbname="postgres", autocommit=True)
