"""Runs all examinations, and reports failures of the servers as findings."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from django.db import Error

from readtrack.doctor import agreement, flushes, redis
from readtrack.doctor.findings import Context, Finding, failure, misconfigured
from readtrack.store.connection import RedisError, misconfiguration
from readtrack.store.server import RefusedError, info

REDIS, DATABASE = frozenset({"Redis"}), frozenset({"database"})


class Examination(NamedTuple):
    """One thing to look at, and the servers that it asks."""

    name: str
    look: Callable[[Context], Iterator[Finding]]
    needs: frozenset[str] = frozenset()


EXAMINATIONS = (
    Examination("connection", redis.connection, REDIS),
    Examination("version", redis.version, REDIS),
    Examination("role", redis.role, REDIS),
    Examination("eviction", redis.eviction, REDIS),
    Examination("persistence", redis.persistence, REDIS),
    Examination("scripts", redis.scripts, REDIS),
    Examination("memory", redis.memory, REDIS),
    Examination("timeouts", redis.timeouts),
    Examination("windows", redis.windows),
    Examination("migrations", flushes.migrations, DATABASE),
    Examination("flushes", flushes.flushes, DATABASE),
    Examination("unsettled", agreement.unsettled, REDIS),
    Examination("epoch", agreement.epoch, REDIS | DATABASE),
    Examination("drift", agreement.drift, REDIS | DATABASE),
)


def examine(*, sample: int, progress: Callable[[int], object] = int) -> Iterator[Finding]:
    """Yields the findings as they are made. Examinations of a server that failed are left out from then on.

    `sample` limits the keys to measure and the totals to compare. `progress` is called with a number of keys measured.
    """
    context, failed, has_tables = Context(sample, progress, {}), set[str](), True
    if problem := misconfiguration():
        failed |= REDIS
        yield misconfigured(problem)._replace(name="connection")
    else:
        with suppress(RedisError):  # the first examination will report it
            context = context._replace(info=info())
    for name, look, needs in EXAMINATIONS:
        if needs & failed:
            continue
        try:
            for finding in look(context):
                has_tables = has_tables and (name, finding.level) != ("migrations", "error")
                yield finding._replace(name=name)
        except RefusedError as error:
            yield Finding("note", f"Not examined: {error}", "Let the Redis user run it, or look at it yourself.", name)
        except RedisError as error:
            failed |= REDIS
            yield failure(error)._replace(name=name)
        except Error as error:
            failed |= DATABASE
            if has_tables:  # otherwise the missing migration is reported already
                yield failure(error)._replace(name=name)
