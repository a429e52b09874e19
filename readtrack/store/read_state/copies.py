"""Copies of read state for SQL, and giving them back to a Redis that lost its own.

Scripts that change a state enter its key into the sorted set `reads:changed`, with the time. A copy
has that time, and once SQL has the copy, the entry is removed unless the state changed again. So
copies may overlap, repeat, be late and be lost.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from secrets import token_hex
from typing import Any, NamedTuple

from readtrack.hits import readers
from readtrack.store import clock, keys, scanning, scripts
from readtrack.store.connection import OutOfMemoryError, connect
from readtrack.store.read_state import of_parts, ordinals
from readtrack.store.read_state.by_model import FORMS, form_of
from readtrack.store.read_state.forms import ROWS
from readtrack.store.scripts import Call

CHANGES_AT_ONCE = 100
BYTES_AT_ONCE = 8_000_000  # of states in one answer of Redis, or in one statement of SQL


class Copy(NamedTuple):
    """The read state of a category at one moment."""

    subject: str
    family: str  # of the keys that have such a state, see `family_of`
    published: int  # when something was last published (µs), 0 for never
    state: bytes  # b"" if nobody has read the category since
    changed: str = ""  # when the state changed (µs), "" if SQL has it already

    @property
    def is_empty(self) -> bool:
        """Returns True if Redis has nothing of the category."""
        return not self.published and not self.state


def family_of(row: keys.Key) -> str:
    """Returns the name of a row of keys in SQL: `read` or `seen`, perhaps behind it `:ordinal`."""
    return row.pattern.partition("{subject}:")[2]


ROW_BY_FAMILY = {family_of(row): row for row in ROWS}
FORM_BY_FAMILY = {family_of(row): form for form in FORMS.values() for row in form.rows}
FAMILIES_BY_ORDINAL = frozenset(family_of(form.by_ordinal) for form in FORMS.values())


class Portion(NamedTuple):
    """Copies of one moment, and the ordinals by name that SQL did not know at that moment.

    SQL has to know these ordinals before it has the copies. Otherwise it could take a reader in a
    copy for another reader.
    """

    copies: list[Copy]
    new_readers: dict[str, int]


class ChangeBatch(NamedTuple):
    """Some of what changed in a partition since SQL got a copy, the oldest changes first."""

    subjects: list[str]  # of categories
    of_parts: list[str]  # names of keys that parts copy

    @property
    def number(self) -> int:
        """The number of the changes."""
        return len(self.subjects) + len(self.of_parts)


def oldest_changes(tag: str, *, skip: int = 0) -> ChangeBatch:
    """Returns up to CHANGES_AT_ONCE changes in the partition that SQL has no copy of, the oldest
    first, without the first `skip`.

    The result is empty if there are no more. Removes the changes of states that the settings
    `form` and `readers` in DOTS no longer use. Raises redis.RedisError.
    """
    while True:
        places = (skip, skip + CHANGES_AT_ONCE - 1)
        call = Call("ZRANGE", [keys.reads_changed(tag)], places, scripts.names)
        key_names = scripts.run(call, patient=True)
        changes, unused = _by_owner(key_names)
        if unused:
            scripts.run(Call("ZREM", [keys.reads_changed(tag)], unused, int), patient=True)
        if changes.number or not key_names:
            return changes


def _by_owner(key_names: Sequence[str]) -> tuple[ChangeBatch, list[str]]:
    """Returns what changed: the keys of parts, and the subjects of the core's keys. Also returns
    the names of keys that are not in use, such as those of another form.
    """
    changes = ChangeBatch([], [])
    unused = []
    for name in key_names:
        row, pieces = keys.parse(name)
        keys_of_part = of_parts.copying(row)
        if row is not None and keys_of_part is not None and keys_of_part.is_used(row, pieces):
            changes.of_parts.append(name)
        elif row in ROWS and row is form_of(pieces["subject"]).key():
            changes.subjects.append(pieces["subject"])
        else:
            unused.append(name)
    return changes, unused


class Backlog(NamedTuple):
    """How much of a partition's read state changed since SQL got a copy."""

    number: int
    oldest: int  # when the first of these changed (µs), 0 for none


def backlog(tag: str) -> Backlog:
    """Returns how much changed since SQL got a copy. Raises redis.RedisError."""
    first_change = Call[Any](
        "ZRANGE", [keys.reads_changed(tag)], (0, 0, "WITHSCORES"), scripts.pairs
    )
    number, changed_at = scripts.run_all(number_of_changes(tag), first_change, patient=True)
    oldest = 0
    for _key_name, time in changed_at:  # one at most
        oldest = time
    return Backlog(number, oldest)


def number_of_changes(tag: str) -> Call[int]:
    """Returns the call that reads how many states of a partition changed since SQL got a copy."""
    return Call("ZCARD", [keys.reads_changed(tag)])


