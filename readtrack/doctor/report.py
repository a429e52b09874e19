"""Runs all examinations, and reports failures of the servers as findings."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from django.db import Error

from readtrack.doctor import flushes, redis
from readtrack.doctor.findings import Context, Finding, failure, finding
from readtrack.store import server
from readtrack.store.connection import RedisError, address, is_cluster, servers
from readtrack.store.server import RefusedError

BY_SERVER = (redis.version, redis.role, redis.eviction, redis.persistence)  # each server of a cluster has its own
REDIS, DATABASE = frozenset({"Redis"}), frozenset({"database"})

Examination = Callable[[Context], Finding | Iterable[Finding]]

# Functions that look at one thing each, in the order of the report, and the servers that they ask.
EXAMINATIONS: Mapping[Examination, frozenset[str]] = {
    redis.connection: REDIS,
    redis.version: REDIS,
    redis.role: REDIS,
    redis.eviction: REDIS,
    redis.persistence: REDIS,
    redis.scripts: REDIS,
    redis.timeouts: frozenset(),
    redis.addresses: REDIS,
    flushes.flushes: DATABASE,
    flushes.outbox: DATABASE,
    flushes.locks: DATABASE,
    flushes.totals: REDIS,
    flushes.drift: REDIS | DATABASE,
}


def examine(*, sample: int) -> Iterator[Finding]:
    """Yields the findings as they are made; once a server fails, other examinations of it are left out."""
    context, failed = Context(sample), set[str]()
    for look, needs in EXAMINATIONS.items():
        if needs & failed:
            continue
        name = look.__name__
        try:
            found = _each(look, context) if look in BY_SERVER and is_cluster() else look(context)
            yield from [found] if isinstance(found, Finding) else found
        except RefusedError as error:
            yield finding("refused.command", error)._replace(name=name)
        except (RedisError, Error) as error:
            failed |= REDIS if isinstance(error, RedisError) else DATABASE
            yield failure(error)._replace(name=name)


def _each(look: Examination, context: Context) -> Iterator[Finding]:
    """Yields the findings about the primaries of a cluster; one for those that are alike."""
    found: dict[Finding, list[str]] = {}
    for client in servers():
        own = context._replace(info=partial(server.info, client), configured=partial(server.configured, client=client))
        told = look(own)
        for one in [told] if isinstance(told, Finding) else told:
            found.setdefault(one, []).append(address(client))
    for one, places in found.items():
        yield one._replace(message=f"{', '.join(places)}: {one.message}")
