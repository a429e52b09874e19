"""Erasing the data that Redis has about one user."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from readtrack.hits.visitors import user_id
from readtrack.store import keys, read_state, scanning, scripts
from readtrack.store.connection import connect
from readtrack.store.scripts import Call


class Erased(NamedTuple):
    """The number of keys removed, and of keys in which the user's member or bit was cleared."""

    keys: int
    members: int
    bits: int


class Position(NamedTuple):
    """Where the read state of one user is in the keys with this tag."""

    number: int | None  # None for a user without a number
    is_ordinal: bool = False
    tag: str = ""


def erase(pk: Any, *, progress: Callable[[int], object] = int) -> Erased:
    """Erases the data that Redis has about the user with that primary key.

    `progress` is called with numbers of keys looked at. Raises redis.RedisError. What was erased
    until then stays erased, and a second call erases what is left.
    """
    visitor = user_id(pk)
    number = pk if isinstance(pk, int) and pk >= 0 else None
    reader = read_state.field(quote(str(pk), safe=""))
    ordinals = _ordinals(reader)

    removed = 0
    for key_names in scanning.key_batches(f"*{visitor}*", progress):
        removed += scanning.unlink(key_names)
    members = 0
    for key_names in scanning.key_batches(f"{keys.unique.family}:*", progress):
        members += _erase_from(key_names, "member", visitor)
    bits = 0
    for key_names in scanning.key_batches(f"{keys.bitmap.family}:*", progress):
        bits += _erase_from(key_names, "bit", number)
    positions = [Position(number)]
    positions += [Position(ordinal, is_ordinal=True, tag=tag) for tag, ordinal in ordinals.items()]
    for key_names in scanning.key_batches(f"{keys.read_bits.family}:*", progress):
        for position in positions:
            bits += _erase_read_state(key_names, position)
    _forget_reader(reader, ordinals)
    return Erased(removed, members, bits)


def _ordinals(reader: Any) -> dict[str, int]:
    """Returns the reader's ordinal by tag, of each partition that has given it one."""
    client: Any = connect(patient=True)
    ordinals = {}
    for tag in keys.tags():
        ordinal = client.hget(keys.readers(tag), reader)
        if ordinal is not None:
            ordinals[tag] = int(ordinal)
    return ordinals


def _erase_read_state(key_names: Sequence[str], position: Position) -> int:
    """Clears the position in the keys of read state that have it. Returns how many had it set."""
    cleared = 0
    for form in read_state.STRATEGIES.values():
        row = form.by_ordinal if position.is_ordinal else form.by_id
        ending = row.pattern.partition("{subject}")[2]
        matching = [name for name in key_names if position.tag in name and name.endswith(ending)]
        cleared += _erase_from(matching, form.erases, position.number)
    return cleared


def _erase_from(key_names: Sequence[str], form: str, member: str | int | None) -> int:
    """Clears the member or the position in these keys. Returns how many keys had it."""
    if member is None:
        return 0
    portions = scripts.parted(key_names, tag_of=keys.tag_in)
    calls = (Call[int]("erase", portion, (form, member)) for portion in portions)
    return sum(scripts.run_all(*calls, patient=True))


def _forget_reader(reader: Any, ordinals: dict[str, int]) -> None:
    """Removes the reader from the numbered ones. The ordinal itself is never given out again."""
    client: Any = connect(patient=True)
    for tag, ordinal in ordinals.items():
        # A field takes the reader's place, because the next ordinal is the number of fields.
        client.hset(keys.readers(tag), f"!{ordinal}", ordinal)
        client.hdel(keys.readers(tag), reader)
