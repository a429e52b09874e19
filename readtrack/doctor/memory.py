"""Memory of keys in Redis: of those that are there now, and of one that is written for a moment."""

import secrets
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, islice
from statistics import fmean
from typing import Any, NamedTuple

from readtrack.store import keys, scripts
from readtrack.store.connection import connect, servers

SAMPLE = 200  # keys of one kind that are weighed, at most
STEP = 1_000  # keys in one SCAN, and members in one command
MOST_MEMBERS = 20_000  # of a key that is written; larger ones grow evenly
MOST_BITS = 8_000_000  # of a bitmap that is written, 1 MB; larger ones grow evenly

BITS = {"bitmap": 1, "numbers": 32}  # of a member, by the type of a key


class Member(NamedTuple):
    """How a member is added to a key."""

    command: str
    arguments: Callable[[int], tuple[str | int, ...]]  # by the number of the member


def _name(number: int) -> str:
    return f"{number:016}"


# By the type of a key.
MEMBERS = {
    "HyperLogLog": Member("PFADD", lambda number: (_name(number),)),
    "set": Member("SADD", lambda number: (_name(number),)),
    "sorted set": Member("ZADD", lambda number: (number, _name(number))),
    "hash": Member("HSET", lambda number: (_name(number), number)),
    "hash of readers": Member("HSET", lambda number: (_name(number), number)),
}


@dataclass(frozen=True, slots=True)
class KeyKind:
    """Keys of one kind: their number, the average size of one and the size of all (bytes)."""

    keys: int
    each: float
    total: int


def key_kinds(limit: int = 200_000) -> dict[str, KeyKind]:
    """Returns the kinds of keys in Redis by pattern, largest first, and "other" for unknown ones.

    They are estimated by a sample of `limit` keys at most. Raises redis.RedisError.
    """
    clients: Any = servers(patient=True)
    scans = [islice(client.scan_iter(count=STEP), limit // len(clients)) for client in clients]
    names = dict.fromkeys(chain.from_iterable(scans))  # SCAN may return a key twice
    if not names:
        return {}
    names_by_row: defaultdict[keys.Key | None, list[bytes]] = defaultdict(list)
    for name in names:
        row, _ = keys.parse(name.decode(errors="replace"))
        names_by_row[row].append(name)
    in_all = sum(client.dbsize() for client in clients)
    scale = max(1.0, in_all / len(names))
    kinds = {}
    for row, group in names_by_row.items():
        pattern = row.pattern if row else "other"
        each = _average_size(group[:SAMPLE])
        if row:
            each += row.overhead
        count = round(len(group) * scale)
        kinds[pattern] = KeyKind(count, round(each, 1), round(each * count))
    largest_first = sorted(kinds.items(), key=lambda item: item[1].total, reverse=True)
    return dict(largest_first)


def _average_size(names: list[bytes]) -> float:
    """Returns the average memory of keys (bytes), 0 if all of them expired meanwhile."""
    calls = [scripts.Call[int | None]("MEMORY", ["USAGE"], (name,)) for name in names]
    sizes = [size for size in scripts.run_all(*calls, patient=True) if size]
    return fmean(sizes) if sizes else 0.0


def weigh(row: keys.Key, *, length: int, members: float) -> float:
    """Returns the memory of a key of the row (bytes), by writing one for a moment.

    The name of the key has that length. Raises redis.RedisError.
    """
    most = _most_members(row)
    count = max(1, min(round(members), most))
    name = keys.budget("", secrets.token_hex(4), row.type[0]).ljust(length, "0")
    writes = [
        scripts.Call[int]("write", [name], (keys.budget.ttl, *command))
        for command in _commands(row, count)
    ]
    usage = scripts.Call("MEMORY", ["USAGE"], (name, "SAMPLES", 0), lambda size: size or 0)
    try:
        *_, size = scripts.run_all(*writes, usage, patient=True)
    finally:
        connect(patient=True).unlink(name)
    written = int(size) + row.overhead
    has_members = row.type in BITS or row.type in MEMBERS
    if has_members and members > most:
        return written * members / most
    return written


def _most_members(row: keys.Key) -> int:
    """Returns the number of members up to which a key of the row is written."""
    if row.type in BITS:
        return MOST_BITS // BITS[row.type]
    return MOST_MEMBERS


def _commands(row: keys.Key, count: int) -> list[tuple[str | int, ...]]:
    """Returns commands, without the key, that write a key of the row with so many members."""
    if row.type in BITS:
        return [("SETBIT", count * BITS[row.type] - 1, 1)]
    if row.type not in MEMBERS:
        return [("SET", 10**6)]
    member = MEMBERS[row.type]
    commands: list[tuple[str | int, ...]] = []
    for portion in scripts.sliced(range(count), STEP):
        arguments = chain.from_iterable(member.arguments(number) for number in portion)
        commands.append((member.command, *arguments))
    return commands
