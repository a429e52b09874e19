"""Moving the keys to their new partitions after their number was multiplied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from readtrack.progress import Progress, no_progress
from readtrack.store import keys, read_state, scanning, scripts
from readtrack.store.connection import connect
from readtrack.store.read_state import copies, of_parts
from readtrack.store.scripts import Call

OF_READERS = (keys.readers, keys.anonymous_readers)  # hashes with the ordinals of readers
# Read state by the ordinals of readers. It depends on the numbers that the partition gave them.
BY_ORDINAL = tuple(form.by_ordinal for form in read_state.FORMS.values())
# Keys of a category that move together, because the time of the last publication decides:
# by move_read_state.lua.
OF_CATEGORY = (*read_state.ROWS, keys.published)
CATEGORIES_AT_ONCE = 100  # whose read state may have megabytes each


class Category(NamedTuple):
    """A category with read state, and the tag of its old partition."""

    subject: str
    old_tag: str


class ParsedKey(NamedTuple):
    """The name of a key, its row in the table of keys, and the pieces of the name."""

    name: str
    row: keys.Key
    pieces: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done with one batch of keys."""

    copies: dict[str, list[str]] = field(default_factory=dict)  # new names by old name
    divided: list[ParsedKey] = field(default_factory=list)  # sorted sets whose entries move
    carried: list[ParsedKey] = field(default_factory=list)  # keys that parts carry
    categories: list[Category] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)  # old names that are removed in the end


def move(before: int, *, progress: Progress = no_progress) -> int:
    """Copies each key to its partitions, changes the layout, then removes the old keys.

    `before` is the earlier number of partitions. Returns the number of copies. If a process has
    already begun a key in its new partition, that key stays, and a flush adds SQL's count to it;
    for read state see move_read_state.lua. Raises redis.RedisError; the move then has to be done
    again.
    """
    client: Any = connect(patient=True)
    key_names = dict.fromkeys(chain.from_iterable(scanning.key_batches("*")))
    copied = 0
    outdated: list[str] = []
    categories: list[Category] = []
    renumbered: set[str] = set()  # tags of partitions that number their readers differently
    for batch in scripts.sliced([*key_names]):
        progress(len(batch))
        plan = _plan(batch, before=before)
        for sorted_set in plan.divided:
            _divide(client, sorted_set)
        for key in plan.carried:
            own_keys = of_parts.carrying(key.row)
            if own_keys is not None:
                new_names = own_keys.carry(key.name, key.row, key.pieces)
                copied += len({*new_names} - {key.name})
        copied += _copy(plan.copies)
        outdated += plan.outdated
        categories += plan.categories
        renumbered |= _renumbered(client, plan.copies)
    # After the readers, because read state by ordinal depends on their numbers.
    for portion in scripts.sliced([*dict.fromkeys(categories)], CATEGORIES_AT_ONCE):
        copied += _move_read_state(portion, renumbered)
    for tag in keys.tags():
        copies.mark_all_changed(tag)  # SQL's copies are of the old partitions
    client.hset(keys.flush_layout(""), "partitions", len(keys.tags()))
    for batch in scripts.sliced(outdated):
        scanning.unlink(batch)
    return copied


def keys_to_move(before: int) -> int:
    """Returns the number of keys that `move` takes to other partitions. Changes nothing.

    `before` is the earlier number of partitions. Raises redis.RedisError.
    """
    key_names = dict.fromkeys(chain.from_iterable(scanning.key_batches("*")))
    batches = scripts.sliced([*key_names])
    return sum(len(_plan(batch, before=before).outdated) for batch in batches)


def _plan(key_names: Sequence[str], *, before: int) -> Plan:
    """Returns what is to be done with these keys."""
    plan = Plan()
    for name in key_names:
        row, pieces = keys.parse(name)
        if row is None or row.divided == "left":
            continue
        tags = _tags(row, pieces, before)
        old_tag = pieces["tag"]
        if old_tag not in tags:
            plan.outdated.append(name)
        if of_parts.carrying(row) is not None:
            plan.carried.append(ParsedKey(name, row, pieces))
        elif row in OF_CATEGORY:
            # Also of those that only processes with the new number know.
            tag_before = _tag_before(old_tag, before) if old_tag in tags else old_tag
            if tag_before not in tags:
                plan.categories.append(Category(pieces["subject"], tag_before))
        else:
            _plan_copies(plan, ParsedKey(name, row, pieces), tags)
    return plan


