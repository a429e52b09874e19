"""Moving the keys to their partitions after PARTITIONS was multiplied."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from django.core.signals import setting_changed

from readtrack.conf import conf
from readtrack.store import keys, scanning, scripts
from readtrack.store.connection import connect
from readtrack.store.scripts import Call

OF_READERS = (keys.readers, keys.anonymous_readers)  # hashes with the ordinals of readers
# Copied to each partition that is made out of theirs.
OF_PARTITION = (
    keys.reads_began,
    *OF_READERS,
    keys.readers_next,
    keys.flush_last,
    keys.flush_full,
)
OF_SITE = (keys.day_key, keys.skips)  # in the first partition
# Sorted sets of subjects, whose entries move, each to its partition.
BY_SUBJECT = (keys.reset, keys.trending_bucket)
NOT_MOVED = (keys.flush_layout, keys.budget)
ORDINAL = ":ordinal"  # ending of the keys that use the ordinals of readers


class ParsedKey(NamedTuple):
    """The name of a key, its row in the table of keys, and the parts of the name."""

    name: str
    row: keys.Key
    parts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done with one batch of keys."""

    copies: dict[str, list[str]] = field(default_factory=dict)  # new names by old name
    divided: list[ParsedKey] = field(default_factory=list)  # sorted sets of subjects
    outdated: list[str] = field(default_factory=list)  # removed in the end


@contextmanager
def layout(partitions: int) -> Iterator[None]:
    """Lets this process use another number of partitions."""
    vars(conf).update(PARTITIONS=partitions)
    keys.tag.cache_clear()  # type: ignore[attr-defined]
    keys.tags.cache_clear()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        setting_changed.send(None, setting="READTRACK", value=None, enter=False)


def move(before: int, *, progress: Callable[[int], object] = int) -> int:
    """Copies each key to its partitions, changes the layout, then removes the old keys.

    `before` is the earlier number of partitions. Returns the number of copies. A key that a process
    has begun in its new partition stays as it is, and is settled with SQL's count. Raises
    redis.RedisError; the move then has to be done again.
    """
    client: Any = connect(patient=True)
    key_names = dict.fromkeys(chain.from_iterable(scanning.key_batches("*")))
    by_ordinal = [name for name in key_names if name.endswith(ORDINAL)]
    others = [name for name in key_names if not name.endswith(ORDINAL)]
    copied = 0
    outdated: list[str] = []
    renumbered: set[str] = set()  # tags of partitions that number their readers differently
    # Read state by ordinal comes after the readers, because it depends on their numbers.
    for batch in (*scripts.sliced(others), *scripts.sliced(by_ordinal)):
        progress(len(batch))
        plan = _plan(batch, before=before, renumbered=renumbered)
        for sorted_set in plan.divided:
            _divide(client, sorted_set)
        copied += _copy(plan.copies)
        outdated += plan.outdated
        renumbered |= _renumbered(client, plan.copies)
    client.set(keys.flush_layout(""), conf.PARTITIONS)
    for batch in scripts.sliced(outdated):
        scanning.unlink(batch)
    return copied


def _plan(key_names: Sequence[str], *, before: int, renumbered: set[str]) -> Plan:
    """Returns what is to be done with these keys."""
    plan = Plan()
    for name in key_names:
        row, parts = keys.parse(name)
        if row is None or row in NOT_MOVED:
            continue
        tags = _tags(row, parts, before)
        old_tag = parts["tag"]
        if old_tag not in tags:
            plan.outdated.append(name)
        if row in BY_SUBJECT:
            plan.divided.append(ParsedKey(name, row, parts))
        excluded = {old_tag, *renumbered} if name.endswith(ORDINAL) else {old_tag}
        copies = [row.placed(parts, tag=tag) for tag in tags if tag not in excluded]
        if copies:
            plan.copies[name] = copies
    return plan


def _tags(row: keys.Key, parts: Mapping[str, str], before: int) -> Sequence[str]:
    """Returns the tags of a key's new partitions. A list that begins anew has none."""
    tags = keys.tags()
    tag = parts["tag"]
    if owner := parts.get("subject", parts.get("visitor")):
        return [keys.tag(owner)]
    if row in OF_SITE:
        return tags[:1]
    # Partition 7 of 16 is divided into 7, 23, 39 and 55 of 64. The keys of the last three stay
    # where they are if a second run meets them again.
    number = int(tag[4:-1] or "0", 16)
    if row in OF_PARTITION and (not tag or number < before > 1):
        return tags[number::before]
    if tag in tags and row is not keys.trending_top:
        return [tag]
    return []


def _copy(copies: Mapping[str, Sequence[str]]) -> int:
    """Copies each key to its new names where these are free. Returns the number of copies."""
    calls = (Call[Any](command, [name]) for name in copies for command in ("DUMP", "PTTL"))
    answers = scripts.run_all(*calls, patient=True)
    contents = answers[::2]
    lifetimes = answers[1::2]  # ms, negative for a key that stays
    commands = []
    for new_names, content, lifetime in zip(copies.values(), contents, lifetimes, strict=True):
        if content is None:  # it has expired
            continue
        commands += [("RESTORE", new_name, max(lifetime, 0), content) for new_name in new_names]
    return sum(answer == b"OK" for answer in scripts.sender(True)(commands))  # noqa: FBT003


def _renumbered(client: Any, copies: Mapping[str, Sequence[str]]) -> set[str]:
    """Returns the tags of partitions in which a process had already given readers other numbers."""
    tags = set()
    for name, new_names in copies.items():
        row, _ = keys.parse(name)
        if row in OF_READERS:
            tags |= {
                keys.tag_in(new_name)
                for new_name in new_names
                if not _has_numbers(client, new_name, of=name)
            }
    return tags


def _has_numbers(client: Any, name: str, *, of: str) -> bool:
    """Returns True if each reader in the hash `of` has the same number in the other hash."""
    numbered = [*client.hscan_iter(of, count=scripts.SLICE)]
    for batch in scripts.sliced(numbered):
        expected = [number for _, number in batch]
        if client.hmget(name, [reader for reader, _ in batch]) != expected:
            return False
    return True


def _divide(client: Any, sorted_set: ParsedKey) -> None:
    """Moves the entries of a sorted set to the partitions of their subjects.

    Where a subject has an entry already, the higher number stays.
    """
    name, row, parts = sorted_set
    entries = client.zrange(name, 0, -1, withscores=True)
    lifetime = client.pttl(name)
    by_tag = keys.by_tag(entries, lambda entry: keys.tag(entry[0].decode()))
    for tag, tagged in by_tag.items():
        new_name = row.placed(parts, tag=tag)
        if new_name != name:
            for batch in scripts.sliced(tagged):
                client.zadd(new_name, dict(batch), gt=True)
                client.zrem(name, *dict(batch))
        if lifetime > 0:
            client.pexpire(new_name, lifetime)
