"""Measurements of the doctor, as values with their units. `findings.py` judges them.

A function with a client asks that server. All functions raise redis.RedisError or django.db.Error
if a server fails or refuses, unless they say otherwise.
"""

import timeit
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha1
from itertools import islice
from time import time
from typing import Any

from django.db import models

from readtrack import buckets, migrated, parts, shipped
from readtrack.hits.addresses import NOTICES, Notice
from readtrack.models import FlushRun, PendingPublication
from readtrack.schedule import is_in_beat
from readtrack.sql import absent, databases, read_states, row_counts, runs
from readtrack.sql.faults import Faults
from readtrack.store import connection, counters, flush_notes, keys, read_state, scripts, skips
from readtrack.store.read_state import copies
from readtrack.store.servers import SeveralServers
from readtrack.subjects import counted_models, label_in, label_of, subjects_by_model, tracked_models
from readtrack.unread import outbox as unsent

PINGS = 5
NOTICED = 24  # hours for which notices about addresses are read
LOST = 24  # hours for which lost views are counted
ONE = "return 1"  # a script
MOST_TOTALS = 1_000_000  # totals that are checked at most, which takes two seconds
SAMPLE = 1_000  # totals that are compared with SQL at most
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Tables:
    """The migrations of the app's tables."""

    layout: int
    newest_applied: str  # name of the newest one that the database has had; "" for none
    newest_known: str  # name of the newest one of this version
    without_tables: Sequence[str]  # labels of the apps, the core and parts, that lack a table


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts, as the site and the database have them."""

    installed: Sequence[str]  # names such as "readtrack.numbers"
    left_over: Sequence[str]  # names of parts that are not installed, and have tables


@dataclass(frozen=True, slots=True)
class Version:
    """The version of a server."""

    product: str  # Redis or Valkey
    number: str  # "" if the server does not tell


@dataclass(frozen=True, slots=True)
class Role:
    """The role of a server: primary or replica, alone or in a cluster."""

    is_in_cluster: bool
    is_reached_as_cluster: bool  # CACHES names a cluster
    is_replica: bool
    replicas: int  # that are connected to it
    needs_full_coverage: bool  # it refuses all commands while another server of the cluster is down


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a server, and what the server does when the memory is full."""

    policy: str  # maxmemory-policy; "" if the server does not tell
    used: int  # bytes
    limit: int  # bytes; 0 for no limit


@dataclass(frozen=True, slots=True)
class Persistence:
    """What a server writes to its disk."""

    has_log: bool  # AOF
    dump_rules: str | None  # when it dumps (RDB); "" for never, None if the server does not tell
    has_dump_failed: bool
    has_log_failed: bool


@dataclass(frozen=True, slots=True)
class Shortage:
    """Whether pages found no free connection to Redis."""

    views: int  # that were lost in the last 24 hours
    of_pool: int  # max_connections, of each process
    of_server: int  # maxclients; 0 if the server does not tell


@dataclass(frozen=True, slots=True)
class Flushes:
    """When flushes ran, and how they ended."""

    has_record: bool
    last_error: str  # of the last flush; "" if it ended well
    age: timedelta | None  # since the last good flush began; None without one
    took: timedelta | None  # by the last good flush
    faults: Sequence[str] = ()  # lines about what the newest flushes could not store


@dataclass(frozen=True, slots=True)
class Schedule:
    """What the settings say about the schedule."""

    is_in_beat: bool  # if CELERY_BEAT_SCHEDULE has the tasks of readtrack


@dataclass(frozen=True, slots=True)
class Outbox:
    """Publications that were not sent to Redis yet."""

    publications: int
    age: timedelta  # of the oldest publication


@dataclass(frozen=True, slots=True)
class ReadStateCopies:
    """SQL's copies of the read state."""

    is_lost: bool  # Redis lost its read state, and no flush has restored it yet
    changed: int  # categories that changed since SQL got a copy
    age: timedelta  # of the oldest such change


