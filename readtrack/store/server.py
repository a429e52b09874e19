"""What the Redis server tells of itself and of what is in it. For the doctor; nothing here writes data."""

import time
from collections import ChainMap, Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from redis.exceptions import ResponseError
from redis.utils import str_if_bytes

from readtrack import buckets, keys
from readtrack.store import counters, scripts
from readtrack.store.connection import connect
from readtrack.store.counters import Total

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
    names = {key: keys.family(key.decode(errors="replace")) for key in looked_at}
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
    count, oldest = client.zcard(keys.unbased()), client.zrange(keys.unbased(), 0, 0, withscores=True)
    return Marks(count, max(0.0, (counters.clock() - oldest[0][1]) / 1_000_000) if oldest else 0.0)


def some_totals(sample: int) -> dict[str, Total]:
    """Some totals by token, each of at most that many."""
    tokens = list(dict.fromkeys(islice(counters.scan(), sample)))
    answers = scripts.run_all(*map(counters.totals, scripts.sliced(tokens)), patient=True)
    return dict(ChainMap(*answers))


def recent(tokens: Sequence[str], *, minutes: Sequence[datetime]) -> dict[str, int]:
    """The views of each token in those minutes."""
    pipeline: Any = connect(patient=True).pipeline(transaction=False)
    for minute in minutes:
        pipeline.zmscore(keys.trending_bucket(buckets.minute(minute)), tokens)
    columns = zip(*pipeline.execute(), strict=True)
    return {token: sum(int(views or 0) for views in column) for token, column in zip(tokens, columns, strict=True)}
