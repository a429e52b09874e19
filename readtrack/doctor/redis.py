"""Whether the Redis server can be relied on."""

from collections.abc import Iterator

from django.template.defaultfilters import filesizeformat
from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_noop, ngettext

from readtrack.doctor.findings import Finding, Order
from readtrack.numerals import exact
from readtrack.store import server

OLDEST = (6, 2)
SLOW = 0.005  # seconds for a PING, from where on a view costs more than most pages' queries
NEARLY_FULL = 0.9  # of maxmemory
TURN_ON = gettext_noop(
    "Turn its AOF or RDB on. Without, a restart loses the views since the last flush, and all read state."
)
SCRIPT_RIGHTS = gettext_noop(
    "Nothing is counted without: let its user run SCRIPT LOAD, EVALSHA and what readtrack/store/lua calls."
)


def answers(order: Order) -> Iterator[Finding]:
    """How long a page waits for an answer."""
    took = server.ping()
    message = gettext("A PING takes %(milliseconds)s ms.") % {"milliseconds": number_format(took * 1000, 2)}
    if took > SLOW:
        hint = gettext("Every page waits this long: put Redis nearer to the web servers.")
        yield Finding("warning", message, hint)
    else:
        yield Finding("ok", message)


def version(order: Order) -> Iterator[Finding]:
    """Whether it knows the commands that the scripts use."""
    # Valkey also names a version of Redis, which says nothing of itself.
    name = "Valkey" if "valkey_version" in order.info else "Redis"
    found = str(order.info.get("valkey_version") or order.info.get("redis_version") or "")
    message = gettext("The server is %(name)s %(version)s.") % {"name": name, "version": found}
    if not found:
        hint = gettext("It has to be Redis 6.2 or newer, or Valkey.")
        yield Finding("note", gettext("The server does not tell its version."), hint)
    elif tuple(int(part) for part in found.split(".")[:2]) < OLDEST:
        yield Finding("error", message, gettext("Upgrade it to Redis 6.2 or newer, or to Valkey."))
    else:
        yield Finding("ok", message)


def eviction(order: Order) -> Iterator[Finding]:
    """Whether it throws counts away when its memory is full."""
    policy = str(order.info.get("maxmemory_policy", ""))
    limit, used = int(order.info.get("maxmemory", 0)), int(order.info.get("used_memory", 0))
    if not policy:
        hint = gettext("It has to be noeviction.")
        yield Finding("note", gettext("The server does not tell its maxmemory-policy."), hint)
    elif policy.startswith("allkeys"):
        message = gettext("maxmemory-policy is %(policy)s: Redis may delete counts.") % {"policy": policy}
        hint = gettext("Set maxmemory-policy to noeviction, and give caches a Redis of their own.")
        yield Finding("error", message, hint)
    elif policy != "noeviction":
        message = gettext("maxmemory-policy is %(policy)s: Redis may delete what tells repeats.") % {"policy": policy}
        hint = gettext("Set maxmemory-policy to noeviction, or a reload may count as another view.")
        yield Finding("warning", message, hint)
    elif limit and used > limit * NEARLY_FULL:
        message = gettext("Redis uses %(used)s of the %(limit)s it may, and then counts nothing more.")
        sizes = {"used": _size(used), "limit": _size(limit)}
        yield Finding("warning", message % sizes, gettext("Raise maxmemory."))
    else:
        yield Finding("ok", gettext("maxmemory-policy is noeviction."))


def persistence(order: Order) -> Iterator[Finding]:
    """What is left after it restarts."""
    if not order.info:
        hint = gettext("Turn its RDB or AOF on.")
        yield Finding("note", gettext("The server does not tell whether it saves its data."), hint)
        return
    full = gettext("Look into its log: is the disk full?")
    if order.info.get("rdb_last_bgsave_status", "ok") != "ok":
        yield Finding("error", gettext("Redis's last dump failed."), full)
    if order.info.get("aof_last_write_status", "ok") != "ok":
        yield Finding("error", gettext("Redis's last write to the log failed."), full)
    saves = server.configured("save")
    if order.info.get("aof_enabled"):
        yield Finding("ok", gettext("Redis logs every write (AOF)."))
    elif saves:
        yield Finding("ok", gettext("Redis saves dumps (RDB, save %(times)s).") % {"times": saves})
    elif saves is None:
        message = gettext("The server does not tell whether it saves dumps, and has no AOF.")
        yield Finding("note", message, gettext("Turn one of them on."))
    else:
        yield Finding("warning", gettext("Redis keeps nothing over a restart."), gettext(TURN_ON))


def role(order: Order) -> Iterator[Finding]:
    """Whether it takes writes, and holds all keys."""
    if int(order.info.get("cluster_enabled", 0)):
        hint = gettext("Point CACHES at a Redis that is not, as yet.")
        yield Finding("error", gettext("The server is part of a cluster."), hint)
    elif order.info.get("role") == "slave":
        hint = gettext("Point CACHES at the primary.")
        yield Finding("error", gettext("The server is a replica, and takes no writes."), hint)
    elif order.info:
        count = int(order.info.get("connected_slaves", 0))
        message = ngettext(
            "The server is a primary, with %(count)s replica.",
            "The server is a primary, with %(count)s replicas.",
            count,
        )
        yield Finding("ok", message % {"count": exact(count)})
    else:
        hint = gettext("It has to be one.")
        yield Finding("note", gettext("The server does not tell whether it is a primary."), hint)


def scripts(order: Order) -> Iterator[Finding]:
    """Whether our Lua may run there."""
    try:
        server.try_scripts()
    except server.Refused as error:
        message = gettext("Redis refuses the scripts: %(error)s") % {"error": error}
        yield Finding("error", message, gettext(SCRIPT_RIGHTS))
    else:
        yield Finding("ok", gettext("The scripts load and run."))


def memory(order: Order) -> Iterator[Finding]:
    """What Redis uses, and what our keys take of it, by kind."""
    found = server.families(sample=order.sample, progress=order.progress)
    parts = ", ".join(_family(one) for one in found) or gettext("no keys yet")
    ours = gettext("Ours, estimated: %(parts)s.") % {"parts": parts}
    if order.info:
        used = gettext("Redis uses %(size)s.") % {"size": _size(int(order.info["used_memory"]))}
        ours = f"{used} {ours}"
    yield Finding("ok", ours)


def _family(one: server.Family) -> str:
    words = ngettext("%(name)s %(size)s in %(count)s key", "%(name)s %(size)s in %(count)s keys", one.keys)
    return words % {"name": one.name, "size": _size(one.memory), "count": exact(one.keys)}


def _size(count: int) -> str:
    return filesizeformat(count).replace("\xa0", " ")