def _plan_copies(plan: Plan, key: ParsedKey, tags: Sequence[str]) -> None:
    """Adds to the plan that the key is copied to the partitions with these tags."""
    if key.row.holds == "subjects" and "visitor" not in key.pieces:
        plan.divided.append(key)
    old_tag = key.pieces["tag"]
    copies = [key.row.placed(key.pieces, tag=tag) for tag in tags if tag != old_tag]
    if copies:
        plan.copies[key.name] = copies


def _tags(row: keys.Key, pieces: Mapping[str, str], before: int) -> Sequence[str]:
    """Returns the tags of the partitions in which the key is to be.

    There are none for a list that begins anew, such as that of trending subjects.
    """
    tags = keys.tags()
    tag = pieces["tag"]
    subject_or_visitor = pieces.get("subject", pieces.get("visitor"))
    if subject_or_visitor:
        return [keys.tag(subject_or_visitor)]
    if row.divided == "first":
        return tags[:1]
    # Partition 7 of 16 is divided into 7, 23, 39 and 55 of 64. If the move is done a second time,
    # the keys of 23, 39 and 55 stay where they are.
    number = _number(tag)
    if row.divided == "copied" and (not tag or number < before > 1):
        return tags[number::before]
    if tag in tags and row.divided != "anew":
        return [tag]
    return []


def _tag_before(tag: str, before: int) -> str:
    """Returns the tag of the partition that had what is in this one, when there were fewer."""
    if before == 1:
        return ""
    return keys.tags()[_number(tag) % before]


def _number(tag: str) -> int:
    """Returns the number of a partition by its tag, 0 without partitions."""
    return int(tag[4:-1] or "0", 16)


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


def _move_read_state(categories: Sequence[Category], renumbered: set[str]) -> int:
    """Moves the read state of categories to their new partitions. Returns the number of states.

    `renumbered` has the tags of partitions in which ordinals are those of other readers.
    """
    questions = {category: _questions(category) for category in categories}
    scripts.run_all(*chain.from_iterable(questions.values()), patient=True)
    moves = []
    for category, calls in questions.items():
        is_renumbered = keys.tag(category.subject) in renumbered
        answers = [call.result for call in calls]
        moves.append(_move_of(category.subject, answers, is_renumbered=is_renumbered))
    return sum(scripts.run_all(*moves, patient=True))


def _move_of(subject: str, answers: Sequence[Any], *, is_renumbered: bool) -> Call[int]:
    """Returns the call that gives the category's new partition what the old one has of it.

    `answers` are those to `_questions`.
    """
    began, published, *states = answers
    usable_states = []
    for row, state in zip(read_state.ROWS, states, strict=True):
        is_of_other_readers = is_renumbered and row in BY_ORDINAL
        usable_states.append(b"" if is_of_other_readers or not state else state)
    key_names = [keys.reads_began(keys.tag(subject)), keys.published(subject)]
    key_names += [row(subject) for row in read_state.ROWS]
    arguments = (began or b"", published or 0, *usable_states)
    return Call("readtrack.cluster/move_read_state", key_names, arguments, int)


def _questions(category: Category) -> list[Call[Any]]:
    """Returns the calls that read what the old partition has of the category."""
    pieces = {"subject": category.subject}
    tag = category.old_tag
    states = [row.placed(pieces, tag=tag) for row in read_state.ROWS]
    return [
        Call("GET", [keys.reads_began(tag)]),
        Call("GET", [keys.published.placed(pieces, tag=tag)]),
        *[Call("DUMP", [name]) for name in states],
    ]


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
    name, row, pieces = sorted_set
    entries = client.zrange(name, 0, -1, withscores=True)
    lifetime = client.pttl(name)  # ms, negative for a key that stays

    def tag_of(entry: tuple[bytes, float]) -> str:
        subject, _ = entry
        return keys.tag(subject.decode())

    for tag, entries_of_tag in keys.by_tag(entries, tag_of).items():
        new_name = row.placed(pieces, tag=tag)
        if new_name != name:
            for batch in scripts.sliced(entries_of_tag):
                scores = dict(batch)
                client.zadd(new_name, scores, gt=True)
                client.zrem(name, *scores)
        if lifetime > 0:
            client.pexpire(new_name, lifetime)
