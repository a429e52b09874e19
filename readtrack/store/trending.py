"""Trending: the sum of the last sixty minute buckets."""

from datetime import datetime
from typing import Any

from readtrack import buckets, keys
from readtrack.store.connection import connect

MINUTES = 60
LIFE = 30  # seconds that a computed list is good for


def top(limit: int, *, at: datetime) -> list[tuple[str, int]]:
    """Tokens and views of the last hour, most viewed first; empty while the first list is computed."""
    client: Any = connect()
    if not client.exists(keys.trending_top()) and client.set(keys.trending_lock(), 1, nx=True, ex=5):
        refresh(at=at)
    found = client.zrange(keys.trending_top(), 0, limit - 1, desc=True, withscores=True)
    return [(member.decode(), int(score)) for member, score in found]


def refresh(*, at: datetime) -> int:
    """Computes the list anew; gives how many subjects are on it."""
    client = connect(patient=True)
    slots = buckets.minutes(MINUTES, until=at)
    size = client.zunionstore(keys.trending_top(), [keys.trending_bucket(buckets.minute(slot)) for slot in slots])
    client.expire(keys.trending_top(), LIFE)
    return int(size)
