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
from readtrack.store.read_state.by_model import STRATEGIES, strategy_of
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
FORM_BY_FAMILY = {family_of(row): form for form in STRATEGIES.values() for row in form.rows}
FAMILIES_BY_ORDINAL = frozenset(family_of(form.by_ordinal) for form in STRATEGIES.values())


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


def changed(tag: str, *, after: int = 0) -> ChangeBatch:
    """Returns the oldest CHANGES_AT_ONCE changes in the partition of which SQL has no copy, after
    that number of changes.

    The result is empty if there are no more. Forgets the changes of states that are not in use, by
    the form and the readers of DOTS. Raises redis.RedisError.
    """
    while True:
        places = (after, after + CHANGES_AT_ONCE - 1)
        call = Call("ZRANGE", [keys.reads_changed(tag)], places, scripts.names)
        key_names = scripts.run(call, patient=True)
        changes, unused = _divided(key_names)
        if unused:
            scripts.run(Call("ZREM", [keys.reads_changed(tag)], unused, int), patient=True)
        if changes.number or not key_names:
            return changes


def _divided(key_names: Sequence[str]) -> tuple[ChangeBatch, list[str]]:
    """Returns the changes of these keys, and the names of those keys that are not in use."""
    changes = ChangeBatch([], [])
    unused = []
    for name in key_names:
        row, pieces = keys.parse(name)
        own_keys = of_parts.copying(row)
        if row is not None and own_keys is not None and own_keys.is_used(row, pieces):
            changes.of_parts.append(name)
        elif row in ROWS and row is strategy_of(pieces["subject"]).key():
            changes.subjects.append(pieces["subject"])
        else:
            unused.append(name)
    return changes, unused


class Changes(NamedTuple):
    """How much of a partition's read state changed since SQL got a copy."""

    number: int
    oldest: int  # when the first of these changed (µs), 0 for none


def changes(tag: str) -> Changes:
    """Returns how much changed since SQL got a copy. Raises redis.RedisError."""
    first_change = Call[Any](
        "ZRANGE", [keys.reads_changed(tag)], (0, 0, "WITHSCORES"), scripts.pairs
    )
    calls = [number_of_changes(tag), first_change]
    number, first = scripts.run_all(*calls, patient=True)
    return Changes(number, first[0][1] if first else 0)


def number_of_changes(tag: str) -> Call[int]:
    """Returns the call that reads how many states of a partition changed since SQL got a copy."""
    return Call("ZCARD", [keys.reads_changed(tag)])


def number_of_new_readers(tag: str) -> Call[int]:
    """Returns the call that reads how many readers of a partition have ordinals that SQL does not
    know.
    """
    return Call("ZCARD", [keys.readers_new(tag)])


def copies(subjects: Sequence[str], *, most_bytes: int) -> Iterator[Portion]:
    """Yields copies of the categories' read state, in portions of some megabytes.

    The categories are of one partition. Leaves out a state of more than `most_bytes`. The new
    readers of a portion have to be forgotten before the next one: if there are too many of them, it
    has nothing else. Raises redis.RedisError.
    """
    most_readers = scripts.SLICE if readers.has_ordinals() else 0
    start = 0
    while start < len(subjects):
        portion = subjects[start : start + scripts.SLICE]
        tag = keys.tag(portion[0])
        key_names = [keys.reads_changed(tag), keys.readers_new(tag)]
        for subject in portion:
            key_names += [strategy_of(subject).key()(subject), keys.published(subject)]
        arguments = (most_bytes, BYTES_AT_ONCE, most_readers)
        call = Call[Any]("copy_read_state", key_names, arguments)
        new_readers, *answers = scripts.run(call, patient=True)
        copies_of_portion = [
            _copy(subject, answer)
            for subject, answer in zip(portion, answers, strict=False)
            if answer[0] is not None
        ]
        yield Portion(copies_of_portion, dict(scripts.pairs(new_readers)))
        start += len(answers)


def _copy(subject: str, answer: Sequence[Any]) -> Copy:
    state, published, changed_at = answer
    row = strategy_of(subject).key()
    return Copy(subject, family_of(row), int(published), state, changed_at.decode())


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
    arguments: list[str] = []
    for name, time in changed_at.items():
        if time:
            arguments += [name, time]
    if arguments:
        call = Call("forget_changes", [keys.reads_changed(tag)], arguments, int)
        scripts.run(call, patient=True)


def mark_changed(subjects: Collection[str]) -> None:
    """Notes that the read state of these categories changed. Raises redis.RedisError.

    A Redis whose memory is full takes no note. Then the next archive does.
    """
    mark_keys_changed([strategy_of(subject).key()(subject) for subject in subjects])


def mark_keys_changed(key_names: Sequence[str]) -> None:
    """Notes that these keys of read state changed, like `mark_changed`."""
    now = int(clock.now().timestamp() * 1_000_000)
    calls = []
    for portion in scripts.parted(key_names, tag_of=keys.tag_in):
        arguments: list[int | str] = []
        for name in portion:
            arguments += [now, name]
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
    for own_keys in of_parts.all_keys():
        _mark_all_changed_of(own_keys, tag)


