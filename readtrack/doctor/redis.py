"""Examines the Redis server, and what the web processes noted in it."""

from collections.abc import Iterator

from readtrack import buckets
from readtrack.conf import conf
from readtrack.doctor.findings import Context, Finding, counted, size
from readtrack.hits.addresses import NOTICES, Notice
from readtrack.store import server
from readtrack.store.connection import CLUSTER_FACTORY, check_configuration, is_cluster
from readtrack.store.skips import skips_by_reason

OLDEST = (6, 2)
SLOW = 0.005  # seconds for a PING; above it a view costs more than the queries of most pages
NEARLY_FULL = 0.9  # of maxmemory
ADVICE = (
    "Set READTRACK['PROXY_COUNT'] to the number of proxies that add to X-Forwarded-For, such as 2 for a CDN in front of"
    " nginx, and 0 without a proxy. Let each of them send the header."
)


def connection(context: Context) -> Finding:
    """Measures how long a page waits for an answer."""
    check_configuration()
    took = server.ping()
    message = f"A PING takes {took * 1000:.2f} ms."
    if took > SLOW:
        return Finding("warning", message, "Every page waits this long. Move Redis closer to the web servers.")
    return Finding("ok", message)


def version(context: Context) -> Finding:
    """Examines whether the server knows the commands that the scripts call."""
    info = context.info()
    # Valkey also names a version of Redis, which is not its own.
    name = "Valkey" if "valkey_version" in info else "Redis"
    found = str(info.get("valkey_version") or info.get("redis_version") or "")
    message = f"The server is {name} {found}."
    if not found:
        hint = "It has to be Redis 6.2 or newer, or Valkey."
        return Finding("note", "The server does not tell its version.", hint)
    if tuple(int(part) for part in found.split(".")[:2]) < OLDEST:
        return Finding("error", message, "Upgrade it to Redis 6.2 or newer, or to Valkey.")
    return Finding("ok", message)


def role(context: Context) -> Finding:
    """Examines whether the server takes writes and holds all keys."""
    info = context.info()
    is_in_cluster = int(info.get("cluster_enabled", 0)) > 0
    if is_in_cluster and not is_cluster():
        factory = f"{{'CONNECTION_FACTORY': '{CLUSTER_FACTORY}'}}"
        hint = f"Give CACHES['{conf.CACHE}'] the OPTIONS {factory}, and set READTRACK['PARTITIONS'], such as 64."
        return Finding("error", "The server is part of a cluster.", hint)
    if info.get("role") == "slave":
        hint = f"Point CACHES['{conf.CACHE}'] at the primary."
        return Finding("error", "The server is a replica and takes no writes.", hint)
    replicas = counted(int(info.get("connected_slaves", 0)), "replica")
    message = f"The server is a primary with {replicas}."
    if is_in_cluster and not info.get("connected_slaves"):
        return Finding("warning", message, "Give it one, or a crash silences its subjects until it is back.")
    if is_in_cluster and context.configured("cluster-require-full-coverage") == "yes":
        hint = "Set cluster-require-full-coverage to no on each server."
        return Finding("warning", f"{message} While another one is down, it refuses all commands.", hint)
    return Finding("ok", message)


def eviction(context: Context) -> Finding:
    """Examines whether Redis deletes counts when its memory is full."""
    info = context.info()
    policy = str(info.get("maxmemory_policy", ""))
    limit, used = int(info.get("maxmemory", 0)), int(info.get("used_memory", 0))
    message = f"maxmemory-policy is {policy}"
    if not policy:
        return Finding("note", "The server does not tell its maxmemory-policy.", "It has to be noeviction.")
    if policy.startswith("allkeys"):
        hint = "Set maxmemory-policy to noeviction, and give caches a Redis of their own."
        return Finding("error", f"{message}: Redis may delete counts.", hint)
    if policy != "noeviction":
        hint = "Set maxmemory-policy to noeviction. Until then a reload may count as another view."
        return Finding("warning", f"{message}: Redis may delete the keys that mark repeated views.", hint)
    if limit and used > limit * NEARLY_FULL:
        message = f"Redis uses {size(used)} of {size(limit)} (maxmemory). Once that is full, nothing is counted."
        return Finding("warning", message, "Raise maxmemory.")
    return Finding("ok", f"{message}.")


def persistence(context: Context) -> Iterator[Finding]:
    """Examines what is left after a restart of Redis."""
    info, turn_on = context.info(), "Turn on its AOF or RDB."
    failed = {"rdb_last_bgsave_status": "dump (RDB)", "aof_last_write_status": "write to the log (AOF)"}
    for field, what in failed.items():
        if info.get(field, "ok") != "ok":
            yield Finding("error", f"The last {what} of Redis failed.", "Look into the log of Redis: is the disk full?")
    saves = context.configured("save")
    if info.get("aof_enabled"):
        yield Finding("ok", "Redis logs every write (AOF).")
    elif saves:
        yield Finding("ok", f"Redis saves dumps (RDB, save {saves}).")
    elif saves is None:
        yield Finding("note", "Redis has no AOF, and does not tell whether it saves dumps (RDB).", turn_on)
    else:
        hint = f"{turn_on} Otherwise a restart loses the views since the last flush, and everybody's read state."
        yield Finding("warning", "Redis keeps nothing over a restart.", hint)


def scripts(context: Context) -> Finding:
    """Examines whether the Redis user may run the Lua scripts."""
    try:
        server.try_scripts()
    except server.RefusedError as error:
        hint = "Nothing is counted without them. Let the Redis user run EVAL, EVALSHA, SCRIPT LOAD and what they call."
        return Finding("error", f"Redis refuses the Lua scripts: {error}", hint)
    return Finding("ok", "The Lua scripts load and run.")


def timeouts(context: Context) -> Finding:
    """Examines how long pages would wait for a Redis that hangs."""
    message = f"Pages wait at most {conf.TIMEOUT:g} s for Redis, and after a failure not at all for {conf.CIRCUIT:g} s."
    if conf.TIMEOUT > 1 or conf.CIRCUIT < conf.TIMEOUT:
        hint = "Set READTRACK['TIMEOUT'] to about a quarter of a second, and READTRACK['CIRCUIT'] to a few seconds."
        return Finding("warning", message, hint)
    return Finding("ok", message)


def addresses(context: Context) -> Iterator[Finding]:
    """Reports what the web processes noticed about the addresses of new visitors."""
    found = skips_by_reason(24, at=buckets.now())
    noticed: list[Notice] = [notice for notice in NOTICES if found[notice]]
    for notice in noticed:
        message = f"In the last 24 hours: {NOTICES[notice]} New visitors with the same browser look like one."
        yield Finding("warning", message, ADVICE)
    if not noticed:
        yield Finding("ok", "No sign in the last 24 hours that new visitors share a proxy's address.")
