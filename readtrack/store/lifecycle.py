"""The life of keys: what flushes note, resets, removing and erasing, and the move after PARTITIONS
was multiplied.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote

from django.core.signals import setting_changed

from readtrack.conf import conf
from readtrack.hits.visitors import user_id
from readtrack.store import keys, read_state, scripts
from readtrack.store.connection import RedisError, connect, server_time
from readtrack.store.scripts import Call

SCAN_COUNT = 1000  # keys looked at in one SCAN step, which scripts then work through
# Copied to each partition that is made out of theirs. Those of the whole site are in the first
# partition.
OF_READERS = (keys.readers, keys.anonymous_readers)
OF_PARTITION = (
    keys.reads_began,
    *OF_READERS,
    keys.readers_next,
    keys.flush_last,
    keys.flush_full,
)
OF_SITE = (keys.day_key, keys.skips)
BY_SUBJECT = (
    keys.reset,
    keys.trending_bucket,
)  # sorted sets of subjects: the entries move, each to its partition
NOT_MOVED = (keys.flush_layout, keys.budget)


class LayoutError(RedisError):
    """PARTITIONS was changed, and the keys are not moved yet."""


def last_flushes(tags: Sequence[str]) -> tuple[dict[str, int], bool]:
    """Returns the time of the last flush of each partition (µs, 0 for none), and True if one waits
    for a full flush.

    Raises redis.RedisError, and LayoutError before a move.
    """
    rows = (keys.flush_last, keys.flush_requested, keys.flush_full)
    calls = (Call("MGET", [row(tag) for row in rows], (), list) for tag in tags)
    partitions = Call("layout", [keys.flush_layout("")], (conf.PARTITIONS,), int)
    known, *answers = scripts.run_all(partitions, *calls, patient=True)
    if known != conf.PARTITIONS:
        raise LayoutError(f"Redis has {known} partitions. Run: manage.py readtrack repartition")
    times = [[int(time or 0) for time in answer] for answer in answers]
    # If the first key alone was evicted, Redis still knows of the resets before its last full
    # flush.
    found = {tag: max(last, full) for tag, (last, _, full) in zip(tags, times, strict=True)}
    # Until a full flush that began after the request has ended well.
    return found, any(requested > full for _, requested, full in times)


def note_flush(time: int, *, known: Mapping[str, int]) -> bool:
    """Notes the time of a flush (µs). Returns False if a partition was rolled back since `known`
    was read.
    """
    rows = (keys.flush_last, keys.flush_full)
    calls = (
        Call("note_flush", [row(tag) for row in rows], (last, time), bool)
        for tag, last in known.items()
    )
    return all(scripts.run_all(*calls, patient=True))


def begin_anew(tag: str, *, newest: int) -> None:
    """Requests a full flush of a restored partition. `newest` is the last one (µs) that it should
    know.
    """
    # Without earlier resets, because its live counts may be too low to lower SQL's to them.
    connect(patient=True).zremrangebyscore(keys.reset(tag), "-inf", f"({newest}")
    connect(patient=True).set(keys.flush_requested(tag), max(server_time(patient=True), newest + 1))


def note_full(started: int, *, tags: Sequence[str]) -> None:
    """Notes a full flush that began at this time (µs) and ended well. Deletes notes of orphans
    older than 30 days.
    """
    notes = [Call("SET", [keys.flush_full(tag)], (started,), bool) for tag in tags]
    args = ("-inf", started - 30 * keys.DAY * 1_000_000)
    old = [Call("ZREMRANGEBYSCORE", [keys.flush_orphans(tag)], args, int) for tag in tags]
    scripts.run_all(*notes, *old, patient=True)


def resets(tags: Sequence[str] = ()) -> dict[str, int]:
    """Returns the subjects that were reset lately, and when (µs)."""
    calls = [
        Call("ZRANGE", [keys.reset(tag)], (0, -1, "WITHSCORES"), scripts.pairs)
        for tag in tags or keys.tags()
    ]
    return dict(chain(*scripts.run_all(*calls, patient=True)))


def reset(subjects: Sequence[str]) -> Call[int]:
    """Sets the subjects to zero; the answer is Redis's time of it (µs)."""
    return _call("reset", [keys.unsettled, keys.reset], {subject: {} for subject in subjects})


def purge(subjects: Sequence[str], times: Mapping[str, int]) -> Call[int]:
    """Removes counts from before the resets (µs); the answer is how many resets this Redis did not
    know of.
    """
    rows = {subject: {"time": times[subject]} for subject in subjects}
    return _call("purge", [keys.unsettled, keys.reset, keys.flush_last, keys.flush_full], rows)


def delete_reset(subject: str, *, at: int) -> None:
    """Deletes the note of the reset at that time (µs); a later one stays."""
    client: Any = connect(patient=True)
    name = keys.reset(keys.tag(subject))
    if client.zscore(name, subject) == at:
        client.zrem(name, subject)


