"""Facts about the Redis server and its keys, for the doctor and the budget. Nothing here changes a site's keys."""

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from statistics import fmean
from typing import Any

from redis.exceptions import ResponseError
from redis.utils import str_if_bytes

from readtrack.store import counters, keys, scripts
from readtrack.store.connection import connect, servers

RefusedError = ResponseError  # the server answers that it may not, cannot or will not

WEIGHED = 200  # keys of one kind that are weighed, at most
STEP = 1_000  # keys in one SCAN, and in one command

# The command that adds a member to a key of that type, and what it takes.
MEMBERS: dict[str, tuple[str, Callable[[int], tuple[str | int, ...]]]] = {
    "HyperLogLog": ("PFADD", lambda number: (f"{number:016}",)),
    "set": ("SADD", lambda number: (f"{number:016}",)),
    "set of integers": ("SADD", lambda number: (number * 2_654_435_761 % 2**31,)),
    "sorted set": ("ZADD", lambda number: (number, f"{number:016}")),
    "hash": ("HSET", lambda number: (f"{number:016}", number)),
    "hash of readers": ("HSET", lambda number: (f"{number:016}", number)),
}
BITS = {"bitmap": 1, "numbers": 32}  # of a member


@dataclass(frozen=True, slots=True)
class KeyKind:
    """Keys of one kind: their number, the average size of one and the size of all (bytes)."""

    keys: int
    each: float
    total: int


def configured(name: str, client: Any) -> str | None:
    """Returns a directive of a server's configuration; None where the Redis user may not read it."""
    try:
        values = client.config_get(name)
    except RefusedError:  # hosted servers refuse CONFIG altogether
        return None
    return next((str_if_bytes(value) for value in values.values()), None)


def key_kinds(limit: int = 200_000) -> dict[str, KeyKind]:
    """Returns the keys of each row of the table, "other" ones too, largest first, reckoned from `limit` at most."""
    groups: defaultdict[keys.Key | None, list[bytes]] = defaultdict(list)
    nodes: Any = servers(patient=True)
    scans = (islice(one.scan_iter(count=STEP), limit // len(nodes)) for one in nodes)
    scanned = dict.fromkeys(chain.from_iterable(scans))  # SCAN may return a key twice
    for key in scanned:
        groups[keys.parse(key.decode(errors="replace"))[0]].append(key)
    scale = max(1.0, sum(one.dbsize() for one in nodes) / len(scanned)) if scanned else 1.0
    found = {}
    for row, group in groups.items():
        calls = [scripts.Call[int | None]("MEMORY", ["USAGE"], (key,)) for key in group[:WEIGHED]]
        sizes = list(filter(None, scripts.run_all(*calls, patient=True)))  # None: it expired meanwhile
        each, count = fmean(sizes or [0]) + (row.overhead if row else 0), round(len(group) * scale)
        found[row.pattern if row else "other"] = KeyKind(count, round(each, 1), round(each * count))
    return dict(sorted(found.items(), key=lambda item: item[1].total, reverse=True))


def measure(row: keys.Key, *, length: int, count: int) -> int:
    """Returns the bytes of a key of the row with a name of that length and so many members: writes it for a moment."""
    name = keys.budget("", secrets.token_hex(4), row.type[0]).ljust(length, "0")
    writes: list[tuple[str | int, ...]] = [("SET", 10**6)]
    if row.type in BITS:
        writes = [("SETBIT", max(1, count) * BITS[row.type] - 1, 1)]
    elif row.type in MEMBERS:
        command, member = MEMBERS[row.type]
        portions = scripts.sliced(range(max(1, count)), STEP)
        writes = [(command, *chain.from_iterable(map(member, some))) for some in portions]
    calls = [scripts.Call[int]("write", [name], (keys.budget.ttl, *words)) for words in writes]
    weigh = scripts.Call("MEMORY", ["USAGE"], (name, "SAMPLES", 0), lambda size: size or 0)
    try:
        return int(scripts.run_all(*calls, weigh, patient=True)[-1]) + row.overhead
    finally:
        connect(patient=True).unlink(name)


def some_totals(limit: int = 1_000_000) -> Iterator[tuple[str, counters.Total | None]]:  # two seconds
    """Yields some totals by subject, `limit` at most; None for one that is no number, or was removed meanwhile."""
    for some in scripts.parted(list(dict.fromkeys(islice(counters.scan(), limit)))):
        found = scripts.run(counters.totals(some), patient=True)
        yield from ((subject, found.get(subject)) for subject in some)
