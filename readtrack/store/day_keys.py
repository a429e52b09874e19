"""Ids of visitors by a random key of the day, gone after two: then nobody can compute them, by any
secret.
"""

import secrets
import time
from base64 import urlsafe_b64encode
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

from readtrack import buckets
from readtrack.conf import conf
from readtrack.hits.visitors import Visitor
from readtrack.store import keys, scripts
from readtrack.store.scripts import Call

# seconds in which a process relies on the key that it remembers, because Redis may lose it
CONFIRMED_FOR = 60.0

_known: dict[str, bytes] = {}  # by their names in Redis: the keys of today and of the day before
_confirmed: dict[str, float] = {}  # when Redis confirmed today's, by the monotonic clock


def resolve(visitor: Visitor, *, at: datetime) -> Visitor:
    """Returns the visitor with ids of the day, if known by a hash.

    Asks Redis once in a process and day. Raises redis.RedisError.
    """
    if visitor.kind != "hash":
        return visitor
    today = _name(at)
    if today in _known:
        key = _known[today]
        key_before = _known.get(_name(at - buckets.DAY), b"")
    else:
        key, key_before = scripts.run(ask(at))
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    # A window may have begun on the day before.
    is_early = at - midnight < timedelta(seconds=conf.WINDOW)
    fallback_id = _hash(visitor.id, key_before) if key_before and is_early else ""
    return visitor._replace(id=_hash(visitor.id, key), fallback_id=fallback_id, kind="day")


def is_known(at: datetime) -> bool:
    """Returns True if `resolve` does not ask Redis."""
    return _name(at) in _known


def upkeep(at: datetime) -> list[Call[Any]]:
    """Returns what confirms the day's key now and then, in the round trip of a hit."""
    confirmed = _confirmed.get(_name(at), 0)
    if time.monotonic() - confirmed < CONFIRMED_FOR:
        return []
    return [replace(ask(at), absent=None)]


def ask(at: datetime) -> Call[tuple[bytes, bytes]]:
    """Reads the keys of the day and of the day before, b"" for none.

    A day without a key gets the one that this process remembers, or a new one.
    """
    today = _name(at)
    yesterday = _name(at - buckets.DAY)
    proposal = _known.get(today) or secrets.token_bytes(32)

    def decode(answer: list[bytes | None]) -> tuple[bytes, bytes]:
        """Returns the two keys of the answer, and remembers them in this process.

        Without a key in Redis, today's is the proposal, and yesterday's is what is remembered.
        """
        key = answer[0] or proposal
        key_before = answer[1] or _known.get(yesterday, b"")
        _known[today] = key
        if key_before:
            _known[yesterday] = key_before
        _forget_past_days()
        _confirmed[today] = time.monotonic()
        return key, key_before

    return Call("day_key", [today, yesterday], (proposal, keys.day_key.ttl), decode)


def _forget_past_days() -> None:
    """Forgets the keys of the days before yesterday, of all tenants."""
    oldest = buckets.day_bucket(buckets.now() - buckets.DAY)
    for name in list(_known):
        if name[-len(oldest) :] < oldest:
            _known.pop(name, None)
            _confirmed.pop(name, None)


def _name(at: datetime) -> str:
    return keys.day_key(keys.tags()[0], buckets.day_bucket(at))


def _hash(text: str, key: bytes) -> str:
    return urlsafe_b64encode(blake2b(text.encode(), key=key, digest_size=12).digest()).decode()
