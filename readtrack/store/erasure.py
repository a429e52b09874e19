"""Erasing a user: keys named after the user, members of sets, bits of bitmaps."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from readtrack.hits.visitors import user_id
from readtrack.store import keys, scripts
from readtrack.store.connection import connect
from readtrack.store.scripts import Call

SCAN_COUNT = 1000  # keys looked at in one SCAN step
SCANS = 4  # of all keys
HIGHEST_BIT = 2**32 - 1  # in a string of Redis
HIGHEST_SLOT = 2**27 - 1  # of four bytes each

Progress = Callable[[int], object]


class Erased(NamedTuple):
    """The number of keys removed, and of keys in which the user's member or bit was cleared."""

    keys: int
    members: int
    bits: int


def effort() -> int:
    """Returns about how many keys `erase` looks at."""
    return SCANS * int(connect(patient=True).dbsize())


def erase(pk: Any, *, progress: Progress = int) -> Erased:
    """Erases the data that Redis has about the user with that primary key.

    `progress` is called with numbers of keys looked at. Raises redis.RedisError; then what was erased stays so, and
    erasing again does the rest.
    """
    client: Any = connect(patient=True)
    visitor, reader = user_id(pk), quote(str(pk), safe="")
    number = pk if isinstance(pk, int) and 0 <= pk <= HIGHEST_BIT else None
    ordinal = client.hget(keys.readers(), reader)
    gone = sum(client.unlink(*names) for names in _scan(keys.matching(f"*{visitor}*"), progress) if names)
    members = sum(_run(names, "member", visitor) for names in _scan(keys.unique.matching, progress))
    bits = sum(_run(names, "bit", number) for names in _scan(keys.bitmap.matching, progress))
    for names in _scan(keys.read_bits.matching, progress):
        bits += _clear(names, number, suffix="")
        bits += _clear(names, None if ordinal is None else int(ordinal), suffix=":ordinal")
    if ordinal is not None:
        # The ordinal stays taken, because the next one is the number of fields.
        client.hset(keys.readers(), f"!{int(ordinal)}", int(ordinal))
        client.hdel(keys.readers(), reader)
    return Erased(gone, members, bits)


def _clear(names: Sequence[bytes], number: int | None, *, suffix: str) -> int:
    bits = [name for name in names if name.endswith(f":read{suffix}".encode())]
    slots = [name for name in names if name.endswith(f":seen{suffix}".encode())]
    slot = number if number is None or number < HIGHEST_SLOT else None
    return _run(bits, "bit", number) + _run(slots, "slot", slot)


def _run(names: Sequence[bytes], kind: str, who: str | int | None) -> int:
    if not names or who is None:
        return 0
    return scripts.run(Call("erase", [name.decode() for name in names], (kind, who), int), patient=True)


def _scan(pattern: str, progress: Progress) -> Iterator[list[bytes]]:
    client: Any = connect(patient=True)
    cursor = None
    while cursor != 0:
        cursor, names = client.scan(cursor or 0, match=pattern, count=SCAN_COUNT)
        progress(SCAN_COUNT)
        yield names