def copies(subjects: Sequence[str], *, most_bytes: int) -> Iterator[Portion]:
    """Yields copies of the categories' read state, in portions of some megabytes.

    The categories are of one partition. Leaves out a state of more than `most_bytes`. The new
    readers of a portion have to be forgotten before the next one: if there are too many of them, it
    has nothing else. Raises redis.RedisError.
    """
    most_readers = 0
    if readers.has_ordinals():
        most_readers = scripts.SLICE
    start = 0
    while start < len(subjects):
        portion = subjects[start : start + scripts.SLICE]
        tag = keys.tag(portion[0])
        key_names = [keys.reads_changed(tag), keys.readers_new(tag)]
        for subject in portion:
            key_names += [form_of(subject).key()(subject), keys.published(subject)]
        arguments = (most_bytes, BYTES_AT_ONCE, most_readers)
        call = Call[Any]("copy_read_state", key_names, arguments)
        # There are answers for the first subjects only, if those have BYTES_AT_ONCE together.
        new_readers, *answers = scripts.run(call, patient=True)
        copies_of_portion = []
        for subject, (state, published, changed_at) in zip(portion, answers, strict=False):
            if state is None:  # it has more than `most_bytes`
                continue
            family = family_of(form_of(subject).key())
            copy = Copy(subject, family, int(published), state, changed_at.decode())
            copies_of_portion.append(copy)
        yield Portion(copies_of_portion, dict(scripts.pairs(new_readers)))
        start += len(answers)


def forget_changes(stored: Sequence[Copy]) -> None:
    """Forgets that these states changed, unless they changed again since the copies were made.

    The copies are of one partition. Raises redis.RedisError.
    """
    changed_at = {}
    for copy in stored:
        changed_at[ROW_BY_FAMILY[copy.family](copy.subject)] = copy.changed
    if stored:
        forget_keys(keys.tag(stored[0].subject), changed_at)


def forget_keys(tag: str, changed_at: Mapping[str, str]) -> None:
    """Forgets that keys of the partition changed, unless they changed again since.

    `changed_at` has the times that their copies have, by the names of the keys. Raises
    redis.RedisError.
    """
    arguments = scripts.flat((name, time) for name, time in changed_at.items() if time)
    if arguments:
        call = Call("forget_changes", [keys.reads_changed(tag)], arguments, int)
        scripts.run(call, patient=True)


def mark_changed(subjects: Collection[str]) -> None:
    """Notes that the read state of these categories changed. Raises redis.RedisError.

    A Redis whose memory is full takes no note. Then the next archive does.
    """
    mark_keys_changed([form_of(subject).key()(subject) for subject in subjects])


def mark_keys_changed(key_names: Sequence[str]) -> None:
    """Notes that these keys of read state changed, like `mark_changed`."""
    now = int(clock.now().timestamp() * 1_000_000)
    calls = []
    for portion in scripts.parted(key_names, tag_of=keys.tag_in):
        arguments = scripts.flat((now, name) for name in portion)
        calls.append(Call("ZADD", [keys.reads_changed(keys.tag_in(portion[0]))], arguments, int))
    with suppress(OutOfMemoryError):
        scripts.run_all(*calls, patient=True)


def mark_all_changed(tag: str) -> None:
    """Notes that all read state of a partition changed, because SQL may have lost its copies.

    Raises redis.RedisError.
    """
    # First, because SQL has to know whose a number is before it has a copy with it.
    client: Any = connect(patient=True)
    numbers = client.hscan_iter(keys.readers(tag), count=scripts.SLICE)
    while portion := dict(islice(numbers, scripts.SLICE)):
        with suppress(OutOfMemoryError):
            client.zadd(keys.readers_new(tag), {name: int(portion[name]) for name in portion})
    mark_states_changed(tag)


def mark_states_changed(tag: str) -> None:
    """Notes that the state of each category and all keys that parts copy changed in a partition.

    Raises redis.RedisError.
    """
    for key_names in scanning.key_batches(f"{keys.published.family}{tag}:*", tag=tag):
        subjects: dict[str, None] = {}
        for name in key_names:
            row, pieces = keys.parse(name)
            if row is not None and pieces["tag"] == tag and row in (*ROWS, keys.published):
                subjects[pieces["subject"]] = None
        mark_changed(subjects)
    for keys_of_part in of_parts.all_keys():
        _mark_all_changed_of(keys_of_part, tag)


def _mark_all_changed_of(keys_of_part: of_parts.KeysOfPart, tag: str) -> None:
    """Notes that all keys of a partition changed that a part copies."""
    first_words = {row.family.partition(":")[0] for row in keys_of_part.rows}
    for word in sorted(first_words):
        for key_names in scanning.key_batches(f"{word}*{tag}:*", tag=tag):
            changed_names = []
            for name in key_names:
                row, pieces = keys.parse(name)
                if row in keys_of_part.rows and pieces["tag"] == tag:
                    changed_names.append(name)
            mark_keys_changed(changed_names)


