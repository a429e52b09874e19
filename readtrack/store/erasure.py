"""The traces of one user: keys named after them, members of sets, bits. Finds them all and erases them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from readtrack.store import keys, scripts
from readtrack.store.connection import connect
from readtrack.store.scripts import Call

SCAN_COUNT = 1000  # keys looked at in one SCAN step
SCANS = 4
HIGHEST = 2**32 - 1  # number of a bit that a string can hold
SLOTS = 2**27 - 1  # numbers of readers that one of 4 bytes for each can hold

Progress = Callable[[int], object]


class ErasedUser(NamedTuple):
    """Who is forgotten: the visitor's keyed hash, the reader's name and, if it is one, number."""

    visitor: str
    reader: str
    number: int | None = None


class Erased(NamedTuple):
    """How many keys went, and in how many the user's member or bit was cleared."""

    keys: int
    members: int
    bits: int


def effort() -> int:
    """About how many keys `forget` looks at."""
    return SCANS * int(connect(patient=True).dbsize())


def erase(user: ErasedUser, *, progress: Progress = int) -> Erased:
    """Erases the user. `progress` is told of keys looked at. Raises redis.RedisError; starting anew does no harm."""
    client: Any = connect(patient=True)
    ordinal = client.hget(keys.readers(), user.reader)
    gone = sum(client.unlink(*names) for names in _scan(keys.matching_traces(user.visitor), progress) if names)
    members = sum(_run(names, "member", user.visitor) for names in _scan(keys.matching_unique_sets(), progress))
    bits = sum(_run(names, "bit", user.number) for names in _scan(keys.matching_unique_bitmaps(), progress))
    for names in _scan(keys.matching_read_state(), progress):
        bits += _unread(names, user.number, suffix="")
        bits += _unread(names, None if ordinal is None else int(ordinal), suffix=":ordinal")
    if ordinal is not None:
        # The number stays taken, by nobody: the next one is how many there are.
        client.hset(keys.readers(), f"!{int(ordinal)}", int(ordinal))
        client.hdel(keys.readers(), user.reader)
    return Erased(gone, members, bits)


def _unread(names: Sequence[bytes], number: int | None, *, suffix: str) -> int:
    bits = [name for name in names if name.endswith(f":read{suffix}".encode())]
    slots = [name for name in names if name.endswith(f":seen{suffix}".encode())]
    return _run(bits, "bit", number) + _run(slots, "slot", number if number is None or number < SLOTS else None)


def _run(names: Sequence[bytes], kind: str, who: str | int | None) -> int:
    if not names or who is None:
        return 0
    call = Call("forget", [name.decode() for name in names], (kind, who), int)
    return scripts.run(call, patient=True)


def _scan(pattern: str, progress: Progress) -> Iterator[list[bytes]]:
    client: Any = connect(patient=True)
    cursor = None
    while cursor != 0:
        cursor, names = client.scan(cursor or 0, match=pattern, count=SCAN_COUNT)
        progress(SCAN_COUNT)
        yield names