@dataclass(frozen=True, slots=True)
class Locks:
    """Rows that the last good flush found locked, and the oldest lock now, if there is one."""

    rows: int
    oldest: databases.OldestLock | None


@dataclass(frozen=True, slots=True)
class Pooler:
    """What pools connections between Django and databases."""

    databases: Sequence[str]  # aliases of databases that are behind a pooler
    with_cursors: Sequence[str]  # those of them whose cursors outlive a transaction


@dataclass(frozen=True, slots=True)
class Totals:
    """The totals in Redis."""

    count: int  # totals that were checked
    broken: Collection[str]  # keys of totals that are no numbers
    unknown: Sequence[str]  # labels of models that this site does not count


@dataclass(frozen=True, slots=True)
class Drift:
    """A comparison of some totals with SQL."""

    compared: int  # totals
    different: Collection[str]  # subjects whose difference no view since the last flush explains


def ping() -> float:
    """Measures how long a page waits (s): as long as the fastest of a few answers takes.

    Raises UnusableError for a cache that is no Redis.
    """
    problem = connection.misconfiguration()
    if problem:
        raise connection.UnusableError(problem)
    client = connection.connect()
    return min(timeit.repeat(client.ping, number=1, repeat=PINGS))


def layout_of_keys() -> int:
    """Reads the layout of the keys that flushes noted; 0 before the first flush."""
    return flush_notes.known_layout().layout


def tables() -> Tables:
    """Compares the migrations that the database has had with those of this version."""
    applied = migrated.applied(databases.of(FlushRun).alias)
    return Tables(
        layout=migrated.layout_of(applied),
        newest_applied=migrated.newest(applied),
        newest_known=migrated.newest(migrated.own()),
        without_tables=sorted({model._meta.app_label for model in absent.absent_tables()}),
    )


def installed_parts() -> Parts:
    """Looks for tables of parts that the site has taken away."""
    installed = [part.name for part in parts.installed()]
    apps_with_tables = migrated.apps_with_migrations(databases.of(FlushRun).alias)
    left_over = [
        name
        for name in shipped.PARTS
        if name not in installed and shipped.label_of(name) in apps_with_tables
    ]
    return Parts(installed, left_over)


def clocks() -> timedelta:
    """Measures how far this machine's clock is ahead of Redis's, to half of the time that an
    answer takes. It is negative if the machine's is behind.
    """
    asked = time()
    redis_time = connection.server_time() / 1_000_000
    answered = time()
    return timedelta(seconds=(asked + answered) / 2 - redis_time)


def version(client: Any) -> Version:
    """Asks for the server's version."""
    info = client.info()
    # Valkey also names a version of Redis, which is not its own.
    if "valkey_version" in info:
        return Version("Valkey", str(info["valkey_version"]))
    return Version("Redis", str(info.get("redis_version", "")))


def role(client: Any) -> Role:
    """Asks for the server's role."""
    info = client.info()
    is_in_cluster = int(info.get("cluster_enabled", 0)) > 0
    coverage: str | None = "no"
    if is_in_cluster:
        coverage = _configured("cluster-require-full-coverage", client)
    return Role(
        is_in_cluster=is_in_cluster,
        is_reached_as_cluster=isinstance(connection.connect(), SeveralServers),
        is_replica=info.get("role") == "slave",
        replicas=int(info.get("connected_slaves", 0)),
        needs_full_coverage=coverage == "yes",
    )


def memory(client: Any) -> Memory:
    """Asks for the server's memory."""
    return memory_in(client.info())


def memory_in(info: Mapping[str, Any]) -> Memory:
    """Returns the memory in a server's answer to INFO."""
    return Memory(
        policy=str(info.get("maxmemory_policy", "")),
        # As the server compares it with the limit.
        used=int(info.get("used_memory", 0)) - int(info.get("mem_not_counted_for_evict", 0)),
        limit=int(info.get("maxmemory", 0)),
    )


