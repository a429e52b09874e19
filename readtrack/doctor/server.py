"""Whether the Redis server can be relied on."""

from collections.abc import Iterator

from django.template.defaultfilters import filesizeformat

from readtrack.conf import conf
from readtrack.doctor.findings import Finding, Order
from readtrack.store import server

OLDEST = (6, 2)
SLOW = 0.005  # seconds for a PING, from where on a view costs more than most pages' queries
NEARLY_FULL = 0.9  # of maxmemory


def answers(order: Order) -> Iterator[Finding]:
    """How long a page waits for an answer."""
    took = server.ping()
    message = f"A PING takes {took * 1000:.2f} ms."
    if took > SLOW:
        yield Finding("warning", message, "Every page waits this long: put Redis nearer to the web servers.")
    else:
        yield Finding("ok", message)


def version(order: Order) -> Iterator[Finding]:
    """Whether it knows the commands that the scripts use."""
    # Valkey also names a version of Redis, which says nothing of itself.
    name = "Valkey" if "valkey_version" in order.info else "Redis"
    found = str(order.info.get("valkey_version") or order.info.get("redis_version") or "")
    if not found:
        yield Finding("note", "The server does not tell its version.", "It has to be Redis 6.2 or newer, or Valkey.")
    elif tuple(int(part) for part in found.split(".")[:2]) < OLDEST:
        yield Finding("error", f"The server is {name} {found}.", "Upgrade it to Redis 6.2 or newer, or to Valkey.")
    else:
        yield Finding("ok", f"The server is {name} {found}.")


def eviction(order: Order) -> Iterator[Finding]:
    """Whether it throws counts away when its memory is full."""
    policy = str(order.info.get("maxmemory_policy", ""))
    limit, used = int(order.info.get("maxmemory", 0)), int(order.info.get("used_memory", 0))
    if not policy:
        yield Finding("note", "The server does not tell its maxmemory-policy.", "It has to be noeviction.")
    elif policy.startswith("allkeys"):
        hint = "Set maxmemory-policy to noeviction, and give caches a Redis of their own."
        yield Finding("error", f"maxmemory-policy is {policy}: Redis may delete counts.", hint)
    elif policy != "noeviction":
        hint = "Set maxmemory-policy to noeviction, or a reload may count as another view."
        yield Finding("warning", f"maxmemory-policy is {policy}: Redis may delete what tells repeats.", hint)
    elif limit and used > limit * NEARLY_FULL:
        message = f"Redis uses {_size(used)} of the {_size(limit)} it may, and then counts nothing more."
        yield Finding("warning", message, "Raise maxmemory.")
    else:
        yield Finding("ok", "maxmemory-policy is noeviction.")


def persistence(order: Order) -> Iterator[Finding]:
    """What is left after it restarts."""
    if not order.info:
        yield Finding("note", "The server does not tell whether it saves its data.", "Turn its RDB or AOF on.")
        return
    has_log, saves = bool(order.info.get("aof_enabled")), server.configured("save")
    for key, what in (("rdb_last_bgsave_status", "dump"), ("aof_last_write_status", "write to the log")):
        if order.info.get(key, "ok") != "ok":
            yield Finding("error", f"Redis's last {what} failed.", "Look into its log: is the disk full?")
    if has_log:
        yield Finding("ok", "Redis logs every write (AOF).")
    elif saves:
        yield Finding("ok", f"Redis saves dumps (RDB, save {saves}).")
    elif saves is None:
        yield Finding(
            "note", "The server does not tell whether it saves dumps, and has no AOF.", "Turn one of them on."
        )
    else:
        hint = "Turn its AOF or RDB on. Without, a restart loses the views since the last flush, and all read state."
        yield Finding("warning", "Redis keeps nothing over a restart.", hint)


def role(order: Order) -> Iterator[Finding]:
    """Whether it takes writes, and holds all keys."""
    if int(order.info.get("cluster_enabled", 0)):
        yield Finding("error", "The server is part of a cluster.", "Point CACHES at a Redis that is not, as yet.")
    elif order.info.get("role") == "slave":
        yield Finding("error", "The server is a replica, and takes no writes.", "Point CACHES at the primary.")
    elif order.info:
        yield Finding("ok", f"The server is a primary, with {order.info.get('connected_slaves', 0)} replicas.")
    else:
        yield Finding("note", "The server does not tell whether it is a primary.", "It has to be one.")


def scripts(order: Order) -> Iterator[Finding]:
    """Whether our Lua may run there."""
    try:
        server.try_scripts()
    except server.Refused as error:
        hint = "Nothing is counted without: let its user run SCRIPT LOAD, EVALSHA and what readtrack/store/lua calls."
        yield Finding("error", f"Redis refuses the scripts: {error}", hint)
    else:
        yield Finding("ok", "The scripts load and run.")


def memory(order: Order) -> Iterator[Finding]:
    """What Redis uses, and what our keys take of it, by kind."""
    found = server.families(sample=order.sample, progress=order.progress)
    parts = ", ".join(f"{name} {_size(taken)} in {keys:,} keys" for name, keys, taken in found)
    used = f"Redis uses {_size(int(order.info['used_memory']))}. " if order.info else ""
    yield Finding("ok", f"{used}Ours, estimated: {parts or 'no keys yet'}.")


def _size(count: int) -> str:
    return filesizeformat(count).replace("\xa0", " ")


def timeouts(order: Order) -> Iterator[Finding]:
    """Whether a dead Redis would hold pages up."""
    if conf.TIMEOUT > 1:
        hint = "Set READTRACK['TIMEOUT'] to a quarter of a second or so."
        yield Finding("warning", f"A page waits up to {conf.TIMEOUT:g} s for a Redis that hangs.", hint)
    elif conf.CIRCUIT < conf.TIMEOUT:
        hint = "Set READTRACK['CIRCUIT'] to some seconds, so that only a few pages wait for a Redis that hangs."
        yield Finding("warning", "The circuit closes sooner than a page gives up.", hint)
    else:
        yield Finding("ok", f"Pages wait at most {conf.TIMEOUT:g} s for Redis, then {conf.CIRCUIT:g} s not at all.")