def ripe_orphans(subjects: Sequence[str], *, age: int) -> Call[list[str]]:
    """Notes that subjects of a partition have no row; the answer is those noted at least `age`
    seconds ago.
    """
    return Call(
        "orphan",
        [keys.flush_orphans(keys.tag(subjects[0]))],
        (age * 1_000_000, *subjects),
        scripts.names,
    )


def remove(subjects: Sequence[str]) -> Call[int]:
    """Removes all keys of the subjects, which are of one partition; the answer is how many
    subjects.
    """
    return _call(
        "remove", [keys.unsettled, keys.flush_orphans], {subject: {} for subject in subjects}
    )


def remove_idle(
    views: Mapping[str, int], hashes: Mapping[tuple[str, str], Mapping[str, int]]
) -> Call[int]:
    """Removes subjects that hold exactly what SQL stores: the total, and the sum of the counts of
    each kind of hash.
    """
    rows = {}
    for subject, total in views.items():
        sums = [sum(hashes.get((kind, subject), {}).values()) for kind in keys.hash_kinds()]
        rows[subject] = {"stored": {"views": str(total), "sums": sums}}
    return _call("remove", [keys.unsettled, keys.flush_orphans], rows)


def _call(script: str, shared: Sequence[keys.Key], rows: Mapping[str, dict[str, Any]]) -> Call[int]:
    """Returns the script's call with the partition's keys, those of each subject, and rows that say
    where they are.
    """
    kinds, prefix, tag = keys.hash_kinds(), keys.prefix(), keys.tag(next(iter(rows)))
    names, found = [row(tag) for row in shared], list[dict[str, Any]]()
    for subject, row in rows.items():
        first, hashes = len(names) + 1, [keys.member(kind, subject) for kind in kinds]
        names += (keys.total(subject), keys.hll(subject), *(prefix + name for name in hashes))
        names += (one(subject) for one in (keys.unique, keys.daily, keys.bitmap, keys.earlier))
        found.append(
            {
                "subject": subject,
                "names": [subject, *hashes],
                "first": first,
                "last": len(names),
                **row,
            }
        )
    return Call(script, names, (json.dumps(found),), int)


def subjects(label: str) -> Iterator[str]:
    """Yields the subjects of that model which have counts or read state, unordered and some more
    than once.
    """
    between = ":{rt*}:" if len(keys.tags()) > 1 else ":"
    for family in (keys.total.family, keys.read_bits.family):
        names = chain.from_iterable(_scan(f"{family}{between}{label}:*"))
        yield from filter(None, (keys.parse(name)[1].get("subject") for name in names))


def clear() -> None:
    """Removes every key with our prefix."""
    for names in _scan("*"):
        _unlink(names)


class Erased(NamedTuple):
    """The number of keys removed, and of keys in which the user's member or bit was cleared."""

    keys: int
    members: int
    bits: int


def erase(pk: Any, *, progress: Callable[[int], object] = int) -> Erased:
    """Erases the data that Redis has about the user with that primary key.

    `progress` is called with numbers of keys looked at. Raises redis.RedisError; then what was
    erased stays so, and erasing again does the rest.
    """
    client: Any = connect(patient=True)
    visitor, reader = user_id(pk), read_state.field(quote(str(pk), safe=""))
    number = pk if isinstance(pk, int) and pk >= 0 else None
    ordinals = {
        tag: int(found)
        for tag in keys.tags()
        if (found := client.hget(keys.readers(tag), reader)) is not None
    }
    gone = sum(_unlink(names) for names in _scan(f"*{visitor}*", progress))
    members = sum(
        _erase_from(names, "member", visitor)
        for names in _scan(f"{keys.unique.family}:*", progress)
    )
    bits = sum(
        _erase_from(names, "bit", number) for names in _scan(f"{keys.bitmap.family}:*", progress)
    )
    numbers = [(number, "", ""), *((ordinal, ":ordinal", tag) for tag, ordinal in ordinals.items())]
    for names in _scan(f"{keys.read_bits.family}:*", progress):
        for who, numbering, tag in numbers:
            for state, kind in ((":read", "bit"), (":seen", "slot")):
                some = [name for name in names if tag in name and name.endswith(state + numbering)]
                bits += _erase_from(some, kind, who)
    for tag, ordinal in ordinals.items():
        # The ordinal stays taken, because the next one is the number of fields.
        client.hset(keys.readers(tag), f"!{ordinal}", ordinal)
        client.hdel(keys.readers(tag), reader)
    return Erased(gone, members, bits)


def _unlink(names: Sequence[str]) -> int:
    # Each alone, because those of a cluster may be in different slots.
    return sum(scripts.run_all(*(Call("UNLINK", [name]) for name in names), patient=True))


def _erase_from(names: Sequence[str], kind: str, who: str | int | None) -> int:
    if who is None:
        return 0
    portions = scripts.parted(names, tag_of=keys.tag_in)
    return sum(
        scripts.run_all(*(Call[int]("erase", some, (kind, who)) for some in portions), patient=True)
    )


