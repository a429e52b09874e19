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
    """Returns the visitor with ids of the day, if known by a hash. Asks Redis once in a process and
    day.
    """
    if visitor.kind != "hash":
        return visitor
    name, before = _name(at), _name(at - buckets.DAY)
    key, old = (_known[name], _known.get(before, b"")) if name in _known else scripts.run(ask(at))
    day_began = at.replace(hour=0, minute=0, second=0, microsecond=0)
    fallback_id = (
        _hash(visitor.id, old) if old and at - day_began < timedelta(seconds=conf.WINDOW) else ""
    )
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
    """Reads the keys of the day and of the day before. A day without one gets what we remember, or
    a new one.
    """
    name, before = _name(at), _name(at - buckets.DAY)
    key = _known.get(name) or secrets.token_bytes(32)

    def decode(found: list[bytes | None]) -> tuple[bytes, bytes]:
        both = found[0] or key, found[1] or _known.get(before, b"")
        _known.update({day: one for day, one in zip((name, before), both, strict=True) if one})
        oldest = buckets.day_bucket(buckets.now() - buckets.DAY)
        for past in [
            other for other in list(_known) if other[-len(oldest) :] < oldest
        ]:  # of all tenants
            _known.pop(past, None)
            _confirmed.pop(past, None)
        _confirmed[name] = time.monotonic()
        return both

    return Call("day_key", [name, before], (key, keys.day_key.ttl), decode)


def _name(at: datetime) -> str:
    return keys.day_key(keys.tags()[0], buckets.day_bucket(at))


def _hash(text: str, key: bytes) -> str:
    return urlsafe_b64encode(blake2b(text.encode(), key=key, digest_size=12).digest()).decode()
