"""The examination: a table of what is looked at, and what to say when the looking itself fails."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from django.db import Error
from django.utils.translation import gettext

from readtrack.doctor import agreement, findings, flushes, redis, settings
from readtrack.doctor.findings import Finding, Named, Order
from readtrack.store.connection import RedisError, misconfiguration
from readtrack.store.server import Refused, info


class Examination(NamedTuple):
    """One thing to look at, and whether it takes Redis or the database."""

    name: str
    look: Callable[[Order], Iterator[Finding]]
    needs_redis: bool = False
    needs_database: bool = False


EXAMINATIONS = (
    Examination("answer", redis.answers, needs_redis=True),
    Examination("version", redis.version, needs_redis=True),
    Examination("role", redis.role, needs_redis=True),
    Examination("eviction", redis.eviction, needs_redis=True),
    Examination("persistence", redis.persistence, needs_redis=True),
    Examination("scripts", redis.scripts, needs_redis=True),
    Examination("memory", redis.memory, needs_redis=True),
    Examination("timeouts", settings.timeouts),
    Examination("windows", settings.repeats),
    Examination("migrations", flushes.migrations, needs_database=True),
    Examination("beat", flushes.beat, needs_database=True),
    Examination("marks", agreement.marks, needs_redis=True),
    Examination("epoch", agreement.line, needs_redis=True, needs_database=True),
    Examination("drift", agreement.drift, needs_redis=True, needs_database=True),
)


def examine(*, sample: int, progress: Callable[[int], object] = lambda keys: None) -> Iterator[Named]:
    """Every finding, as it is made. What needs a server that does not answer is left out once that is said.

    `sample` is how many keys are measured and compared; `progress` is called with a number of keys just measured.
    """
    order = Order(sample, progress, {})
    if problem := misconfiguration():
        yield Named("answer", "error", *findings.misconfigured(problem))
    else:
        with suppress(RedisError):  # the first examination will say it
            order = order._replace(info=info())
    has_redis, has_database, has_tables = not problem, True, True
    for examination in EXAMINATIONS:
        if (examination.needs_redis and not has_redis) or (examination.needs_database and not has_database):
            continue
        try:
            for finding in examination.look(order):
                has_tables = has_tables and (examination.name, finding.level) != ("migrations", "error")
                yield Named(examination.name, *finding)
        except Refused as error:
            hint = gettext("Let Redis's user run it, or look at this by other means.")
            yield Named(examination.name, "note", gettext("Not looked at: %(error)s") % {"error": error}, hint)
        except RedisError as error:
            has_redis = False
            yield Named(examination.name, "error", *findings.redis_failed(error))
        except Error as error:
            has_database = False
            if has_tables:  # otherwise it is said already
                yield Named(examination.name, "error", *findings.database_failed(error))
