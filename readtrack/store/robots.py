"""Visitors who are robots by what they did: they followed a link that no person sees."""

from collections.abc import Iterable

from readtrack import keys
from readtrack.store.connection import connect

# A mark is a rate beyond all limits, so recording finds it without asking for anything more (record.lua).
TRAPPED = 10**15
NO_LIMIT = TRAPPED - 1  # a rate limit that only the marked exceed
LIFE = 86_400  # seconds that a mark lasts


def mark(visitors: Iterable[str]) -> None:
    """Makes what they do from now on not count, for a day. Raises redis.RedisError."""
    pipeline = connect().pipeline(transaction=False)
    for visitor in visitors:
        pipeline.set(keys.rate(visitor), TRAPPED, ex=LIFE)
    pipeline.execute()
