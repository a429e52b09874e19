"""Examines the Redis server, what web processes noted in it, and the flushes; a failing server is a finding, too."""

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from django.db import Error
from django.db.models import Count, Min

from readtrack import buckets, unread
from readtrack.checks.setup import texts
from readtrack.conf import conf
from readtrack.hits.addresses import NOTICES
from readtrack.models import FlushRun, UnsentPublication
from readtrack.sql import databases, row_counts, runs
from readtrack.store import counters, server
from readtrack.store.connection import (
    CLUSTER_FACTORY,
    AuthenticationError,
    RedisError,
    UnusableError,
    address,
    check_configuration,
    is_cluster,
    servers,
)
from readtrack.store.keys import DAY, HOUR, MINUTE
from readtrack.store.lifecycle import LayoutError
from readtrack.store.server import RefusedError
from readtrack.store.skips import skips_by_reason
from readtrack.subjects import rows_by_model, tracked_models

OLDEST = (6, 2)
SLOW = 0.005  # seconds for a PING; above it a view costs more than the queries of most pages
NEARLY_FULL = 0.9  # of maxmemory
SHOWN = 3  # subjects
SAMPLE = 1_000  # totals that are compared with SQL, at most
STATEMENT = 200  # characters of a statement that are shown
UNITS = ((DAY, "days"), (HOUR, "h"), (MINUTE, "min"), (1, "s"))
REMEMBERED = timedelta(hours=1)  # for which the minute buckets hold the views of each subject


class Finding(NamedTuple):
    """One result of an examination. The hint says what to do."""

    level: str  # ok, note, warning or error
    message: str
    hint: str
    name: str  # of the examination


def duration(time: timedelta) -> str:
    """Returns `75 s`, `3 h`: rounded down, in the largest unit of which there are two or more."""
    seconds = max(0, round(time.total_seconds()))
    length, unit = next((pair for pair in UNITS if seconds >= 2 * pair[0]), UNITS[-1])
    return f"{seconds // length} {unit}"


