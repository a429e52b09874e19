"""Refreshing what is trending, next to fetching sixty hashes and adding them up."""

import random
from collections import Counter
from datetime import datetime, timedelta, timezone
from itertools import count
from typing import Any

from readtrack import buckets
from readtrack.store import keys
from readtrack.store.connection import connect
from readtrack.store.trending import MINUTES, refresh_trending
from tests.benchmarks.measuring import compare, table

POSTS = 20_000  # viewed within the hour
VIEWED = 5_400  # of them in one minute
ROUNDS = 9
FIRST = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)

_minutes = count(1)


def main() -> None:
    """Prints a table; a round is a minute, with the two refreshes that beat makes in it."""
    connect(patient=True).flushdb()
    for minute in range(-MINUTES, 2 * ROUNDS):
        fill(FIRST + timedelta(minutes=minute))
    refresh_trending(at=FIRST)
    names = ["60 hashes, fetched and added up", "a refresh"]
    found = compare(dict(zip(names, (fetch, refresh), strict=True)), each=1, rounds=ROUNDS)
    fetched, refreshed = found[names[0]][0], found[names[1]][0] / 2
    table(
        f"Trending over {POSTS:,} active posts, {VIEWED:,} a minute (at least 10 × faster)",
        [
            ("", "median", "ratio"),
            (names[0], f"{fetched / 1000:.1f} ms", f"{fetched / refreshed:.1f} ×"),
            (names[1], f"{refreshed / 1000:.1f} ms", ""),
        ],
    )


def fill(minute: datetime) -> None:
    """A minute's bucket, and the same as a hash."""
    chosen = random.sample(range(POSTS), VIEWED)
    views = {f"site.post:{number}": random.randint(1, 20) for number in chosen}
    client: Any = connect(patient=True)
    client.zadd(keys.trending_bucket("", buckets.minute_bucket(minute)), views)
    client.hset(f"hash:{buckets.minute_bucket(minute)}", mapping=views)


def refresh() -> None:
    """The first refresh of a minute slides the list, the second one takes up what came since."""
    minute = FIRST + timedelta(minutes=next(_minutes))
    for seconds in (0, 30):
        refresh_trending(at=minute + timedelta(seconds=seconds))


def fetch() -> None:
    pipeline: Any = connect(patient=True).pipeline(transaction=False)
    for minute in buckets.minute_buckets(MINUTES, until=FIRST):
        pipeline.hgetall(f"hash:{minute}")
    total: Counter[bytes] = Counter()
    for views in pipeline.execute():
        for member, number in views.items():
            total[member] += int(number)
    total.most_common(10)
