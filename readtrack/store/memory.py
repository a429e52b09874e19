"""What keys take: a bounded sample of those there are, and of small ones written for the measurement."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from readtrack import keys
from readtrack.store.connection import connect

SCANNED = 200_000  # keys looked at, at most; of more the scan is a random sample
SAMPLES = 200  # keys of a family that are weighed
STEP = 1_000  # keys looked at in one SCAN
LIFE = 60  # seconds that a key written for a measurement lives, should nobody remove it


class Family(NamedTuple):
    """Keys of one kind: how many there are, and what one of them takes on average, in bytes."""

    keys: int
    each: float

    @property
    def bytes(self) -> int:
        return round(self.keys * self.each)


def families() -> dict[str, Family]:
    """What the keys in Redis take, by their family in the key table; those of others, if any, as "other"."""
    client: Any = connect(patient=True)
    size, seen = client.dbsize(), 0
    found: dict[str, list[bytes]] = {}
    counts: dict[str, int] = {}
    for key in _scanned(client):
        seen += 1
        name = keys.family(key.decode(errors="replace"))
        counts[name] = counts.get(name, 0) + 1
        some = found.setdefault(name, [])
        if len(some) < SAMPLES:
            some.append(key)
    scale = size / seen if seen >= SCANNED else 1
    return {name: Family(round(counts[name] * scale), _average(client, some)) for name, some in found.items()}


def _scanned(client: Any) -> Iterator[bytes]:
    """SCAN goes through the keys in the order of their hashes, so the first ones are a fair sample."""
    cursor, seen = None, 0
    while cursor != 0 and seen < SCANNED:
        cursor, found = client.scan(cursor or 0, count=STEP)
        seen += len(found)
        yield from found


def _average(client: Any, some: list[bytes]) -> float:
    pipeline = client.pipeline(transaction=False)
    for key in some:
        pipeline.memory_usage(key)
    sizes = [size for size in pipeline.execute() if size]  # one that is gone meanwhile has none
    return sum(sizes) / len(sizes) if sizes else 0.0


class Sizes(NamedTuple):
    """What one key of each kind takes, in bytes."""

    set: int
    hll: int
    bitmap: int


def measured(*, members: int, highest: int) -> Sizes:
    """What a set and a HyperLogLog of so many visitors and a bitmap up to that number take, on this server."""
    with _scratch() as names:
        client: Any = connect(patient=True)
        pipeline = client.pipeline(transaction=True)  # so that no key is ever without its expiry
        for start in range(0, members, STEP):
            visitors = [f"{number:016}" for number in range(start, min(start + STEP, members))]
            pipeline.sadd(names["set"], *visitors)
            pipeline.pfadd(names["hll"], *visitors)
        pipeline.setbit(names["bitmap"], highest, 1)
        for name in names.values():
            pipeline.expire(name, LIFE)
        for name in names.values():
            pipeline.memory_usage(name, samples=0)
        return Sizes(*(size or 0 for size in pipeline.execute()[-3:]))


@contextmanager
def _scratch() -> Iterator[Mapping[str, str]]:
    """Names of keys that nobody else has, and that are gone afterwards."""
    nonce = secrets.token_hex(8)
    names = {kind: keys.budget(nonce, kind) for kind in Sizes._fields}
    try:
        yield names
    finally:
        connect(patient=True).unlink(*names.values())