def size(count: float) -> str:
    """Returns a number of bytes as `89 B`, `12.0 KB`, `2.1 GB`."""
    for unit in ("B", "KB", "MB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} GB"


def counted(count: int, noun: str) -> str:
    """Returns `1 key`, `2,000 keys`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def finding(name: str, *words: Any) -> Finding:
    """Returns the finding of that name in messages.ini, `examination.result`, with its words."""
    section = texts(name, "readtrack.doctor")
    message, hint = (section.get(key, "").format(*words) for key in ("message", "hint"))
    return Finding(section["level"], message, hint, name.partition(".")[0])


def failure(error: RedisError | Error) -> Finding:
    """Returns the finding for a cache that is no Redis, or a server that does not answer or refuses to."""
    kinds = {LayoutError: "layout", UnusableError: "unusable", Error: "database", AuthenticationError: "password"}
    kind = next((kind for of, kind in kinds.items() if isinstance(error, of)), "redis")
    where = address() if kind == "redis" else ""
    return finding(f"failure.{kind}", str(error).strip(), conf.CACHE, type(error).__name__, where)


def connection() -> Finding:
    """Measures how long a page waits for an answer."""
    check_configuration()
    took = server.ping()
    return finding("connection.slow" if took > SLOW else "connection.ok", took * 1000)


def version(client: Any) -> Finding:
    """Examines whether the server knows the commands that the scripts call."""
    info = client.info()
    # Valkey also names a version of Redis, which is not its own.
    name = "Valkey" if "valkey_version" in info else "Redis"
    found = str(info.get(f"{name.lower()}_version", ""))
    if not found:
        return finding("version.unknown")
    is_old = tuple(int(part) for part in found.split(".")[:2]) < OLDEST
    return finding("version.old" if is_old else "version.ok", name, found)


def role(client: Any) -> Finding:
    """Examines whether the server takes writes and holds all keys."""
    info = client.info()
    is_in_cluster, replicas = int(info.get("cluster_enabled", 0)) > 0, int(info.get("connected_slaves", 0))
    if is_in_cluster and not is_cluster():
        return finding("role.cluster", conf.CACHE, CLUSTER_FACTORY)
    if info.get("role") == "slave":
        return finding("role.replica", conf.CACHE)
    kind = "ok"
    if is_in_cluster and not replicas:
        kind = "alone"
    elif is_in_cluster and server.configured("cluster-require-full-coverage", client) == "yes":
        kind = "covering"
    return finding(f"role.{kind}", counted(replicas, "replica"))


def eviction(client: Any) -> Finding:
    """Examines whether Redis deletes counts when its memory is full."""
    info = client.info()
    policy = str(info.get("maxmemory_policy", ""))
    limit, used = int(info.get("maxmemory", 0)), int(info.get("used_memory", 0))
    kind = "full" if limit and used > limit * NEARLY_FULL else "ok"
    if policy != "noeviction":
        kind = "unknown" if not policy else "all" if policy.startswith("allkeys") else "some"
    return finding(f"eviction.{kind}", policy, size(used), size(limit))


def persistence(client: Any) -> Iterator[Finding]:
    """Examines what is left after a restart of Redis."""
    info = client.info()
    failed = {"rdb_last_bgsave_status": "dump (RDB)", "aof_last_write_status": "write to the log (AOF)"}
    for field, what in failed.items():
        if info.get(field, "ok") != "ok":
            yield finding("persistence.failed", what)
    saves = server.configured("save", client)
    if info.get("aof_enabled"):
        yield finding("persistence.log")
    elif saves:
        yield finding("persistence.dumps", saves)
    else:
        yield finding("persistence.unknown" if saves is None else "persistence.none")


def scripts() -> Finding:
    """Examines whether the Redis user may run the Lua scripts."""
    try:
        server.try_scripts()
    except server.RefusedError as error:
        return finding("scripts.refused", error)
    return finding("scripts.ok")


def addresses() -> Iterable[Finding]:
    """Reports what the web processes noticed about the addresses of new visitors."""
    found = skips_by_reason(24, at=buckets.now())
    noticed = [finding("addresses.shared", NOTICES[notice]) for notice in NOTICES if found[notice]]
    return noticed or [finding("addresses.ok")]


def flushes() -> Iterator[Finding]:
    """Examines when flushes ran, how they ended and how long they took."""
    now, last, good = buckets.now(), FlushRun.objects.first(), runs.last_good()
    if last is None:
        yield finding("flushes.none")
        return
    if last.error:
        yield finding("flushes.failed", last.error)
    if good is None:
        yield finding("flushes.never")
        return
    age, interval = now - good.began, timedelta(seconds=conf.FLUSH_INTERVAL)
    if age > runs.late_after():
        yield finding("flushes.late", duration(age))
        return
    yield finding("flushes.ok", duration(age))
    if good.took and good.took > interval:
        yield finding("flushes.slow", duration(good.took), duration(interval))


def outbox() -> Finding:
    """Examines whether publications reach Redis."""
    waiting = [
        UnsentPublication.objects.using(alias).aggregate(number=Count("pk"), oldest=Min("written"))
        for alias in unread.outboxes()
    ]
    number = sum(found["number"] for found in waiting)
    if not number:
        return finding("outbox.empty")
    age = buckets.now() - min(buckets.now(found["oldest"]) for found in waiting if found["number"])
    kind = "late" if age > runs.late_after() else "waiting"
    return finding(f"outbox.{kind}", counted(number, "publication"), duration(age))


def locks() -> Finding:
    """Examines whether another transaction keeps flushes from writing rows."""
    good = runs.last_good()
    if good is None or not good.locked:
        return finding("locks.none")
    left = counted(good.locked, "row")
    found = [lock for model in tracked_models() if (lock := databases.oldest_lock(model))]
    if not found:
        return finding("locks.waiting", left)
    session, age, statement = max(found, key=itemgetter(1))
    return finding("locks.held", left, session, duration(age), statement[:STATEMENT])


def totals() -> Finding:
    """Looks for totals that are no numbers, which flushes and pages skip."""
    number, broken = server.broken_totals()
    if not broken:
        return finding("totals.ok", counted(number, "total"))
    return finding("totals.broken", counted(len(broken), "total"), ", ".join(broken[:SHOWN]))


def drift() -> Finding:
    """Compares some totals with SQL. They may differ by the views since the last flush."""
    # Read first, because views from here on may be in the totals, and then are in the minute buckets.
    now, good = buckets.now(), runs.last_good()
    if good is None or now - good.began > REMEMBERED:
        return finding("drift.unknown")
    totals = {subject: total for subject, total in server.some_totals(SAMPLE) if total and total.is_settled}
    stored: dict[str, int] = {}
    for model, rows in rows_by_model(totals).items():
        stored.update((rows[pk], row.views) for pk, row in row_counts.stored(model, list(rows)).items())
    now = buckets.now() + buckets.MINUTE  # because the web servers' clocks, which name the buckets, may be fast
    minutes = buckets.minute_starts(int((now - good.began) / buckets.MINUTE) + 2, until=now)
    viewed = set(chain.from_iterable(counters.changed(minutes)))
    behind = {subject: totals[subject].views - count for subject, count in stored.items()}
    # SQL may have less only of subjects that were viewed since.
    different = [one for one, views in behind.items() if views < 0 or (views > 0 and one not in viewed)]
    shown = (counted(len(totals), "total"), len(different), ", ".join(different[:SHOWN]))
    return finding("drift.some" if different else "drift.none", *shown)


Examination = Callable[..., Finding | Iterable[Finding]]

BY_SERVER: list[Examination] = [version, role, eviction, persistence]  # each server of a cluster has its own
# Functions that look at one thing each, in the order of the report.
EXAMINATIONS: list[Examination] = [connection, *BY_SERVER, scripts, addresses, flushes, outbox, locks, totals, drift]
OF_DATABASE: set[Examination] = {flushes, outbox, locks, drift}
OF_REDIS = {*EXAMINATIONS} - {flushes, outbox, locks}


def examine() -> Iterator[Finding]:
    """Yields the findings as they are made; once a server fails, other examinations of it are left out."""
    left_out = set[Examination]()
    for look in EXAMINATIONS:
        if look in left_out:
            continue
        try:
            yield from _each(look) if look in BY_SERVER else _listed(look())
        except RefusedError as error:
            yield finding("refused.command", error)._replace(name=look.__name__)
        except (RedisError, Error) as error:
            left_out |= OF_REDIS if isinstance(error, RedisError) else OF_DATABASE
            yield failure(error)._replace(name=look.__name__)


def _each(look: Examination) -> Iterator[Finding]:
    """Yields the findings about the server, or the primaries of a cluster; one for those that are alike."""
    found: dict[Finding, list[str]] = {}
    for client in servers():
        for one in _listed(look(client)):
            found.setdefault(one, []).append(address(client))
    for one, places in found.items():
        yield one._replace(message=f"{', '.join(places)}: {one.message}") if is_cluster() else one


def _listed(found: Finding | Iterable[Finding]) -> Iterable[Finding]:
    return [found] if isinstance(found, Finding) else found
