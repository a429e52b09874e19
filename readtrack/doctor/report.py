"""The examinations of the doctor in their order, and the function that makes them."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import Error

from readtrack.doctor import findings, measurements
from readtrack.doctor.findings import Finding
from readtrack.store import connection
from readtrack.store.servers import SeveralServers

# The sets of servers that an examination may ask.
REDIS = frozenset({"redis"})
SQL = frozenset({"sql"})
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Examination:
    """One thing that is measured and judged."""

    name: str  # its findings have it, too
    measure: Callable[..., Any]  # returns a value of `measurements`
    judge: Callable[[Any], list[Finding]]  # takes that value
    asks: frozenset[str]  # REDIS, SQL or both; it is left out once one of them has failed
    is_by_server: bool = False  # True to ask each server of a cluster; `measure` takes its client


EXAMINATIONS = (
    Examination("connection", measurements.ping, findings.of_ping, REDIS),
    Examination("clock", measurements.clocks, findings.of_clocks, REDIS),
    Examination("version", measurements.version, findings.of_version, REDIS, is_by_server=True),
    Examination("role", measurements.role, findings.of_role, REDIS, is_by_server=True),
    Examination("eviction", measurements.memory, findings.of_memory, REDIS, is_by_server=True),
    Examination(
        "persistence", measurements.persistence, findings.of_persistence, REDIS, is_by_server=True
    ),
    Examination("scripts", measurements.lua_scripts, findings.of_scripts, REDIS),
    Examination("keys", measurements.layout_of_keys, findings.of_keys, REDIS),
    Examination("tables", measurements.tables, findings.of_tables, SQL),
    Examination("parts", measurements.installed_parts, findings.of_parts, SQL),
    Examination("connections", measurements.shortage, findings.of_shortage, REDIS),
    Examination("addresses", measurements.addresses, findings.of_addresses, REDIS),
    Examination("flushes", measurements.flushes, findings.of_flushes, SQL),
    Examination("schedule", measurements.schedule, findings.of_schedule, NOTHING),
    Examination("outbox", measurements.outbox, findings.of_outbox, SQL),
    Examination("read state", measurements.read_state_copies, findings.of_read_state, REDIS | SQL),
    Examination("locks", measurements.locks, findings.of_locks, SQL),
    Examination("pooler", measurements.pooler, findings.of_pooler, SQL),
    Examination("totals", measurements.totals, findings.of_totals, REDIS),
    Examination("drift", measurements.drift, findings.of_drift, REDIS | SQL),
)


def examine(names: Collection[str] = ()) -> Iterator[Finding]:
    """Yields the findings, each as soon as it is made; with names, those of these examinations.

    If Redis or SQL fails, that is a finding, and no further examination asks it.
    """
    failed: frozenset[str] = frozenset()
    for examination in _chosen(names):
        if failed & examination.asks:
            continue
        try:
            results = _results(examination)
        except connection.ResponseError as error:
            if examination.name == "connection" and findings.names_no_database(error):
                failed |= REDIS
            results = [findings.refusal(error)]
        except connection.RedisError as error:
            failed |= REDIS
            results = [findings.failure(error)]
        except Error as error:
            failed |= SQL
            results = [findings.failure(error)]
        for finding in results:
            yield finding._replace(name=examination.name)


def _chosen(names: Collection[str]) -> list[Examination]:
    """Returns the examinations with these names, in their order; all without names."""
    return [examination for examination in EXAMINATIONS if not names or examination.name in names]


def _results(examination: Examination) -> list[Finding]:
    """Returns the findings of one examination. Raises redis.RedisError and django.db.Error.

    A finding about several servers of a cluster comes once, with the addresses of these servers.
    """
    if not examination.is_by_server:
        return examination.judge(examination.measure())
    clients_by_finding: dict[Finding, list[Any]] = {}
    for client in connection.servers():
        for finding in examination.judge(examination.measure(client)):
            clients_by_finding.setdefault(finding, []).append(client)
    if not isinstance(connection.connect(), SeveralServers):
        return list(clients_by_finding)
    results = []
    for finding, clients in clients_by_finding.items():
        addresses = ", ".join(connection.address(client) for client in clients)
        results.append(finding._replace(message=f"{addresses}: {finding.message}"))
    return results
