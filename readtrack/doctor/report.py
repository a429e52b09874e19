"""The examinations in their order, and the report that goes through them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import Error

from readtrack.doctor import findings, measurements
from readtrack.doctor.findings import Finding
from readtrack.store import connection
from readtrack.store.cluster import Cluster

REDIS = frozenset({"redis"})
SQL = frozenset({"sql"})


@dataclass(frozen=True, slots=True)
class Examination:
    """One thing that is measured and judged. A finding has its name."""

    name: str
    measure: Callable[..., Any]
    judge: Callable[[Any], list[Finding]]
    asks: frozenset[str]  # REDIS, SQL or both; it is left out once one of them has failed
    is_by_server: bool = False  # each server of a cluster has its own answer


EXAMINATIONS = (
    Examination("connection", measurements.ping, findings.of_ping, REDIS),
    Examination("version", measurements.version, findings.of_version, REDIS, is_by_server=True),
    Examination("role", measurements.role, findings.of_role, REDIS, is_by_server=True),
    Examination("eviction", measurements.memory, findings.of_memory, REDIS, is_by_server=True),
    Examination(
        "persistence", measurements.persistence, findings.of_persistence, REDIS, is_by_server=True
    ),
    Examination("scripts", measurements.lua_scripts, findings.of_scripts, REDIS),
    Examination("addresses", measurements.addresses, findings.of_addresses, REDIS),
    Examination("flushes", measurements.flushes, findings.of_flushes, SQL),
    Examination("outbox", measurements.outbox, findings.of_outbox, SQL),
    Examination("locks", measurements.locks, findings.of_locks, SQL),
    Examination("totals", measurements.totals, findings.of_totals, REDIS),
    Examination("drift", measurements.drift, findings.of_drift, REDIS | SQL),
)


def examine() -> Iterator[Finding]:
    """Yields the findings as they are made. A server that fails is a finding, and asked no more."""
    failed: frozenset[str] = frozenset()
    for examination in EXAMINATIONS:
        if failed & examination.asks:
            continue
        try:
            found = _findings(examination)
        except connection.ResponseError as error:
            found = [findings.refusal(error)]
        except connection.RedisError as error:
            failed |= REDIS
            found = [findings.failure(error)]
        except Error as error:
            failed |= SQL
            found = [findings.failure(error)]
        for finding in found:
            yield finding._replace(name=examination.name)


def _findings(examination: Examination) -> list[Finding]:
    """Makes an examination. Raises redis.RedisError and django.db.Error."""
    if not examination.is_by_server:
        return examination.judge(examination.measure())
    # Servers with the same finding share it.
    clients: dict[Finding, list[Any]] = {}
    for client in connection.servers():
        for finding in examination.judge(examination.measure(client)):
            clients.setdefault(finding, []).append(client)
    if not isinstance(connection.connect(), Cluster):
        return list(clients)
    found = []
    for finding, own in clients.items():
        addresses = ", ".join(connection.address(client) for client in own)
        found.append(finding._replace(message=f"{addresses}: {finding.message}"))
    return found
