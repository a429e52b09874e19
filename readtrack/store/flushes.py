"""Redis's side of flushes: their times, requested full ones, resets, and subjects without a row."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from readtrack.store import keys, scripts
from readtrack.store.connection import connect
from readtrack.store.scripts import Call

ORPHAN_NOTE = 30 * keys.DAY * 1_000_000  # µs after which the note about a missing row is deleted


class FlushMemory(NamedTuple):
    """Times by Redis's clock (µs, 0 for none): of the last flush, the last requested full one, the last full one."""

    last: int = 0
    requested: int = 0
    full: int = 0


def memory() -> FlushMemory:
    """Returns what this Redis knows. Raises redis.RedisError."""
    times = connect(patient=True).mget([keys.flush_last(), keys.flush_requested(), keys.flush_full()])
    last, requested, full = (int(time or 0) for time in times)
    # If the first key alone was evicted, Redis still knows of the resets before its last full flush.
    return FlushMemory(max(last, full), requested, full)


def note(time: int, *, known: int) -> bool:
    """Notes the time of a flush (µs). Returns False if Redis was rolled back since the time `known` was read."""
    return scripts.run(Call("note_flush", [keys.flush_last(), keys.flush_full()], (known, time), bool), patient=True)


def request_full_flush(since: int) -> None:
    """Requests a full flush that begins after this time (µs), because Redis was restored from a snapshot."""
    connect(patient=True).set(keys.flush_requested(), since)


def note_full(started: int) -> None:
    """Notes a full flush that began at this time (µs) and ended well. Deletes notes of orphans older than 30 days."""
    client = connect(patient=True)
    client.set(keys.flush_full(), started)
    client.zremrangebyscore(keys.flush_orphans(), "-inf", started - ORPHAN_NOTE)


def resets() -> dict[str, int]:
    """Returns the subjects that were reset lately, and when (µs)."""
    client: Any = connect(patient=True)
    found = client.zrange(keys.reset(), 0, -1, withscores=True)
    return {subject.decode(): int(time) for subject, time in found}


def delete_resets(*, until: int) -> None:
    """Deletes the notes of all resets before that time (µs)."""
    connect(patient=True).zremrangebyscore(keys.reset(), "-inf", f"({until}")


def delete_reset(subject: str, *, at: int) -> None:
    """Deletes the note of the reset at that time (µs); a later one stays."""
    client: Any = connect(patient=True)
    if client.zscore(keys.reset(), subject) == at:
        client.zrem(keys.reset(), subject)


def ripe_orphans(subjects: Sequence[str], *, age: int) -> Call[list[str]]:
    """Notes that these subjects have no row; the answer is those noted at least `age` seconds ago."""
    names = [keys.flush_orphans()]
    return Call("orphan", names, (age * 1_000_000, *subjects), lambda found: [name.decode() for name in found])
