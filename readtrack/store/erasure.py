"""Erasing the data that Redis has about one user."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from readtrack.hits.visitors import user_id
from readtrack.progress import Progress, no_progress
from readtrack.store import keys, read_state, scanning, scripts
from readtrack.store.connection import connect
from readtrack.store.read_state import copies
from readtrack.store.scripts import Call


class Erased(NamedTuple):
    """How much of one user's data was erased."""

    keys: int  # keys that were removed
    members: int  # sets of which the user was removed
    bits: int  # bitmaps, and strings of 4 bytes a reader, in which the user was cleared
    copies: int = 0  # such bitmaps and strings in SQL
    of_parts: int = 0  # rows and keys that parts had of the user


class NumberOfUser(NamedTuple):
    """A number of one user, and in which keys of read state it is that user's."""

    number: int | None  # None for a user whose id is no number
    is_ordinal: bool = False
    tag: str = ""


def erase(pk: Any, *, is_dry_run: bool = False, progress: Progress = no_progress) -> Erased:
    """Erases the data that Redis has about the user with the primary key `pk`. Returns how much it
    was.

    With `is_dry_run` it changes nothing, and returns how much would be erased. `progress` is called
    with the number of keys looked at since the last call. Raises redis.RedisError. After an error,
    call it again; it erases what is still there.
    """
    visitor = user_id(pk)
    number = number_of(pk)
    reader = name_of(pk)
    ordinals = ordinals_of(reader)

    removed = 0
    for key_names in scanning.key_batches(f"*{visitor}*", progress):
        if is_dry_run:
            removed += len(key_names)
        else:
            removed += scanning.unlink(key_names)
    members = 0
    for family in _families("visitors"):
        for key_names in scanning.key_batches(f"{family}:*", progress):
            members += _erase_from(key_names, "member", visitor, is_dry_run=is_dry_run)
    bits = 0
    for family in _families("readers"):
        for key_names in scanning.key_batches(f"{family}:*", progress):
            bits += _erase_from(key_names, "bit", number, is_dry_run=is_dry_run)
    numbers_of_user = _numbers_of_user(number, ordinals)
    for key_names in scanning.key_batches(f"{keys.read_bits.family}:*", progress):
        for number_of_user in numbers_of_user:
            bits += _erase_read_state(key_names, number_of_user, is_dry_run=is_dry_run)
    if not is_dry_run:
        _forget_reader(reader, ordinals)
    return Erased(removed, members, bits)


def _families(members: str) -> list[str]:
    """Returns the families of the keys that hold "visitors" or "readers", without those that begin
    as another one does.
    """
    families: list[str] = []
    for family in sorted({row.family for row in keys.every() if row.holds == members}):
        if not any(family.startswith(f"{shorter}:") for shorter in families):
            families.append(family)
    return families


def number_of(pk: Any) -> int | None:
    """Returns the user's number where numbers are user ids; None if the user has none."""
    if not isinstance(pk, int) or pk < 0:
        return None
    return pk


def name_of(pk: Any) -> str:
    """Returns the name by which the user may have ordinals."""
    return str(read_state.field(quote(str(pk), safe="")))


def _numbers_of_user(number: int | None, ordinals: Mapping[str, int]) -> list[NumberOfUser]:
    """Returns the numbers that read state may have of the user: the id, and the ordinals."""
    numbers_of_user = [NumberOfUser(number)]
    for tag, ordinal in ordinals.items():
        numbers_of_user.append(NumberOfUser(ordinal, is_ordinal=True, tag=tag))
    return numbers_of_user


def ordinals_of(reader: str) -> dict[str, int]:
    """Returns the reader's ordinals by the tag of the partition, where it has one.

    Raises redis.RedisError.
    """
    client: Any = connect(patient=True)
    ordinals = {}
    for tag in keys.tags():
        ordinal = client.hget(keys.readers(tag), reader)
        if ordinal is not None:
            ordinals[tag] = int(ordinal)
    return ordinals


def _erase_read_state(key_names: Sequence[str], user: NumberOfUser, *, is_dry_run: bool) -> int:
    """Clears the user's number in those of the keys that use it. Returns in how many it was set."""
    cleared = 0
    for form in read_state.FORMS.values():
        row = form.by_id
        if user.is_ordinal:
            row = form.by_ordinal
        _, _, ending = row.pattern.partition("{subject}")  # by which a key of the row is known
        matching = [name for name in key_names if user.tag in name and name.endswith(ending)]
        cleared += _erase_reader(matching, form.erase_method, user.number, is_dry_run=is_dry_run)
    return cleared


def _erase_reader(
    key_names: Sequence[str], method: str, number: int | None, *, is_dry_run: bool
) -> int:
    """Erases the reader with the number `number` from keys of read state.

    `method` is one of erase_read_state.lua: "bit" or "slot". Returns how many keys were changed, or
    would be changed.
    """
    if number is None:
        return 0
    calls = []
    for portion in scripts.parted(key_names, tag_of=keys.tag_in):
        names = [keys.reads_changed(keys.tag_in(portion[0]))]
        for name in portion:
            _, pieces = keys.parse(name)
            names += [name, keys.published.placed(pieces, tag=pieces["tag"])]
        calls.append(Call[int]("erase_read_state", names, (method, number, int(is_dry_run))))
    return sum(scripts.run_all(*calls, patient=True))


def _erase_from(
    key_names: Sequence[str], method: str, member: str | int | None, *, is_dry_run: bool
) -> int:
    """Erases the member of sets, or the reader's number from other keys.

    `method` is one of erase.lua: "member" or "bit". Returns how many keys were changed, or
    would be changed.
    """
    if member is None:
        return 0
    portions = scripts.parted(key_names, tag_of=keys.tag_in)
    calls = [Call[int]("erase", portion, (method, member, int(is_dry_run))) for portion in portions]
    return sum(scripts.run_all(*calls, patient=True))


def _forget_reader(reader: str, ordinals: Mapping[str, int]) -> None:
    """Takes the ordinals of the reader away. Nobody else gets them."""
    for tag, ordinal in ordinals.items():
        copies.retire(tag, [(reader, ordinal)])
