"""Facts about the Redis server and its keys, for the doctor and the budget. Nothing here changes a site's keys."""

import secrets
import timeit
from collections import ChainMap, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from redis.exceptions import ResponseError
from redis.utils import str_if_bytes

from readtrack.store import counters, keys, scripts
from readtrack.store.connection import connect, servers
from readtrack.store.counters import Total
from readtrack.store.keys import Key

RefusedError = ResponseError  # the server answers that it may not, cannot or will not

PINGS = 5
SCANNED = 200_000  # keys that are looked at, at most
WEIGHED = 200  # keys of one kind that are weighed, at most
TOTALS = 1_000_000  # that are looked at, at most: two seconds
STEP = 1_000  # keys in one SCAN, and in one command

# The command that adds a member to a key of that type, and what it takes.
MEMBERS: dict[str, tuple[str, Callable[[int], tuple[object, ...]]]] = {
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


def ping() -> float:
    """Returns the time that a page waits for the fastest of a few answers (seconds)."""
    return min(timeit.repeat(connect().ping, number=1, repeat=PINGS))


def info(client: Any = None) -> dict[str, Any]:
    """Returns the INFO of a server, by default of the only one. Raises RefusedError where the user may not run it."""
    found: dict[str, Any] = (client or connect()).info()
    return found


def configured(name: str, client: Any = None) -> str | None:
    """Returns a directive of a server's configuration; None where the Redis user may not read it."""
    client = client or connect(patient=True)
    try:
        values = client.config_get(name)
    except RefusedError:  # hosted servers refuse CONFIG altogether
        return None
    return next((str_if_bytes(value) for value in values.values()), None)


def try_scripts() -> None:
    """Loads every script and runs one, by its text and by its digest. Raises RefusedError where the user may not."""
    for client in servers(patient=True):
        client.eval("return 1", 0)
        scripts.load(client)
    scripts.run_all(*map(counters.epoch, keys.tags()), patient=True)


def key_kinds(limit: int = SCANNED) -> dict[str, KeyKind]:
    """Returns the keys of each row of the table, "other" ones too, largest first, reckoned from a sample."""
    client: Any = connect(patient=True)
    groups: defaultdict[str, list[bytes]] = defaultdict(list)
    nodes: Any = servers(patient=True)
    scans = (islice(one.scan_iter(count=STEP), limit // len(nodes)) for one in nodes)
    scanned = dict.fromkeys(chain.from_iterable(scans))  # SCAN may return a key twice
    for key in scanned:
        groups[keys.kind_of(key.decode(errors="replace"))].append(key)
    scale = max(1.0, sum(one.dbsize() for one in nodes) / len(scanned)) if scanned else 1.0
    found, overheads = {}, {row.pattern: row.overhead for row in keys.KEYS}
    for name, group in groups.items():
        each, count = _weigh(client, group[:WEIGHED]) + overheads.get(name, 0), round(len(group) * scale)
        found[name] = KeyKind(count, round(each, 1), round(each * count))
    return dict(sorted(found.items(), key=lambda item: item[1].total, reverse=True))


def _weigh(client: Any, some: Sequence[bytes]) -> float:
    """Returns the average size of the keys (bytes)."""
    pipeline = client.pipeline(transaction=False)
    for key in some:
        pipeline.memory_usage(key)
    sizes = [size for size in pipeline.execute() if size]  # None: it expired meanwhile
    return sum(sizes) / len(sizes) if sizes else 0.0


def measure(wanted: Mapping[Key, tuple[int, int]]) -> dict[Key, int]:
    """Returns the bytes of a key of each row, by lengths of name and members: writes such keys for a moment."""
    client: Any = connect(patient=True)
    nonce, sizes = secrets.token_hex(4), {}
    for row, (length, count) in wanted.items():
        name = keys.budget("", nonce, row.type[0]).ljust(length, "0")
        pipeline = client.pipeline(transaction=True)  # so that the key is never without its expiry
        for command in _commands(row.type, name, max(1, count)):
            pipeline.execute_command(*command)
        pipeline.expire(name, keys.budget.ttl).memory_usage(name, samples=0)
        try:
            sizes[row] = (pipeline.execute()[-1] or 0) + row.overhead
        finally:
            client.unlink(name)
    return sizes


def _commands(kind: str, name: str, count: int) -> Iterator[tuple[object, ...]]:
    """Yields the commands that make a key of that type with that number of members."""
    if kind in BITS:
        yield "SETBIT", name, count * BITS[kind] - 1, 1
    elif kind in MEMBERS:
        command, member = MEMBERS[kind]
        for start in range(0, count, STEP):
            yield command, name, *chain.from_iterable(map(member, range(start, min(start + STEP, count))))
    else:
        yield "SET", name, 10**6


def some_totals(limit: int) -> dict[str, Total]:
    """Returns the totals of some subjects, `limit` at most."""
    subjects = list(dict.fromkeys(islice(counters.scan(), limit)))
    answers = scripts.run_all(*map(counters.totals, scripts.parted(subjects)), patient=True)
    return dict(ChainMap(*answers))


def broken_totals() -> tuple[int, list[str]]:
    """Returns the number of totals that were looked at, TOTALS at most, and the keys of those that are no number."""
    client: Any = connect(patient=True)
    subjects = list(dict.fromkeys(islice(counters.scan(), TOTALS)))
    broken = []
    for some in scripts.parted(subjects):
        names = [keys.total(subject) for subject in some]
        found = zip(names, client.mget(names), strict=True)
        broken += [name for name, text in found if text is None or not counters.is_number(text)]
    # One without a string is of another type, or was removed meanwhile.
    return len(subjects), [name for name in broken if client.exists(name)]