def _scan(pattern: str, progress: Callable[[int], object] = int) -> Iterator[list[str]]:
    client: Any = connect(patient=True)
    pattern, cursor = keys.matching(pattern), None
    while cursor != 0:
        cursor, names = client.scan(cursor or 0, match=pattern, count=SCAN_COUNT)
        progress(SCAN_COUNT)
        yield [name.decode() for name in names]


def known_layout() -> int:
    """Returns the number of partitions that flushes know; 0 for none. Raises redis.RedisError."""
    return scripts.run(
        Call("GET", [keys.flush_layout("")], (), lambda found: int(found or 0)), patient=True
    )


@contextmanager
def layout(partitions: int) -> Iterator[None]:
    """Lets this process have another number of partitions, and archive with each flush."""
    vars(conf).update(PARTITIONS=partitions, ARCHIVE_EVERY=-1)
    keys.tag.cache_clear()  # type: ignore[attr-defined]
    keys.tags.cache_clear()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        setting_changed.send(None, setting="READTRACK", value=None, enter=False)


def move(before: int, *, progress: Callable[[int], object] = int) -> int:
    """Copies the keys to their partitions, lets flushes know these, and removes the others. Returns
    how many it copied.

    A key that began in its new place stays as it is, and goes on from SQL. Raises redis.RedisError;
    then do it again.
    """
    client: Any = connect(patient=True)
    copied, old = 0, list[str]()
    renumbered = set[
        str
    ]()  # tags of partitions in which a process of the new number gives readers others
    names = dict.fromkeys(chain.from_iterable(_scan("*")))
    last = [name for name in names if name.endswith(":ordinal")]  # after the readers
    for some in (*scripts.sliced([*(names.keys() - last)]), *scripts.sliced(last)):
        progress(len(some))
        moved = {}
        for name in some:
            row, parts = keys.parse(name)
            if row is None or row in NOT_MOVED:
                continue
            tags = _tags(row, parts, before)
            if parts["tag"] not in tags:
                old.append(name)
            if row in BY_SUBJECT:
                _divide(client, name, row, parts)
            kept = renumbered if name.endswith(":ordinal") else ()
            if new := [
                row.placed(parts, tag=tag)
                for tag in tags
                if tag != parts["tag"] and tag not in kept
            ]:
                moved[name] = new
        copied += _copy(moved)
        for name in (name for name in moved if keys.parse(name)[0] in OF_READERS):
            renumbered.update(
                keys.tag_in(one) for one in moved[name] if not _has_numbers(client, one, of=name)
            )
    client.set(keys.flush_layout(""), conf.PARTITIONS)
    for some in scripts.sliced(old):
        _unlink(some)
    return copied


def _tags(row: keys.Key, parts: Mapping[str, str], before: int) -> Sequence[str]:
    """Returns the tags of the partitions that a key is in from now on, none for a list that begins
    anew.
    """
    tags, tag = keys.tags(), parts["tag"]
    if owner := parts.get("subject", parts.get("visitor")):
        return [keys.tag(owner)]
    if row in OF_SITE:
        return tags[:1]
    # Partition 7 of 16 is divided into 7, 23, 39 and 55 of 64. These three stay where they are if
    # they are met again.
    number = int(tag[4:-1] or "0", 16)
    if row in OF_PARTITION and (not tag or number < before > 1):
        return tags[number::before]
    return [tag] if tag in tags and row is not keys.trending_top else []


def _copy(moved: Mapping[str, Sequence[str]]) -> int:
    """Copies each key to its places, but not over others. Returns the number of copies."""
    calls = (Call[Any](command, [name]) for name in moved for command in ("DUMP", "PTTL"))
    answers = scripts.run_all(*calls, patient=True)
    restore = [
        ("RESTORE", place, max(life, 0), content)
        for places, content, life in zip(moved.values(), answers[::2], answers[1::2], strict=True)
        for place in (places if content else ())
    ]
    return sum(answer == b"OK" for answer in scripts.sender(True)(restore))  # noqa: FBT003


def _has_numbers(client: Any, place: str, *, of: str) -> bool:
    """Returns True if readers have the same numbers in one place as in the other."""
    parts = scripts.sliced([*client.hscan_iter(of, count=scripts.SLICE)])
    return all(
        client.hmget(place, [name for name, _ in some]) == [number for _, number in some]
        for some in parts
    )


def _divide(client: Any, name: str, row: keys.Key, parts: Mapping[str, str]) -> None:
    """Moves the entries of a sorted set to the partitions of their subjects, where a higher number
    stays.
    """
    found, life = client.zrange(name, 0, -1, withscores=True), client.pttl(name)
    for tag, entries in keys.by_tag(found, lambda entry: keys.tag(entry[0].decode())).items():
        place = row.placed(parts, tag=tag)
        for some in scripts.sliced(entries) if place != name else ():
            client.zadd(place, dict(some), gt=True)
            client.zrem(name, *dict(some))
        if life > 0:
            client.pexpire(place, life)