def begin_restoring(tag: str) -> str | None:
    """Begins to restore the read state of a partition. Returns the id of the restoration, which all
    further calls need.

    Returns None for a Redis that has begun. No call changes anything in a Redis that has another
    restoration: somebody else restores it, or a snapshot has replaced it, which lacks the calls
    before. Raises redis.RedisError.
    """
    restoration_id = token_hex(16)
    arguments = (restoration_id, keys.reads_restoring.ttl)
    call = Call("begin_restoring", restoring_keys(tag), arguments, bool)
    if not scripts.run(call, patient=True):
        return None
    return restoration_id


def end_restoring(tag: str, restoration_id: str, *, at: int) -> bool:
    """Lets the Redis of a partition begin at `at` (µs), because it has all its read state.

    Returns False if it has another restoration. Raises redis.RedisError.
    """
    call = Call("end_restoring", restoring_keys(tag), (restoration_id, at), bool)
    return scripts.run(call, patient=True)


def restoring_keys(tag: str) -> list[str]:
    """Returns the keys that tell each step of restoring a partition if it may go on."""
    return [keys.reads_began(tag), keys.reads_restoring(tag)]


def restore(rows: Sequence[Copy], *, restoration_id: str) -> bool:
    """Gives Redis the read state of categories of one partition and one family.

    Returns False if Redis has another restoration, so that nothing was changed. Raises
    redis.RedisError.
    """
    row = ROW_BY_FAMILY[rows[0].family]
    key_names = restoring_keys(keys.tag(rows[0].subject))
    # The bits that Redis has stay only where they are by user id. A bit by ordinal may be that of
    # another reader, to whom an older snapshot gave the number.
    joining = ""
    if row is keys.read_bits:
        joining = "or"
    arguments: list[str | int | bytes] = [restoration_id, joining]
    for copy in rows:
        subject = copy.subject
        key_names += [row(subject), keys.published(subject), keys.read_scratch(subject)]
        arguments += [copy.state, copy.published]
    call = Call("restore_read_state", key_names, arguments, int)
    return scripts.run(call, patient=True) >= 0


def forget_ordinals(tag: str, *, restoration_id: str) -> None:
    """Removes the ordinals of all readers of a partition, and their read state.

    A snapshot may have given numbers to readers that belong to others. Backlog nothing if Redis has
    another restoration. Raises redis.RedisError.
    """
    # SQL gets no number that these readers had, either.
    _remove(tag, [keys.readers_new(tag), *ordinals.all_hashes(tag)], restoration_id=restoration_id)
    for key_names in scanning.key_batches(f"{keys.ordinal_read_bits.family}{tag}:*", tag=tag):
        by_ordinal = []
        for name in key_names:
            row, pieces = keys.parse(name)
            if row is not None and pieces["tag"] == tag and family_of(row) in FAMILIES_BY_ORDINAL:
                by_ordinal.append(name)
        _remove(tag, by_ordinal, restoration_id=restoration_id)


def _remove(tag: str, key_names: Sequence[str], *, restoration_id: str) -> None:
    """Removes keys that depend on ordinals, unless Redis has another restoration."""
    for portion in scripts.sliced(key_names):
        names = [*restoring_keys(tag), *portion]
        scripts.run(Call("forget_ordinals", names, (restoration_id,), int), patient=True)


def new_readers(tag: str) -> dict[str, int]:
    """Returns the ordinals of some readers that SQL does not know yet, by their names in Redis.

    The lowest ordinals come first. Raises redis.RedisError.
    """
    places = (0, scripts.SLICE - 1, "WITHSCORES")
    call = Call[Any]("ZRANGE", [keys.readers_new(tag)], places, scripts.pairs)
    return dict(scripts.run(call, patient=True))


def forget_new_readers(tag: str, numbers: Mapping[str, int]) -> None:
    """Forgets that SQL does not know these ordinals, by name. A reader who has another one by now
    stays noted. Raises redis.RedisError.
    """
    arguments = scripts.flat(numbers.items())
    call = Call("forget_changes", [keys.readers_new(tag)], arguments, int)
    scripts.run(call, patient=True)


def retire(tag: str, names_and_ordinals: Collection[tuple[str, int]]) -> None:
    """Takes the ordinals of these readers away from them. No reader gets these ordinals again.

    Raises redis.RedisError.
    """
    for portion in scripts.sliced([*names_and_ordinals]):
        key_names = [keys.readers(tag), keys.readers_new(tag)]
        call = Call("retire_readers", key_names, scripts.flat(portion), int)
        scripts.run(call, patient=True)


def restore_readers(
    tag: str, numbers: Sequence[tuple[str, int]], *, following: int, restoration_id: str
) -> bool:
    """Gives Redis the ordinals of up to SLICE readers, by name. The next new reader gets
    `following` at least.

    Returns False if Redis has another restoration, so that nothing was changed. Raises
    redis.RedisError.
    """
    key_names = [*restoring_keys(tag), keys.readers_next(tag), keys.readers(tag)]
    arguments = (restoration_id, following, *scripts.flat(numbers))
    return scripts.run(Call("restore_readers", key_names, arguments, int), patient=True) >= 0
