"""Calls of the scripts that take all keys of many subjects: remove, reset and purge."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from readtrack import buckets, local_time
from readtrack.store import keys
from readtrack.store.scripts import Call

# Keys of a subject beside its total, its sketch and its hashes.
VISITOR_KEYS = (keys.unique, keys.daily, keys.bitmap, keys.earlier)
DAYS_OF_VISITORS: int = keys.day_visitors.ttl // keys.DAY  # days before today that may have keys


def call(
    script: str,
    shared: Sequence[keys.Key],
    rows: Mapping[str, dict[str, Any]],
    *arguments: int,
    decode: Callable[[Any], int] = int,
) -> Call[int]:
    """Returns a call with the shared keys of one partition, then all keys of each subject.

    `rows` has what else the script has to know of each subject, by subject. The script gets it as a
    JSON list, whose entries also say where in KEYS the keys of the subject are, and behind it the
    arguments. The result is a number, which the script decides.
    """
    kinds = keys.hash_kinds()
    prefix = keys.prefix()
    tag = keys.tag(next(iter(rows)))
    now = buckets.now()
    days = local_time.local_days(now - DAYS_OF_VISITORS * buckets.DAY, now)
    key_names = [row(tag) for row in shared]
    entries: list[dict[str, Any]] = []
    for subject, details in rows.items():
        first = len(key_names) + 1  # Lua counts from 1
        hashes = [keys.member(kind, subject) for kind in kinds]
        key_names += [keys.total(subject), keys.hll(subject)]
        key_names += [prefix + name for name in hashes]
        key_names += [row(subject) for row in VISITOR_KEYS]
        key_names += [keys.day_visitors(buckets.day_bucket(day), subject) for day in days]
        entry = {
            "subject": subject,
            "names": [subject, *hashes],
            "first": first,
            "last": len(key_names),
            **details,
        }
        entries.append(entry)
    return Call(script, key_names, (json.dumps(entries), *arguments), decode)
