"""Examines the Redis server, what web processes noted in it, and the flushes; a failing server is a
finding, too.
"""

import timeit
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import islice
from typing import Any, NamedTuple

from django.db import Error, models

from readtrack import buckets
from readtrack.checks.setup import texts
from readtrack.conf import conf
from readtrack.hits.addresses import NOTICES
from readtrack.models import FlushRun, UnsentPublication
from readtrack.sql import databases, row_counts, runs
from readtrack.store import connection as redis
from readtrack.store import counters, flush_notes, keys, skips
from readtrack.store.cluster import Cluster
from readtrack.store.scripts import load, parted, run, run_all
from readtrack.subjects import rows_by_model, tracked_models
from readtrack.texts import one_line
from readtrack.unread.outbox import outboxes

SLOW = 0.005  # seconds for a PING; above it a view costs more than the queries of most pages
SHOWN = 3  # subjects
SAMPLE = 1_000  # totals that are compared with SQL, at most
UNITS = ((keys.DAY, "days"), (keys.HOUR, "h"), (keys.MINUTE, "min"), (1, "s"))


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
    # An error or another's statement may hold what a visitor typed.
    words = tuple(word if isinstance(word, (int, float)) else one_line(str(word)) for word in words)
    section = texts(name, "readtrack.doctor")
    message, hint = (section.get(key, "").format(*words) for key in ("message", "hint"))
    return Finding(section["level"], message, hint, name.partition(".")[0])


def configured(name: str, client: Any) -> str | None:
    """Returns a directive of a server's configuration; None where the Redis user may not read it."""
    try:
        found: dict[str, str] = client.config_get(name)
    except redis.ResponseError:  # hosted servers refuse CONFIG altogether
        return None
    return found.get(name)


def some_totals(
    limit: int = 1_000_000,
) -> Iterator[tuple[str, counters.Total | None]]:  # two seconds
    """Yields some totals by subject, `limit` at most; None for one that is no number, or was
    removed meanwhile.
    """
    for some in parted(list(dict.fromkeys(islice(counters.scan(), limit)))):
        found = run(counters.totals(some), patient=True)
        yield from ((subject, found.get(subject)) for subject in some)


def failure(error: redis.RedisError | Error) -> Finding:
    """Returns the finding for a cache that is no Redis, or a server that does not answer or refuses
    to.
    """
    kinds = {
        flush_notes.LayoutError: "layout",
        redis.UnusableError: "unusable",
        redis.AuthenticationError: "password",
    }
    other = "redis" if isinstance(error, redis.RedisError) else "database"
    kind = next((kind for of, kind in kinds.items() if isinstance(error, of)), other)
    where = redis.address() if kind == "redis" else ""
    return finding(f"failure.{kind}", str(error).strip(), conf.CACHE, type(error).__name__, where)


def connection() -> Finding:
    """Measures how long a page waits for the fastest of a few answers."""
    if problem := redis.misconfiguration():
        raise redis.UnusableError(problem)
    took = min(timeit.repeat(redis.connect().ping, number=1, repeat=5))  # seconds
    return finding("connection.slow" if took > SLOW else "connection.ok", took * 1000)


def version(client: Any) -> Finding:
    """Examines whether the server knows the commands that the scripts call."""
    info = client.info()
    # Valkey also names a version of Redis, which is not its own.
    name = "Valkey" if "valkey_version" in info else "Redis"
    found = str(info.get(f"{name.lower()}_version", ""))
    if not found:
        return finding("version.unknown")
    is_old = tuple(int(part) for part in found.split(".")[:2]) < (6, 2)
    return finding("version.old" if is_old else "version.ok", name, found)


def role(client: Any) -> Finding:
    """Examines whether the server takes writes and holds all keys."""
    info = client.info()
    is_in_cluster, replicas = (
        int(info.get("cluster_enabled", 0)) > 0,
        int(info.get("connected_slaves", 0)),
    )
    if is_in_cluster and not isinstance(redis.connect(), Cluster):
        return finding("role.cluster", conf.CACHE, redis.CLUSTER_FACTORY)
    if info.get("role") == "slave":
        return finding("role.replica", conf.CACHE)
    is_covering = is_in_cluster and configured("cluster-require-full-coverage", client) == "yes"
    kind = "alone" if is_in_cluster and not replicas else "covering" if is_covering else "ok"
    return finding(f"role.{kind}", counted(replicas, "replica"))


def eviction(client: Any) -> Finding:
    """Examines whether Redis deletes counts when its memory is full."""
    info = client.info()
    policy = str(info.get("maxmemory_policy", ""))
    limit, used = int(info.get("maxmemory", 0)), int(info.get("used_memory", 0))
    kind = "full" if limit and used > limit * 0.9 else "ok"
    if policy != "noeviction":
        kind = "unknown" if not policy else "all" if policy.startswith("allkeys") else "some"
    return finding(f"eviction.{kind}", policy, size(used), size(limit))


def persistence(client: Any) -> list[Finding]:
    """Examines what is left after a restart of Redis."""
    info, saves = client.info(), configured("save", client)
    failed = {
        "rdb_last_bgsave_status": "dump (RDB)",
        "aof_last_write_status": "write to the log (AOF)",
    }
    found = [
        finding("persistence.failed", what)
        for field, what in failed.items()
        if info.get(field, "ok") != "ok"
    ]
    kind = "dumps" if saves else "unknown" if saves is None else "none"
    return [*found, finding(f"persistence.{'log' if info.get('aof_enabled') else kind}", saves)]


