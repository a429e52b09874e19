"""Redis's side of flushes: their times, requested full ones, resets, and subjects without a row."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from readtrack.conf import conf
from readtrack.store import keys, scripts
from readtrack.store.connection import RedisError, connect, server_time
from readtrack.store.scripts import Call


class LayoutError(RedisError):
    """PARTITIONS was changed, and the keys are not moved yet."""


class FlushMemory(NamedTuple):
    """Times by Redis's clock (µs, 0 for none): of the last flush, the last requested full one, the last full one."""

    last: int = 0
    requested: int = 0
    full: int = 0


def memories(tags: Sequence[str]) -> dict[str, FlushMemory]:
    """Returns what each of these partitions knows, by tag. Raises redis.RedisError, and LayoutError before a move."""
    rows = (keys.flush_last, keys.flush_requested, keys.flush_full)
    calls = (Call("MGET", [row(tag) for row in rows], (), list) for tag in tags)
    layout = Call("layout", [keys.flush_layout("")], (conf.PARTITIONS,), int)
    known, *answers = scripts.run_all(layout, *calls, patient=True)
    if known != conf.PARTITIONS:
        raise LayoutError(f"Redis has {known} partitions. Run: manage.py readtrack repartition")
    found = {}
    for tag, times in zip(tags, answers, strict=True):
        last, requested, full = (int(time or 0) for time in times)
        # If the first key alone was evicted, Redis still knows of the resets before its last full flush.
        found[tag] = FlushMemory(max(last, full), requested, full)
    return found


def note(time: int, *, known: Mapping[str, int]) -> bool:
    """Notes the time of a flush (µs). Returns False if a partition was rolled back since `known` was read."""
    rows = (keys.flush_last, keys.flush_full)
    calls = (Call("note_flush", [row(tag) for row in rows], (last, time), bool) for tag, last in known.items())
    return all(scripts.run_all(*calls, patient=True))


def begin_anew(tag: str, *, newest: int) -> int:
    """Requests a full flush of a restored partition, that begins after the time (µs) which it returns."""
    # Without earlier resets, because its live counts may be too low to lower SQL's to them.
    connect(patient=True).zremrangebyscore(keys.reset(tag), "-inf", f"({newest}")
    since = max(server_time(patient=True), newest + 1)
    connect(patient=True).set(keys.flush_requested(tag), since)
    return since


def note_full(started: int, *, tags: Sequence[str]) -> None:
    """Notes a full flush that began at this time (µs) and ended well. Deletes notes of orphans older than 30 days."""
    notes = [Call("SET", [keys.flush_full(tag)], (started,), bool) for tag in tags]
    args = ("-inf", started - 30 * keys.DAY * 1_000_000)
    old = [Call("ZREMRANGEBYSCORE", [keys.flush_orphans(tag)], args, int) for tag in tags]
    scripts.run_all(*notes, *old, patient=True)


def resets(tags: Sequence[str] = ()) -> dict[str, int]:
    """Returns the subjects that were reset lately, and when (µs)."""
    calls = [Call("ZRANGE", [keys.reset(tag)], (0, -1, "WITHSCORES"), scripts.pairs) for tag in tags or keys.tags()]
    return dict(chain(*scripts.run_all(*calls, patient=True)))


def delete_reset(subject: str, *, at: int) -> None:
    """Deletes the note of the reset at that time (µs); a later one stays."""
    client: Any = connect(patient=True)
    name = keys.reset(keys.tag(subject))
    if client.zscore(name, subject) == at:
        client.zrem(name, subject)


def ripe_orphans(subjects: Sequence[str], *, age: int) -> Call[list[str]]:
    """Notes that subjects of a partition have no row; the answer is those noted at least `age` seconds ago."""
    name = keys.flush_orphans(keys.tag(subjects[0]))
    return Call("orphan", [name], (age * 1_000_000, *subjects), scripts.names)
