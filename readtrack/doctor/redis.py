"""Examines the Redis server, and what the web processes noted in it."""

from collections.abc import Iterable, Iterator

from readtrack import buckets
from readtrack.conf import conf
from readtrack.doctor.findings import Context, Finding, counted, finding, size
from readtrack.hits.addresses import NOTICES
from readtrack.store import server
from readtrack.store.connection import CLUSTER_FACTORY, check_configuration, is_cluster
from readtrack.store.skips import skips_by_reason

OLDEST = (6, 2)
SLOW = 0.005  # seconds for a PING; above it a view costs more than the queries of most pages
NEARLY_FULL = 0.9  # of maxmemory


def connection(context: Context) -> Finding:
    """Measures how long a page waits for an answer."""
    check_configuration()
    took = server.ping()
    return finding("connection.slow" if took > SLOW else "connection.ok", took * 1000)


def version(context: Context) -> Finding:
    """Examines whether the server knows the commands that the scripts call."""
    info = context.info()
    # Valkey also names a version of Redis, which is not its own.
    name = "Valkey" if "valkey_version" in info else "Redis"
    found = str(info.get(f"{name.lower()}_version", ""))
    if not found:
        return finding("version.unknown")
    is_old = tuple(int(part) for part in found.split(".")[:2]) < OLDEST
    return finding("version.old" if is_old else "version.ok", name, found)


def role(context: Context) -> Finding:
    """Examines whether the server takes writes and holds all keys."""
    info = context.info()
    is_in_cluster, replicas = int(info.get("cluster_enabled", 0)) > 0, int(info.get("connected_slaves", 0))
    if is_in_cluster and not is_cluster():
        return finding("role.cluster", conf.CACHE, CLUSTER_FACTORY)
    if info.get("role") == "slave":
        return finding("role.replica", conf.CACHE)
    kind = "ok"
    if is_in_cluster and not replicas:
        kind = "alone"
    elif is_in_cluster and context.configured("cluster-require-full-coverage") == "yes":
        kind = "covering"
    return finding(f"role.{kind}", counted(replicas, "replica"))


def eviction(context: Context) -> Finding:
    """Examines whether Redis deletes counts when its memory is full."""
    info = context.info()
    policy = str(info.get("maxmemory_policy", ""))
    limit, used = int(info.get("maxmemory", 0)), int(info.get("used_memory", 0))
    kind = "full" if limit and used > limit * NEARLY_FULL else "ok"
    if policy != "noeviction":
        kind = "unknown" if not policy else "all" if policy.startswith("allkeys") else "some"
    return finding(f"eviction.{kind}", policy, size(used), size(limit))


def persistence(context: Context) -> Iterator[Finding]:
    """Examines what is left after a restart of Redis."""
    info = context.info()
    failed = {"rdb_last_bgsave_status": "dump (RDB)", "aof_last_write_status": "write to the log (AOF)"}
    for field, what in failed.items():
        if info.get(field, "ok") != "ok":
            yield finding("persistence.failed", what)
    saves = context.configured("save")
    if info.get("aof_enabled"):
        yield finding("persistence.log")
    elif saves:
        yield finding("persistence.dumps", saves)
    else:
        yield finding("persistence.unknown" if saves is None else "persistence.none")


def scripts(context: Context) -> Finding:
    """Examines whether the Redis user may run the Lua scripts."""
    try:
        server.try_scripts()
    except server.RefusedError as error:
        return finding("scripts.refused", error)
    return finding("scripts.ok")


def timeouts(context: Context) -> Finding:
    """Examines how long pages would wait for a Redis that hangs."""
    is_long = conf.TIMEOUT > 1 or conf.CIRCUIT < conf.TIMEOUT
    return finding("timeouts.long" if is_long else "timeouts.ok", conf.TIMEOUT, conf.CIRCUIT)


def addresses(context: Context) -> Iterable[Finding]:
    """Reports what the web processes noticed about the addresses of new visitors."""
    found = skips_by_reason(24, at=buckets.now())
    noticed = [finding("addresses.shared", NOTICES[notice]) for notice in NOTICES if found[notice]]
    return noticed or [finding("addresses.ok")]
