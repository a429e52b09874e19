"""The memory that keys take in Redis: existing keys, and a key that is written for a moment."""

import secrets
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, islice
from statistics import fmean
from typing import Any, NamedTuple

from readtrack.metrics.keys import weighed
from readtrack.store import keys, scripts
from readtrack.store.connection import connect, servers

SAMPLE = 200  # keys of one kind that are weighed at most
STEP = 1_000  # keys in one SCAN, and members in one command
# Larger keys are not written, because from here on their memory grows evenly.
MOST_MEMBERS = 20_000
MOST_BITS = 8_000_000  # of a bitmap, 1 MB

BITS = {"bitmap": 1, "numbers": 32}  # bits of a member, by the type of the key


class Addition(NamedTuple):
    """How members are added to a key."""

    command: str
    arguments: Callable[[int], tuple[str | int, ...]]  # for the member with that number


def _name(number: int) -> str:
    return f"{number:016}"


def _only_name(number: int) -> tuple[str | int, ...]:
    return (_name(number),)


def _score_and_name(number: int) -> tuple[str | int, ...]:
    return (number, _name(number))


def _key_and_time(number: int) -> tuple[str | int, ...]:
    return (1_000_000 + number, 1_764_000_000_000_000 + number)


def _time_and_name(number: int) -> tuple[str | int, ...]:
    return (1_764_000_000_000_000 + number, f"forum.post:{1_000_000 + number}")


def _field_and_value(number: int) -> tuple[str | int, ...]:
    return (_name(number), number)


# By the type of the key.
ADDITIONS = {
    "HyperLogLog": Addition("PFADD", _only_name),
    "set": Addition("SADD", _only_name),
    "sorted set": Addition("ZADD", _score_and_name),
    "hash": Addition("HSET", _field_and_value),
    "hash of times": Addition("HSET", _key_and_time),
    "set of times": Addition("ZADD", _time_and_name),
    "hash of readers": Addition("HSET", _field_and_value),
}


@dataclass(frozen=True, slots=True)
class KeyKind:
    """The keys of one row of the key table."""

    keys: int  # their number
    each: float  # the average size of a key (bytes)
    total: int  # the size of all keys (bytes)


def key_kinds(limit: int = 200_000) -> dict[str, KeyKind]:
    """Returns the kinds of keys in Redis by pattern, largest first; "other" has unknown keys.

    They are estimated by a sample of `limit` keys at most. Raises redis.RedisError.
    """
    clients: Any = servers(patient=True)
    scans = [islice(client.scan_iter(count=STEP), limit // len(clients)) for client in clients]
    sample = dict.fromkeys(chain.from_iterable(scans))  # SCAN may return a key twice
    if not sample:
        return {}
    keys_by_row: defaultdict[keys.Key | None, list[bytes]] = defaultdict(list)
    for key in sample:
        row, _ = keys.parse(key.decode(errors="replace"))
        keys_by_row[row].append(key)
    number_of_all = sum(client.dbsize() for client in clients)
    scale = max(1.0, number_of_all / len(sample))
    kinds = {}
    for row, keys_of_row in keys_by_row.items():
        pattern = row.pattern if row else "other"
        each = _average_size(keys_of_row[:SAMPLE])
        if row:
            each += overhead(row)
        count = round(len(keys_of_row) * scale)
        kinds[pattern] = KeyKind(count, round(each, 1), round(each * count))
    largest_first = sorted(kinds.items(), key=lambda item: item[1].total, reverse=True)
    return dict(largest_first)


def overhead(row: keys.Key) -> int:
    """Returns the bytes that a key of the row takes in tables of the server, which MEMORY USAGE
    leaves out. Measured with Redis 7 and Valkey 9.
    """
    if row.ttl:  # the key is in the table of those that expire, too
        return 30
    return 16


def _average_size(sample: list[bytes]) -> float:
    """Returns the average memory of the keys (bytes), 0 if all of them expired meanwhile."""
    calls = [scripts.Call[int | None]("MEMORY", ["USAGE"], (key,)) for key in sample]
    sizes = [size for size in scripts.run_all(*calls, patient=True) if size]
    return fmean(sizes) if sizes else 0.0


def weigh(row: keys.Key, *, length: int, members: float) -> float:
    """Returns the memory of a key of the row with so many members (bytes).

    Writes such a key for a moment, whose name has the given length (characters). Raises
    redis.RedisError.
    """
    most_members = _most_members(row)
    members_to_write = max(1, min(round(members), most_members))
    nonce = secrets.token_hex(4)  # in the name, so that two commands at once do not meet
    name = weighed("", nonce, row.type[0]).ljust(length, "0")
    writes = [
        scripts.Call[int]("write", [name], (weighed.ttl, *command))
        for command in _commands(row, members_to_write)
    ]
    # With SAMPLES 0 Redis measures all members.
    usage = scripts.Call[int | None]("MEMORY", ["USAGE"], (name, "SAMPLES", 0))
    try:
        scripts.run_all(*writes, usage, patient=True)
    finally:
        connect(patient=True).unlink(name)
    size = (usage.result or 0) + overhead(row)
    has_members = row.type in BITS or row.type in ADDITIONS
    if has_members and members > most_members:
        return size * members / most_members
    return size


def _most_members(row: keys.Key) -> int:
    """Returns the number of members up to which a key of the row is written."""
    if row.type in BITS:
        return MOST_BITS // BITS[row.type]
    return MOST_MEMBERS


def _commands(row: keys.Key, count: int) -> list[tuple[str | int, ...]]:
    """Returns commands that write a key of the row with `count` members.

    The name of the key, which comes behind the name of the command, is left out.
    """
    if row.type in BITS:
        last_bit = count * BITS[row.type] - 1
        return [("SETBIT", last_bit, 1)]
    if row.type not in ADDITIONS:
        return [("SET", 10**6)]
    addition = ADDITIONS[row.type]
    commands: list[tuple[str | int, ...]] = []
    for numbers in scripts.sliced(range(count), STEP):
        command: list[str | int] = [addition.command]
        for number in numbers:
            command += addition.arguments(number)
        commands.append(tuple(command))
    return commands
