"""The end of keys: removing and resetting subjects, removing what a restored Redis brought back, erasing users."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from readtrack.hits.visitors import user_id
from readtrack.store import keys, read_state, scripts
from readtrack.store.connection import connect
from readtrack.store.counters import SCAN_COUNT
from readtrack.store.keys import Key
from readtrack.store.scripts import Call

ERASE_COUNT = 1000  # keys looked at in one SCAN step of erasing
HIGHEST_BIT = 2**32 - 1  # in a string of Redis
HIGHEST_SLOT = 2**27 - 1  # of four bytes each

Progress = Callable[[int], object]


class Erased(NamedTuple):
    """The number of keys removed, and of keys in which the user's member or bit was cleared."""

    keys: int
    members: int
    bits: int


def remove(subjects: Sequence[str]) -> Call[int]:
    """Removes all keys of the subjects, which are of one partition; the answer is how many subjects."""
    return _call("remove", [keys.unsettled, keys.flush_orphans], {subject: {} for subject in subjects})


def remove_idle(stored: Mapping[str, tuple[int, Mapping[str, int]]]) -> Call[int]:
    """Removes subjects that hold exactly what SQL stores: the total, and the sum of the counts of each kind of hash."""
    rows = {
        subject: {"stored": {"views": str(views), "sums": [sums.get(kind, 0) for kind in keys.hash_kinds()]}}
        for subject, (views, sums) in stored.items()
    }
    return _call("remove", [keys.unsettled, keys.flush_orphans], rows)


def reset(subjects: Sequence[str]) -> Call[int]:
    """Sets the subjects to zero; the answer is Redis's time of it (µs)."""
    return _call("reset", [keys.unsettled, keys.reset], {subject: {} for subject in subjects})


def purge(times: Mapping[str, int]) -> Call[int]:
    """Removes counts from before these resets (µs); the answer is how many resets this Redis did not know of."""
    rows = {subject: {"time": time} for subject, time in times.items()}
    return _call("purge", [keys.unsettled, keys.reset, keys.flush_last, keys.flush_full], rows)


def _call(script: str, shared: Sequence[Key], rows: Mapping[str, dict[str, Any]]) -> Call[int]:
    """Returns the script's call with the partition's keys, those of each subject, and rows that say where they are."""
    kinds, tag = keys.hash_kinds(), keys.tag(next(iter(rows)))
    names = [row(tag) for row in shared]
    found = []
    for subject, row in rows.items():
        first = len(names) + 1
        names += keys.lasting(subject)
        members = [subject, *(keys.member(kind, subject) for kind in kinds)]
        found.append({"subject": subject, "names": members, "first": first, "last": len(names), **row})
    return Call(script, names, (json.dumps(found),), int)


def subjects(label: str) -> Iterator[str]:
    """Yields the subjects of that model which have counts or read state, unordered and some more than once."""
    client: Any = connect(patient=True)
    start = len(keys.prefix())
    between = ":{rt*}:" if len(keys.tags()) > 1 else ":"
    for family, place in (("views:total", 2), ("category", 1)):
        for name in client.scan_iter(match=keys.matching(f"{family}{between}{label}:*"), count=SCAN_COUNT):
            yield ":".join(keys.TAG.sub("", name.decode()[start:]).split(":")[place : place + 2])


def clear() -> None:
    """Removes every key with our prefix."""
    client: Any = connect(patient=True)
    for some in scripts.sliced(list(client.scan_iter(match=keys.matching("*"), count=SCAN_COUNT))):
        _unlink(some)


def erase(pk: Any, *, progress: Progress = int) -> Erased:
    """Erases the data that Redis has about the user with that primary key.

    `progress` is called with numbers of keys looked at. Raises redis.RedisError; then what was erased stays so, and
    erasing again does the rest.
    """
    client: Any = connect(patient=True)
    visitor, reader = user_id(pk), read_state.field(quote(str(pk), safe=""))
    number = pk if isinstance(pk, int) and 0 <= pk <= HIGHEST_BIT else None
    ordinals = {tag: found for tag in keys.tags() if (found := client.hget(keys.readers(tag), reader)) is not None}
    gone = sum(_unlink(names) for names in _scan(keys.matching(f"*{visitor}*"), progress))
    members = sum(_erase_from(names, "member", visitor) for names in _scan(keys.unique.matching, progress))
    bits = sum(_erase_from(names, "bit", number) for names in _scan(keys.bitmap.matching, progress))
    for names in _scan(keys.read_bits.matching, progress):
        for kind, end, most in (("bit", b":read", HIGHEST_BIT), ("slot", b":seen", HIGHEST_SLOT - 1)):
            who = number if number is None or number <= most else None
            bits += _erase_from([name for name in names if name.endswith(end)], kind, who)
            others = [name for name in names if name.endswith(end + b":ordinal")]
            for tag, ordinal in ordinals.items():
                own = [name for name in others if keys.tag_in(name.decode()) == tag]
                bits += _erase_from(own, kind, int(ordinal))
    for tag, ordinal in ordinals.items():
        # The ordinal stays taken, because the next one is the number of fields.
        client.hset(keys.readers(tag), f"!{int(ordinal)}", int(ordinal))
        client.hdel(keys.readers(tag), reader)
    return Erased(gone, members, bits)


def _unlink(names: Sequence[bytes]) -> int:
    pipeline: Any = connect(patient=True).pipeline(transaction=False)
    for name in names:  # alone, because those of a cluster may be in different slots
        pipeline.unlink(name)
    return sum(pipeline.execute())


def _erase_from(names: Sequence[bytes], kind: str, who: str | int | None) -> int:
    if who is None:
        return 0
    groups = keys.by_tag(map(bytes.decode, names), keys.tag_in)
    return sum(scripts.run_all(*(Call("erase", some, (kind, who), int) for some in groups.values()), patient=True))


def _scan(pattern: str, progress: Progress) -> Iterator[list[bytes]]:
    client: Any = connect(patient=True)
    cursor: Any = None
    while cursor != 0:
        cursor, names = client.scan(cursor or 0, match=pattern, count=ERASE_COUNT)
        progress(ERASE_COUNT)
        yield names