def persistence(client: Any) -> Persistence:
    """Asks what the server writes to its disk."""
    info = client.info()
    return Persistence(
        has_log=bool(info.get("aof_enabled")),
        dump_rules=_configured("save", client),
        has_dump_failed=info.get("rdb_last_bgsave_status", "ok") != "ok",
        has_log_failed=info.get("aof_last_write_status", "ok") != "ok",
    )


def _configured(name: str, client: Any) -> str | None:
    """Returns the value of a directive of the server; None if the Redis user may not read it."""
    try:
        directives: dict[str, str] = client.config_get(name)
    except connection.ResponseError:  # hosted servers refuse CONFIG altogether
        return None
    return directives.get(name)


def lua_scripts() -> str | None:
    """Tries whether the Redis user may run scripts by their text and by their digest.

    Returns the server's refusal, None if they run.
    """
    try:
        for client in connection.servers(patient=True):
            client.eval(ONE, 0)
            client.evalsha(sha1(ONE.encode(), usedforsecurity=False).hexdigest(), 0)
        epochs = [counters.epoch(tag) for tag in keys.tags()]
        scripts.run_all(*epochs, patient=True)
    except connection.ResponseError as error:
        return str(error)
    return None


def shortage() -> Shortage:
    """Reads how many views were lost for want of a connection, and the limits of connections."""
    [hours] = scripts.run_all(skips.by_hour(LOST, at=buckets.now()))
    client = connection.servers()[0]
    try:
        of_server = int(client.info("clients").get("maxclients", 0))
    except connection.ResponseError:  # the Redis user may not ask
        of_server = 0
    views = sum(hour["busy"] for hour in hours)
    return Shortage(views, client.connection_pool.max_connections, of_server)


def addresses() -> dict[Notice, int]:
    """Reads what the web processes noticed about the addresses of new visitors in the last 24
    hours, and how often, once at least.
    """
    [hours] = scripts.run_all(skips.by_hour(NOTICED, at=buckets.now()))
    notices: dict[Notice, int] = {}
    for notice in NOTICES:
        times = sum(hour[notice] for hour in hours)
        if times:
            notices[notice] = times
    return notices


def flushes() -> Flushes:
    """Reads the records of flushes."""
    last_run = FlushRun.objects.first()
    last_error = ""
    if last_run is not None:
        last_error = last_run.error
    age = None
    took = None
    good_run = runs.last_good()
    if good_run is not None:
        age = buckets.now() - good_run.began
        took = good_run.took
    return Flushes(
        has_record=last_run is not None,
        last_error=last_error,
        age=age,
        took=took,
        faults=tuple(runs.newest_faults()),
    )


def schedule() -> Schedule:
    """Looks for the tasks of readtrack in the settings of Celery's beat."""
    return Schedule(is_in_beat=is_in_beat())


def outbox() -> Outbox:
    """Counts the publications that were not sent to Redis yet."""
    publications = 0
    times: list[datetime] = []
    for alias in unsent.outboxes():
        rows = PendingPublication.objects.using(alias).filter(sent=None)
        waiting = rows.aggregate(count=models.Count("pk"), oldest=models.Min("written"))
        if waiting["count"]:
            publications += waiting["count"]
            times.append(buckets.now(waiting["oldest"]))
    age = timedelta()
    if times:
        age = buckets.now() - min(times)
    return Outbox(publications, age)


def read_state_copies() -> ReadStateCopies:
    """Reads whether Redis has its read state, and what SQL has no copy of."""
    is_lost = read_states.is_lost(has_begun=not read_state.not_begun(keys.tags()))
    now = connection.server_time(patient=True)
    number_changed = 0
    oldest = now
    for tag in keys.tags():
        changes = copies.backlog(tag)
        number_changed += changes.number
        oldest = min(oldest, changes.oldest or now)
    return ReadStateCopies(is_lost, number_changed, timedelta(microseconds=now - oldest))


def locks() -> Locks:
    """Reads how many rows the last good flush found locked; if any, also the oldest lock now."""
    good_run = runs.last_good()
    if good_run is None or not good_run.locked:
        return Locks(rows=0, oldest=None)
    oldest_locks = []
    for model in tracked_models():
        row = databases.oldest_lock(model)
        if row is not None:
            oldest_locks.append(row)
    oldest = max(oldest_locks, key=lambda lock: lock.age, default=None)
    return Locks(good_run.locked, oldest)