def scripts() -> Finding:
    """Examines whether the Redis user may load the Lua scripts, and run one by its text and by its
    digest.
    """
    try:
        for client in redis.servers(patient=True):
            client.eval("return 1", 0)
            client.evalsha(client.script_load("return 1"), 0)
            load(client)
        run_all(*map(counters.epoch, keys.tags()), patient=True)
    except redis.ResponseError as error:
        return finding("scripts.refused", error)
    return finding("scripts.ok")


def addresses() -> Finding | list[Finding]:
    """Reports what the web processes noticed about the addresses of new visitors."""
    [hours] = run_all(skips.by_hour(24, at=buckets.now()))
    shared = [text for notice, text in NOTICES.items() if any(hour[notice] for hour in hours)]
    noticed = [finding("addresses.shared", text) for text in shared]
    return noticed or finding("addresses.ok")


def flushes() -> Finding | list[Finding]:
    """Examines when flushes ran, how they ended and how long they took."""
    now, last, good = buckets.now(), FlushRun.objects.first(), runs.last_good()
    if last is None:
        return finding("flushes.none")
    found = [finding("flushes.failed", last.error)] if last.error else []
    if good is None:
        return [*found, finding("flushes.never")]
    age, interval = now - good.began, timedelta(seconds=conf.FLUSH_INTERVAL)
    is_late = age > runs.late_after()
    found.append(finding("flushes.late" if is_late else "flushes.ok", duration(age)))
    if not is_late and good.took and good.took > interval:
        found.append(finding("flushes.slow", duration(good.took), duration(interval)))
    return found


def outbox() -> Finding:
    """Examines whether publications reach Redis."""
    rows = map(UnsentPublication.objects.using, outboxes())
    waiting = [
        some.aggregate(number=models.Count("pk"), oldest=models.Min("written")) for some in rows
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
    session, age, statement = max(found, key=lambda lock: lock[1])
    return finding("locks.held", left, session, duration(age), statement[:200])


def totals() -> Finding:
    """Looks for totals that are no numbers, which flushes and pages skip."""
    client: Any = redis.connect(patient=True)
    found = ["" if total else keys.total(subject) for subject, total in some_totals()]
    broken = [
        name for name in filter(None, found) if client.exists(name)
    ]  # others were removed meanwhile
    words = counted(len(broken) or len(found), "total"), ", ".join(broken[:SHOWN])
    return finding("totals.broken" if broken else "totals.ok", *words)


def drift() -> Finding:
    """Compares some totals with SQL. They may differ by the views since the last flush."""
    # Read first, because views from here on may be in the totals, and then are in the minute
    # buckets.
    now, good = buckets.now(), runs.last_good()
    if good is None or now - good.began > timedelta(
        hours=1
    ):  # for which the minute buckets hold each subject's views
        return finding("drift.unknown")
    totals = {
        subject: total for subject, total in some_totals(SAMPLE) if total and total.is_settled
    }
    stored: dict[str, int] = {}
    for model, rows in rows_by_model(totals).items():
        stored.update(
            (rows[pk], row.views) for pk, row in row_counts.stored(model, list(rows)).items()
        )
    now = (
        buckets.now() + buckets.MINUTE
    )  # because the web servers' clocks, which name the buckets, may be fast
    minutes = buckets.minute_buckets(int((now - good.began) / buckets.MINUTE) + 2, until=now)
    viewed = {subject for subjects in counters.changed(minutes) for subject in subjects}
    behind = {subject: totals[subject].views - count for subject, count in stored.items()}
    # SQL may have less only of subjects that were viewed since.
    different = [
        one for one, views in behind.items() if views < 0 or (views > 0 and one not in viewed)
    ]
    shown = (counted(len(totals), "total"), len(different), ", ".join(different[:SHOWN]))
    return finding("drift.some" if different else "drift.none", *shown)


Examination = Callable[..., Finding | list[Finding]]

BY_SERVER: list[Examination] = [
    version,
    role,
    eviction,
    persistence,
]  # each server of a cluster has its own
# Functions that look at one thing each, in the order of the report.
EXAMINATIONS: list[Examination] = [
    connection,
    *BY_SERVER,
    scripts,
    addresses,
    flushes,
    outbox,
    locks,
    totals,
    drift,
]


def examine() -> Iterator[Finding]:
    """Yields the findings as they are made; once a server fails, other examinations of it are left
    out.
    """
    left_out = set[Examination]()
    for look in EXAMINATIONS:
        if look in left_out:
            continue
        places: dict[
            Finding, list[str]
        ] = {}  # by finding: of servers in a cluster that are alike, one is told
        try:
            for client in redis.servers() if look in BY_SERVER else [None]:
                found = look() if client is None else look(client)
                place = (
                    redis.address(client)
                    if client is not None and isinstance(redis.connect(), Cluster)
                    else ""
                )
                for one in found if isinstance(found, list) else [found]:
                    places.setdefault(one, []).append(place)
        except redis.ResponseError as error:
            places = {finding("refused.command", error): []}
        except (redis.RedisError, Error) as error:
            of_sql = {flushes, outbox, locks}
            left_out |= (
                {*EXAMINATIONS} - of_sql
                if isinstance(error, redis.RedisError)
                else {*of_sql, drift}
            )
            places = {failure(error): []}
        for one, where in places.items():
            start = f"{', '.join(where)}: " if any(where) else ""
            yield one._replace(name=look.__name__, message=start + one.message)
