"""What the Redis server tells of itself and of what is in it. For the doctor; nothing here writes data."""

import secrets
import time
from collections import ChainMap, Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from redis.exceptions import ResponseError
from redis.utils import str_if_bytes

from readtrack import buckets
from readtrack.store import counters, keys, scripts
from readtrack.store.connection import connect
from readtrack.store.counters import Total

SCANNED = 200_000  # keys looked at, at most; of more the scan is a random sample
SAMPLES = 200  # keys of a family that are weighed
STEP = 1_000  # keys looked at in one SCAN
LIFE = 60  # seconds that a key written for a measurement lives, should nobody remove it


class KeyFamily(NamedTuple):
    """Keys of one kind: how many there are, and what one of them takes on average, in bytes."""

    keys: int
    each: float

    @property
    def bytes(self) -> int:
        return round(self.keys * self.each)


def key_families() -> dict[str, KeyFamily]:
    """What the keys in Redis take, by their family in the key table; those of others, if any, as "other"."""
    client: Any = connect(patient=True)
    size, seen = client.dbsize(), 0
    found: dict[str, list[bytes]] = {}
    counts: dict[str, int] = {}
    for key in _scanned(client):
        seen += 1
        name = keys.kind_of(key.decode(errors="replace"))
        counts[name] = counts.get(name, 0) + 1
        some = found.setdefault(name, [])
        if len(some) < SAMPLES:
            some.append(key)
    scale = size / seen if seen >= SCANNED else 1
    return {name: KeyFamily(round(counts[name] * scale), _average(client, some)) for name, some in found.items()}


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


Refused = ResponseError  # the server answers that it may not, cannot or will not

PINGS = 5
SCANS = 200  # steps of SCAN, at most: what is found in them stands for the rest
MEASURED = 500  # keys measured in one round trip


class Family(NamedTuple):
    """Keys of one kind: an estimate of how many there are and what they take."""

    name: str
    keys: int
    memory: int  # bytes


class Marks(NamedTuple):
    """Counts that lack SQL's base: how many, and for how many seconds the oldest has."""

    counts: int
    oldest: float


def ping() -> float:
    """Seconds that a page waits for the fastest of a few answers."""
    client = connect()
    times = []
    for _ in range(PINGS):
        start = time.perf_counter()
        client.ping()
        times.append(time.perf_counter() - start)
    return min(times)


def info() -> dict[str, Any]:
    """The server's INFO; empty where our user may not ask."""
    try:
        found: dict[str, Any] = connect().info()
    except Refused:
        return {}
    return found


def configured(name: str) -> str | None:
    """A directive of its configuration; None where our user may not ask or the host does not say."""
    client: Any = connect(patient=True)
    try:
        values = client.config_get(name)
    except Refused:  # hosted servers refuse CONFIG altogether
        return None
    return next((str_if_bytes(value) for value in values.values()), None)


def try_scripts() -> None:
    """Loads every script, and runs one."""
    scripts.load(connect(patient=True))
    scripts.run(counters.epoch(), patient=True)


def families(*, sample: int, progress: Callable[[int], object]) -> list[Family]:
    """Our keys by kind, largest first, from a sample of that many keys."""
    client: Any = connect(patient=True)
    looked_at = _some_keys(client, sample)
    if not looked_at:
        return []
    names = {key: keys.kind_of(key.decode(errors="replace")) for key in looked_at}
    ours = [key for key, name in names.items() if name != "other"]
    count, size = Counter[str](), Counter[str]()
    for start in range(0, len(ours), MEASURED):
        some = ours[start : start + MEASURED]
        pipeline = client.pipeline(transaction=False)
        for key in some:
            pipeline.memory_usage(key)
        for key, taken in zip(some, pipeline.execute(), strict=True):
            count[names[key]] += 1
            size[names[key]] += taken or 0  # it may have expired meanwhile
        progress(len(some))
    scale = max(1.0, client.dbsize() / len(looked_at))
    return [Family(name, round(count[name] * scale), round(taken * scale)) for name, taken in size.most_common()]


def _some_keys(client: Any, sample: int) -> list[bytes]:
    found, cursor = set[bytes](), 0
    for _ in range(SCANS):
        cursor, some = client.scan(cursor, count=counters.SCAN_COUNT)
        found.update(some)
        if not cursor or len(found) >= sample:
            break
    return list(islice(found, sample))


def marks() -> Marks:
    """What waits to be settled."""
    client: Any = connect(patient=True)
    count, oldest = client.zcard(keys.unsettled()), client.zrange(keys.unsettled(), 0, 0, withscores=True)
    return Marks(count, max(0.0, (counters.clock() - oldest[0][1]) / 1_000_000) if oldest else 0.0)


def some_totals(sample: int) -> dict[str, Total]:
    """Some totals by subject, each of at most that many."""
    subjects = list(dict.fromkeys(islice(counters.scan(), sample)))
    answers = scripts.run_all(*map(counters.totals, scripts.sliced(subjects)), patient=True)
    return dict(ChainMap(*answers))


def recent(subjects: Sequence[str], *, minutes: Sequence[datetime]) -> dict[str, int]:
    """The views of each subject in those minutes."""
    pipeline: Any = connect(patient=True).pipeline(transaction=False)
    for minute in minutes:
        pipeline.zmscore(keys.trending_bucket(buckets.minute_bucket(minute)), subjects)
    columns = zip(*pipeline.execute(), strict=True)
    return {
        subject: sum(int(views or 0) for views in column) for subject, column in zip(subjects, columns, strict=True)
    }
