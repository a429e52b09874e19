"""Moving the keys of a renamed model, or of a row with a new primary key, to the new name."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from secrets import token_hex
from typing import Any, NamedTuple

from readtrack import buckets, parts
from readtrack.conf import cached_setting
from readtrack.store import keys, read_state, scanning, scripts, subject_keys
from readtrack.store.read_state import copies, of_parts
from readtrack.store.scripts import Call
from readtrack.subjects import label_in

# Keys of a category that move together, by rename_read_state.lua.
OF_CATEGORY = (*read_state.ROWS, keys.published, keys.sent)

READ_STATE_AT_ONCE = 50  # categories in one script, because each may have megabytes
SORTED_SETS_AT_ONCE = 10  # because that of a busy minute has thousands of members
PAUSE = 0.1  # seconds between two tries to become the one that moves keys


class Move(NamedTuple):
    """A key, and where it is to go."""

    name: str
    new_name: str
    how: str  # what becomes of two keys, as `Key.united` says it
    member: str = ""  # its name in `views:unsettled`; "" for a key that is never in there
    new_member: str = ""
    state: str = ""  # "settled" or "unsettled" for a key from another partition

    @property
    def tag(self) -> str:
        """Returns the tag of the partition that it goes to."""
        return keys.tag_in(self.new_name)


class Rename(NamedTuple):
    """An old name and the new one: labels (`blog.post`) or subjects (`blog.post:42`)."""

    before: str
    after: str

    @property
    def is_of_model(self) -> bool:
        """Returns True for a model with all its objects, False for a single object."""
        return ":" not in self.before

    def renamed(self, name: str) -> str | None:
        """Returns the new name of a label or a subject; None if it keeps its own."""
        if name == self.before:
            return self.after
        if self.is_of_model and label_in(name) == self.before:
            return self.after + name[len(self.before) :]
        return None


@contextmanager
def turn(*, is_patient: bool = True) -> Iterator[None]:
    """A context in which no other process moves keys. Waits until it is this process's turn.

    Without `is_patient` it raises at once if Redis is gone. Raises redis.RedisError. The turn of a
    process that was killed ends by itself.
    """
    name = keys.renaming(keys.tags()[0])
    owner = token_hex(8)
    arguments = (owner, "NX", "EX", keys.renaming.ttl)
    while not scripts.run(Call("SET", [name], arguments, bool), patient=is_patient):
        time.sleep(PAUSE)
    try:
        yield
    finally:
        scripts.run(Call("UNLINK", [name]), patient=True)


def move(rename: Rename) -> int:
    """Moves every key of the old name to the new one. Returns their number.

    Raises redis.RedisError. What was moved until then stays moved, and a second call moves the
    others. Call it within the context `turn`, in which no other process moves keys.
    """
    moved = 0
    if keys.is_divided():
        moved += _between_partitions().finish(rename)
    _rename_members(rename, at=buckets.now())
    _rename_members_of_visitors(rename)
    for key_names in _batches(rename):
        extend_turn()
        moved += _move(key_names, rename)
    return moved + read_state.form_of(rename.after).follow_rename(rename)


def extend_turn() -> None:
    """Lets the present turn end later, because there is more to move."""
    name = keys.renaming(keys.tags()[0])
    scripts.run(Call("EXPIRE", [name], (keys.renaming.ttl,)), patient=True)


def _batches(rename: Rename) -> Iterator[list[str]]:
    """Yields the names of the keys that may have the old name."""
    if rename.is_of_model:
        return scanning.key_batches(f"*:{rename.before}*")
    rows = subject_keys.every_row()
    return iter([subject_keys.names_of(rows, rename.before, at=buckets.now())])


def _move(key_names: Iterable[str], rename: Rename) -> int:
    """Moves those of the keys that have the old name. Returns their number."""
    moves: list[Move] = []
    categories: dict[str, str] = {}
    carried = 0
    for name in key_names:
        row, pieces = keys.parse(name)
        if row is None:
            continue
        if of_parts.carrying(row) is not None:
            carried += carry(name, row, pieces, rename=rename)
            continue
        subject = pieces.get("subject", pieces.get("model", ""))
        new_subject = rename.renamed(subject)
        if new_subject is None:
            continue
        if row in OF_CATEGORY:
            categories[subject] = new_subject
        else:
            moves.append(move_of(name, row, pieces, new_subject=new_subject))
    if keys.is_divided():
        moved: int = _between_partitions().move(moves, categories, rename)
        return carried + moved
    return carried + move_within(moves) + move_categories(categories)


def _between_partitions() -> Any:
    """Returns the module of a part that also moves keys to other partitions."""
    return import_module(parts.division().renaming)


def carry(name: str, row: keys.Key, pieces: Mapping[str, str], *, rename: Rename) -> int:
    """Lets a part carry its key to the new name. Returns 1; 0 if it keeps its name."""
    keys_of_part = of_parts.carrying(row)
    names_in_key = [pieces[piece] for piece in ("subject", "model", "within") if piece in pieces]
    if keys_of_part is None or not any(map(rename.renamed, names_in_key)):
        return 0

    def renamed(before: str) -> str:
        return rename.renamed(before) or before

    new_names = keys_of_part.carry(name, row, pieces, renamed=renamed)
    if not new_names:  # it has expired
        return 0
    scripts.run(Call("UNLINK", [name]), patient=True)
    return 1


def move_of(name: str, row: keys.Key, pieces: Mapping[str, str], *, new_subject: str) -> Move:
    """Returns where the key of that name goes, and what becomes of its mark in `views:unsettled`.

    `row` is its row in the table of keys, and `pieces` what stands in its name for the variables of
    that row. `new_subject` takes the place of the subject in the name, or of the model.
    """
    if "subject" in pieces:
        new_name = row.placed({**pieces, "subject": new_subject}, tag=keys.tag(new_subject))
    else:
        new_name = row.placed({**pieces, "model": new_subject}, tag=pieces["tag"])
    if not row.settles:
        return Move(name, new_name, row.united)
    if row is keys.total:
        return Move(name, new_name, row.united, pieces["subject"], new_subject)
    prefix = keys.prefix()
    member = name.removeprefix(prefix)
    return Move(name, new_name, row.united, member, new_name.removeprefix(prefix))


def move_within(moves: Sequence[Move]) -> int:
    """Moves keys within their partitions. Returns their number."""
    calls = []
    for portion in scripts.parted(moves, scripts.SLICE // 2, tag_of=lambda move: move.tag):
        names = [keys.unsettled(portion[0].tag)]
        arguments: list[str] = []
        for move in portion:
            names += (move.name, move.new_name)
            arguments += (move.how, move.member, move.new_member, move.state)
        calls.append(Call("move", names, arguments, int))
    return sum(scripts.run_all(*calls, patient=True))


def move_categories(
    categories: Mapping[str, str], arrived: Mapping[tuple[str, keys.Key], str] = {}
) -> int:
    """Moves the read state of categories, by their new names. Returns the number of keys.

    `arrived` has the names of keys from another partition, by category and row.
    """
    copies.mark_changed(categories.values())

    def tag_of_new_name(old: str) -> str:
        return keys.tag(categories[old])

    calls = []
    for portion in scripts.parted([*categories], READ_STATE_AT_ONCE, tag_of=tag_of_new_name):
        names: list[str] = []
        for old in portion:
            new = categories[old]
            # The old name as it is in the partition of the new one. Of a category that comes from
            # another partition, a key that has not arrived is missing there, and is passed over.
            tag = keys.tag(new)
            for row in OF_CATEGORY:
                old_name = row.placed({"subject": old}, tag=tag)
                names.append(arrived.get((old, row), old_name))
            names += [row(new) for row in OF_CATEGORY]
        calls.append(Call("rename_read_state", names, (), int))
    return sum(scripts.run_all(*calls, patient=True))


def _rename_members(rename: Rename, *, at: datetime) -> None:
    """Renames the subjects in sorted sets: what changed in the last hour, resets and deletions."""
    sets = [(row, slot) for row in _sets_of_subjects() for slot in subject_keys.slots(row, at=at)]
    tags: Sequence[str] = [keys.tag(rename.before)]
    if rename.is_of_model:
        tags = keys.tags()
    for tag in tags:
        names = [row.placed(slot, tag=tag) for row, slot in sets]
        calls: list[Call[Any]] = []
        for portion in scripts.sliced(names, SORTED_SETS_AT_ONCE):
            calls += _renamed_members(portion, rename)
        for calls_at_once in scripts.sliced(calls):
            scripts.run_all(*calls_at_once, patient=True)
        if calls:
            # The trending list is made anew out of the buckets.
            scripts.run(Call("UNLINK", [keys.trending_list(tag)]), patient=True)


@cached_setting("INSTALLED_APPS", maxsize=1)
def _sets_of_subjects() -> Sequence[keys.Key]:
    """Returns the rows with sorted sets of subjects, except those of single visitors."""
    return [
        row for row in keys.every() if row.holds == "subjects" and "visitor" not in row.piece_names
    ]


@cached_setting("INSTALLED_APPS", maxsize=1)
def _sets_of_subjects_by_visitor() -> Sequence[keys.Key]:
    """Returns the rows with a sorted set of subjects for each visitor.

    Their keys are found only by a scan of all keys, so rows that no setting uses are left out.
    """
    return [
        row
        for row in keys.every()
        if row.holds == "subjects" and "visitor" in row.piece_names and row.is_used()
    ]


def _rename_members_of_visitors(rename: Rename) -> None:
    """Renames the subjects in the sorted sets of single visitors, which parts may have."""
    for row in _sets_of_subjects_by_visitor():
        for key_names in scanning.key_batches(f"{row.family}:*"):
            extend_turn()
            names = []
            for name in key_names:
                row_of_name, _pieces = keys.parse(name)
                if row_of_name is row:
                    names.append(name)
            entry_calls = [_entries(name, rename) for name in names]
            entries_of_sets = scripts.run_all(*entry_calls, patient=True)
            calls: list[Call[Any]] = []
            for name, entries in zip(names, entries_of_sets, strict=True):
                calls += _renamed_entries(name, entries, rename)
            scripts.run_all(*calls, patient=True)


def _renamed_entries(
    name: str, entries: Iterable[tuple[str, int]], rename: Rename
) -> list[Call[Any]]:
    """Returns the calls that rename those entries of a sorted set that have the old name."""
    calls: list[Call[Any]] = []
    for subject, score in entries:
        new_subject = rename.renamed(subject)
        if new_subject is not None:
            calls.append(Call("ZADD", [name], ("GT", score, new_subject)))
            calls.append(Call("ZREM", [name], (subject,)))
    return calls


def _renamed_members(names: Sequence[str], rename: Rename) -> list[Call[Any]]:
    """Returns the calls that rename subjects in these sets, or move them to another partition's."""
    calls: list[Call[Any]] = []
    entry_calls = [_entries(name, rename) for name in names]
    entries_of_sets = scripts.run_all(*entry_calls, patient=True)
    for name, entries in zip(names, entries_of_sets, strict=True):
        row, pieces = keys.parse(name)
        for subject, score in entries:
            new_subject = rename.renamed(subject)
            if row is None or new_subject is None:
                continue
            new_name = row.placed(pieces, tag=keys.tag(new_subject))
            if row.united == "add":
                calls.append(Call("ZINCRBY", [new_name], (score, new_subject)))
            else:
                calls.append(Call("ZADD", [new_name], ("GT", score, new_subject)))
            if row.ttl and row is not keys.reset:  # whose members flushes delete
                calls.append(Call("EXPIRE", [new_name], (row.ttl,)))
            calls.append(Call("ZREM", [name], (subject,)))
    return calls


def _entries(name: str, rename: Rename) -> Call[list[tuple[str, int]]]:
    """Returns the call that reads the members that may have the old name, and their scores."""
    if rename.is_of_model:
        return Call("ZRANGE", [name], (0, -1, "WITHSCORES"), scripts.pairs)

    def decode(score: Any) -> list[tuple[str, int]]:
        if score is None:
            return []
        return [(rename.before, int(score))]

    return Call("ZSCORE", [name], (rename.before,), decode)
