"""Ids of visitors without a cookie: hashes by a random key of the day.

Redis keeps the key for two days. After that nobody can compute the ids again, whatever secrets they
know.
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

# Seconds after which a process asks Redis again for the key that it remembers. Redis may have lost
# it, and may have given other processes another one.
CONFIRMED_FOR = 60.0

# The keys of today and of the day before, by their names in Redis.
_known_keys: dict[str, bytes] = {}
# When Redis confirmed today's key (seconds of the monotonic clock), by its name.
_confirmed: dict[str, float] = {}


def resolve(visitor: Visitor, *, at: datetime) -> Visitor:
    """Returns the visitor; one that is known by a hash gets the id of the day.

    Asks Redis once a day in each process. Raises redis.RedisError.
    """
    if visitor.kind != "hash":
        return visitor
    name_of_today = _key_name(at)
    if name_of_today in _known_keys:
        key = _known_keys[name_of_today]
        key_before = _known_keys.get(_key_name(at - buckets.DAY), b"")
    else:
        key, key_before = scripts.run(_keys_call(at))
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    # The visitor's window may have begun before midnight, by the id of the day before.
    may_have_window_of_yesterday = at - midnight < timedelta(seconds=conf.WINDOW)
    fallback_id = ""
    if key_before and may_have_window_of_yesterday:
        fallback_id = _hash(visitor.id, key_before)
    return visitor._replace(id=_hash(visitor.id, key), fallback_id=fallback_id, kind="day")


def is_known(at: datetime) -> bool:
    """Returns True if `resolve` needs no round trip, because the process knows the day's key."""
    return _key_name(at) in _known_keys


def upkeep(at: datetime) -> list[Call[Any]]:
    """Returns the call that confirms the day's key, if that is due, for the round trip of a hit."""
    confirmed = _confirmed.get(_key_name(at), 0)
    if time.monotonic() - confirmed < CONFIRMED_FOR:
        return []
    return [replace(_keys_call(at), absent=None)]


def _keys_call(at: datetime) -> Call[tuple[bytes, bytes]]:
    """Returns the call that reads the key of the day, and that of the day before, which is b"" if
    there is none.

    If the day has no key in Redis, it gets the one that this process remembers, or a new one.
    """
    name_of_today = _key_name(at)
    name_of_yesterday = _key_name(at - buckets.DAY)
    proposal = _known_keys.get(name_of_today) or secrets.token_bytes(32)

    def decode(answer: tuple[bytes, bytes | None]) -> tuple[bytes, bytes]:
        """Returns the key of today and that of yesterday, and remembers them in this process."""
        key_of_today, stored_key_of_yesterday = answer
        # Redis may have lost a key of yesterday that this process still remembers.
        key_of_yesterday = stored_key_of_yesterday or _known_keys.get(name_of_yesterday, b"")
        _known_keys[name_of_today] = key_of_today
        if key_of_yesterday:
            _known_keys[name_of_yesterday] = key_of_yesterday
        _forget_past_days()
        _confirmed[name_of_today] = time.monotonic()
        return key_of_today, key_of_yesterday

    return Call("day_key", [name_of_today, name_of_yesterday], (proposal, keys.day_key.ttl), decode)


def _forget_past_days() -> None:
    """Forgets the keys of the days before yesterday, of all tenants."""
    yesterday = buckets.day_bucket(buckets.now() - buckets.DAY)
    for name in list(_known_keys):
        day = name[-len(yesterday) :]  # a name ends with its day, and days sort as text
        if day < yesterday:
            _known_keys.pop(name, None)
            _confirmed.pop(name, None)


def _key_name(at: datetime) -> str:
    """Returns the name in Redis of the key of that day (UTC)."""
    return keys.day_key(keys.tags()[0], buckets.day_bucket(at))


def _hash(text: str, key: bytes) -> str:
    """Returns a keyed hash of the text: 16 URL-safe characters."""
    digest = blake2b(text.encode(), key=key, digest_size=12).digest()
    return urlsafe_b64encode(digest).decode()
