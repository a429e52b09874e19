"""The examination: a table of what is looked at, and what to say when the looking itself fails."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from django.db import Error

from readtrack.doctor import flushing, server
from readtrack.doctor.findings import Finding, Named, Order
from readtrack.store.connection import RedisError
from readtrack.store.server import Refused, info

CHECK_SETTINGS = "Is it running, and does CACHES point at it? Run: manage.py check"


class Examination(NamedTuple):
    """One thing to look at, and whether it takes Redis or the database."""

    name: str
    look: Callable[[Order], Iterator[Finding]]
    needs_redis: bool = False
    needs_database: bool = False


EXAMINATIONS = (
    Examination("answer", server.answers, needs_redis=True),
    Examination("version", server.version, needs_redis=True),
    Examination("role", server.role, needs_redis=True),
    Examination("eviction", server.eviction, needs_redis=True),
    Examination("persistence", server.persistence, needs_redis=True),
    Examination("scripts", server.scripts, needs_redis=True),
    Examination("memory", server.memory, needs_redis=True),
    Examination("timeouts", server.timeouts),
    Examination("migrations", flushing.migrations, needs_database=True),
    Examination("beat", flushing.beat, needs_database=True),
    Examination("marks", flushing.marks, needs_redis=True),
    Examination("lineage", flushing.line, needs_redis=True, needs_database=True),
    Examination("drift", flushing.drift, needs_redis=True, needs_database=True),
)


def examine(*, sample: int, progress: Callable[[int], object] = lambda keys: None) -> Iterator[Named]:
    """Every finding, as it is made. What needs a server that does not answer is left out once that is said.

    `sample` is how many keys are measured and compared; `progress` is called with a number of keys just measured.
    """
    order = Order(sample, progress, {})
    with suppress(RedisError):  # the first examination will say it
        order = order._replace(info=info())
    has_redis = has_database = True
    for examination in EXAMINATIONS:
        if (examination.needs_redis and not has_redis) or (examination.needs_database and not has_database):
            continue
        try:
            for finding in examination.look(order):
                yield Named(examination.name, *finding)
        except Refused as error:
            hint = "Let Redis's user run it, or look at this by other means."
            yield Named(examination.name, "note", f"Not looked at: {error}", hint)
        except RedisError as error:
            has_redis = False
            yield Named(examination.name, "error", f"Redis failed: {type(error).__name__}: {error}", CHECK_SETTINGS)
        except Error as error:
            has_database = False
            hint = "Is it running, and does DATABASES point at it?"
            yield Named(examination.name, "error", f"The database failed: {str(error).strip()}", hint)