def pooler() -> Pooler:
    """Looks for a pooler, such as PgBouncer, before the databases of the app and of its models."""
    asked: list[type[models.Model]] = [FlushRun, *tracked_models()]
    all_databases = {databases.of(model) for model in asked}
    pooled = [database for database in all_databases if databases.is_pooled(database)]
    with_cursors = [
        database
        for database in pooled
        if not database.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS")
    ]
    return Pooler(
        databases=sorted(database.alias for database in pooled),
        with_cursors=sorted(database.alias for database in with_cursors),
    )


def totals() -> Totals:
    """Looks for totals that are no numbers. Flushes and pages skip those."""
    client: Any = connection.connect(patient=True)
    count = 0
    broken = []
    labels: set[str] = set()
    for subject, total in _some_totals(MOST_TOTALS):
        count += 1
        labels.add(label_in(subject))
        if total is None:
            key = keys.total(subject)
            if client.exists(key):  # otherwise the total was removed meanwhile
                broken.append(key)
    counted_labels = {label_of(model) for model in counted_models()}
    return Totals(count, broken, sorted(labels - counted_labels))


def drift() -> Drift | None:
    """Compares some totals with SQL; returns None unless a flush succeeded in the last hour.

    A total may be higher than SQL's views by the views since that flush. The minute buckets know
    for an hour which subjects were viewed.
    """
    # The flush is read before the totals, the buckets after them, so that the buckets have all
    # views that the totals have and the flush lacks.
    now = buckets.now()
    good_run = runs.last_good()
    if good_run is None or now - good_run.began > HOUR:
        return None
    live = {}
    for subject, total in _some_totals(SAMPLE):
        if total is not None and total.is_settled:
            live[subject] = total.views
    stored = _stored_views(live)
    viewed = _viewed_since(good_run.began)
    different = []
    for subject, views in stored.items():
        is_behind = views < live[subject]
        is_ahead = views > live[subject]
        if is_ahead or (is_behind and subject not in viewed):
            different.append(subject)
    return Drift(len(live), different)


def _some_totals(limit: int) -> Iterator[tuple[str, counters.Total | None]]:
    """Yields subjects and their totals, `limit` at most.

    The total is None if it is no number, or was removed meanwhile.
    """
    subjects = dict.fromkeys(islice(counters.scan(), limit))  # SCAN may return a key twice
    for portion in scripts.parted(list(subjects)):
        totals_by_subject = scripts.run(counters.totals(portion), patient=True)
        for subject in portion:
            yield subject, totals_by_subject.get(subject)


def _stored_views(subjects: Collection[str]) -> dict[str, int]:
    """Returns SQL's views of the subjects that have a row which can be read now."""
    faults = Faults()
    stored: dict[str, int] = {}
    for model, subjects_by_pk in subjects_by_model(subjects).items():
        faults.attempt(label_of(model), partial(_read_views, model, subjects_by_pk, stored), None)
    return stored


def _read_views(
    model: type[models.Model], subjects_by_pk: Mapping[Any, str], stored: dict[str, int]
) -> None:
    """Adds SQL's views of the rows of one model to `stored`, by subject."""
    with databases.site_transaction(databases.of(model)):
        rows = row_counts.stored(model, list(subjects_by_pk))
    for pk, row in rows.items():
        stored[subjects_by_pk[pk]] = row.views


def _viewed_since(began: datetime) -> set[str]:
    """Returns the subjects that were viewed since then, which is an hour ago at most."""
    # The web servers name the buckets, and their clocks may be fast.
    until = buckets.now() + buckets.MINUTE
    number_of_minutes = int((until - began) / buckets.MINUTE) + 2
    minutes = buckets.minute_buckets(number_of_minutes, until=until)
    viewed: set[str] = set()
    for subjects in counters.viewed(minutes):
        viewed.update(subjects)
    return viewed
