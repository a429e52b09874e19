"""Moving the keys to their new partitions after PARTITIONS was multiplied."""

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
# Copied to each of the new partitions into which an old one is divided.
OF_PARTITION = (
    keys.reads_began,
    *OF_READERS,
    keys.readers_next,
    keys.flush_last,
    keys.flush_full,
)
OF_SITE = (keys.day_key, keys.skips)  # only in the first partition
# Sorted sets of subjects. Each entry moves to the partition of its subject.
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
    divided: list[ParsedKey] = field(default_factory=list)  # sorted sets whose entries move
    outdated: list[str] = field(default_factory=list)  # old names that are removed in the end


@contextmanager
def layout(partitions: int) -> Iterator[None]:
    """Makes this process use another number of partitions within the block."""
    vars(conf).update(PARTITIONS=partitions)
    keys.tag.cache_clear()  # type: ignore[attr-defined]
    keys.tags.cache_clear()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        setting_changed.send(None, setting="READTRACK", value=None, enter=False)


def move(before: int, *, progress: Callable[[int], object] = int) -> int:
    """Copies each key to its partitions, changes the layout, then removes the old keys.

    `before` is the earlier number of partitions. Returns the number of copies. If a process has
    already begun a key in its new partition, that key stays, and a flush adds SQL's count to it.
    Raises redis.RedisError; the move then has to be done again.
    """
    client: Any = connect(patient=True)
    key_names = dict.fromkeys(chain.from_iterable(scanning.key_batches("*")))
    by_ordinal = [name for name in key_names if name.endswith(ORDINAL)]
    not_by_ordinal = [name for name in key_names if not name.endswith(ORDINAL)]
    copied = 0
    outdated: list[str] = []
    renumbered: set[str] = set()  # tags of partitions that number their readers differently
    # Read state by ordinal comes last, because it depends on the numbers of the readers.
    for batch in (*scripts.sliced(not_by_ordinal), *scripts.sliced(by_ordinal)):
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
    """Returns what is to be done with these keys.

    Read state by ordinal is not copied to the partitions with the tags in `renumbered`.
    """
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
        excluded_tags = {old_tag}
        if name.endswith(ORDINAL):
            excluded_tags |= renumbered
        copies = [row.placed(parts, tag=tag) for tag in tags if tag not in excluded_tags]
        if copies:
            plan.copies[name] = copies
    return plan


def _tags(row: keys.Key, parts: Mapping[str, str], before: int) -> Sequence[str]:
    """Returns the tags of the partitions in which the key is to be.

    There are none for a list that begins anew, such as that of trending subjects.
    """
    tags = keys.tags()
    tag = parts["tag"]
    subject_or_visitor = parts.get("subject", parts.get("visitor"))
    if subject_or_visitor:
        return [keys.tag(subject_or_visitor)]
    if row in OF_SITE:
        return tags[:1]
    # Partition 7 of 16 is divided into 7, 23, 39 and 55 of 64. If the move is done a second time,
    # the keys of 23, 39 and 55 stay where they are.
    number = int(tag[4:-1] or "0", 16)  # 7 of the tag ":{rt07}"
    if row in OF_PARTITION and (not tag or number < before > 1):
        return tags[number::before]
    if tag in tags and row is not keys.trending_top:
        return [tag]
    return []


def _copy(copies: Mapping[str, Sequence[str]]) -> int:
    """Copies each key to those of its new names that do not exist. Returns the number of copies."""
    calls = [Call[Any](command, [name]) for name in copies for command in ("DUMP", "PTTL")]
    answers = scripts.run_all(*calls, patient=True)
    contents = answers[::2]
    lifetimes = answers[1::2]  # ms, negative for a key that stays
    commands = []
    for new_names, content, lifetime in zip(copies.values(), contents, lifetimes, strict=True):
        if content is None:  # it has expired
            continue
        commands += [("RESTORE", new_name, max(lifetime, 0), content) for new_name in new_names]
    # `run_all` would raise the error of a new name that exists already.
    send = scripts.sender(True)  # noqa: FBT003 - see there
    return sum(answer == b"OK" for answer in send(commands))


def _renumbered(client: Any, copies: Mapping[str, Sequence[str]]) -> set[str]:
    """Returns the tags of partitions in which a process had already given readers other numbers."""
    tags = set()
    for name, new_names in copies.items():
        row, _ = keys.parse(name)
        if row not in OF_READERS:
            continue
        for new_name in new_names:
            if not _has_numbers(client, new_name, of=name):
                tags.add(keys.tag_in(new_name))
    return tags


def _has_numbers(client: Any, name: str, *, of: str) -> bool:
    """Returns True if each reader of the hash `of` has the same number in the hash `name`."""
    numbered_readers = [*client.hscan_iter(of, count=scripts.SLICE)]
    for batch in scripts.sliced(numbered_readers):
        numbers_by_reader = dict(batch)
        numbers = client.hmget(name, [*numbers_by_reader])
        if numbers != [*numbers_by_reader.values()]:
            return False
    return True


def _divide(client: Any, sorted_set: ParsedKey) -> None:
    """Moves the entries of a sorted set to the partitions of their subjects.

    If a subject has an entry there already, the higher score stays.
    """
    name, row, parts = sorted_set
    entries = client.zrange(name, 0, -1, withscores=True)
    lifetime = client.pttl(name)  # ms, negative for a key that stays

    def tag_of(entry: tuple[bytes, float]) -> str:
        subject, _ = entry
        return keys.tag(subject.decode())

    for tag, entries_of_tag in keys.by_tag(entries, tag_of).items():
        new_name = row.placed(parts, tag=tag)
        if new_name != name:
            for batch in scripts.sliced(entries_of_tag):
                scores = dict(batch)
                client.zadd(new_name, scores, gt=True)
                client.zrem(name, *scores)
        if lifetime > 0:
            client.pexpire(new_name, lifetime)
