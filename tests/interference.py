"""What can happen to a flush from outside, at any of its steps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections
from redis import Redis

from tests.wire import Moment, Wire

Dump = dict[str, bytes]


def dump(redis: Redis) -> Dump:
    """What a snapshot of Redis holds."""
    found = {key: redis.execute_command("DUMP", key, NEVER_DECODE=True) for key in redis.keys("*")}
    return {key: value for key, value in found.items() if value is not None}


def restore(redis: Redis, snapshot: Dump) -> None:
    """A restart of Redis from a snapshot: what came later is lost."""
    redis.flushdb()
    for key, value in snapshot.items():
        redis.restore(key, 0, value)


@contextmanager
def at_step(wire: Wire, trip: int, moment: Moment, deed: Callable[[], Any]) -> Iterator[list[int]]:
    """Does the deed once, at that round trip from now on, while who made the trip waits. Fills the list when done."""
    done: list[int] = []
    target = wire.trips + trip

    def step(now: Moment, number: int) -> None:
        if (number, now) == (target, moment):
            wire.hook = None
            deed()
            done.append(number)

    wire.hook = step
    yield done
    wire.hook = None


@contextmanager
def shared_connections() -> Iterator[Callable[[Callable[[], Any]], Callable[[], Any]]]:
    """Wraps what another thread is to do while this one waits, on this one's database connections."""
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