def _mark_all_changed_of(own_keys: of_parts.KeysOfPart, tag: str) -> None:
    """Notes that all keys of a partition changed that a part copies."""
    for word in dict.fromkeys(row.family.partition(":")[0] for row in own_keys.rows):
        for key_names in scanning.key_batches(f"{word}*{tag}:*", tag=tag):
            of_tag = []
            for name in key_names:
                row, pieces = keys.parse(name)
                if row in own_keys.rows and pieces["tag"] == tag:
                    of_tag.append(name)
            mark_keys_changed(of_tag)


def begin_restoring(tag: str) -> str | None:
    """Begins to restore the read state of a partition. Returns the token that the steps need.

    Returns None for a Redis that has begun. No step changes anything in a Redis that has another
    token: somebody else restores it, or a snapshot has replaced it, which lacks the steps before.
    Raises redis.RedisError.
    """
    token = token_hex(16)
    arguments = (token, keys.reads_restoring.ttl)
    call = Call("begin_restoring", restoring_keys(tag), arguments, bool)
    return token if scripts.run(call, patient=True) else None


def end_restoring(tag: str, token: str, *, at: int) -> bool:
    """Lets the Redis of a partition begin at that time (µs), because it has all its read state.

    Returns False if it has another token. Raises redis.RedisError.
    """
    call = Call("end_restoring", restoring_keys(tag), (token, at), bool)
    return scripts.run(call, patient=True)


def restoring_keys(tag: str) -> list[str]:
    """Returns the keys that tell each step of restoring a partition if it may go on."""
    return [keys.reads_began(tag), keys.reads_restoring(tag)]


def restore(rows: Sequence[Copy], *, token: str) -> bool:
    """Gives Redis the read state of categories of one partition and one family.

    Returns False if Redis has another token, so that nothing was changed. Raises redis.RedisError.
    """
    row = ROW_BY_FAMILY[rows[0].family]
    key_names = restoring_keys(keys.tag(rows[0].subject))
    # A bit by ordinal may be that of another reader, to whom an older snapshot gave the number.
    is_joined = row is keys.read_bits
    arguments: list[str | int | bytes] = [token, "or" if is_joined else ""]
    for copy in rows:
        subject = copy.subject
        key_names += [row(subject), keys.published(subject), keys.read_scratch(subject)]
        arguments += [copy.state, copy.published]
    call = Call("restore_read_state", key_names, arguments, int)
    return scripts.run(call, patient=True) >= 0


def forget_ordinals(tag: str, *, token: str) -> None:
    """Removes the ordinals of all readers of a partition, and their read state.

    A snapshot may have given numbers to readers that belong to others. Changes nothing if Redis has
    another token. Raises redis.RedisError.
    """
    # SQL gets no number that these readers had, either.
    _remove(tag, [keys.readers_new(tag), *ordinals.all_hashes(tag)], token=token)
    for key_names in scanning.key_batches(f"{keys.ordinal_read_bits.family}{tag}:*", tag=tag):
        by_ordinal = []
        for name in key_names:
            row, pieces = keys.parse(name)
            if row is not None and pieces["tag"] == tag and family_of(row) in FAMILIES_BY_ORDINAL:
                by_ordinal.append(name)
        _remove(tag, by_ordinal, token=token)


def _remove(tag: str, key_names: Sequence[str], *, token: str) -> None:
    """Removes keys that depend on ordinals, unless Redis has another token."""
    for portion in scripts.sliced(key_names):
        names = [*restoring_keys(tag), *portion]
        scripts.run(Call("forget_ordinals", names, (token,), int), patient=True)


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
    arguments: list[str | int] = []
    for name, number in numbers.items():
        arguments += [name, number]
    call = Call("forget_changes", [keys.readers_new(tag)], arguments, int)
    scripts.run(call, patient=True)


def retire(tag: str, numbers: Collection[tuple[str, int]]) -> None:
    """Takes ordinals away from readers, by name. Nobody gets them again. Raises redis.RedisError."""
    for portion in scripts.sliced([*numbers]):
        arguments: list[str | int] = []
        for name, number in portion:
            arguments += [name, number]
        key_names = [keys.readers(tag), keys.readers_new(tag)]
        scripts.run(Call("retire_readers", key_names, arguments, int), patient=True)


def restore_readers(
    tag: str, numbers: Sequence[tuple[str, int]], *, following: int, token: str
) -> bool:
    """Gives Redis the ordinals of up to SLICE readers, by name. The next new reader gets
    `following` at least.

    Returns False if Redis has another token, so that nothing was changed. Raises redis.RedisError.
    """
    key_names = [*restoring_keys(tag), keys.readers_next(tag), keys.readers(tag)]
    arguments: list[str | int] = [token, following]
    for name, number in numbers:
        arguments += [name, number]
    return scripts.run(Call("restore_readers", key_names, arguments, int), patient=True) >= 0
