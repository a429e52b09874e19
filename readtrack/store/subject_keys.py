"""All keys of subjects, and calls of the scripts that take them: remove, reset and purge."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from readtrack import buckets, parts
from readtrack.conf import cached_setting
from readtrack.store import keys
from readtrack.store.scripts import Call

# Pieces of names of keys of which all values that there may be are known.
LISTED_PIECES = frozenset({"date", "hour", "minute", "dimension"})


@cached_setting("INSTALLED_APPS", maxsize=1)
def every_row() -> Sequence[keys.Key]:
    """Returns the rows with keys about a subject, without those of single visitors."""
    return [
        row
        for row in keys.every()
        if "subject" in row.piece_names
        and LISTED_PIECES.issuperset({*row.piece_names} - {"subject"})
    ]


@cached_setting("INSTALLED_APPS", maxsize=1)
def rows_of_read_state() -> Sequence[keys.Key]:
    """Returns the rows with keys about the read state of a subject."""
    return [row for row in every_row() if row.kept_with == "read state"]


@cached_setting("INSTALLED_APPS", maxsize=1)
def _other_rows_of_counts() -> Sequence[keys.Key]:
    """Returns the rows with keys about the counts of a subject, without its total, its sketch and
    its hashes.
    """
    left_out = {keys.total, keys.hll}
    left_out.update(row for row in keys.every() if row.settles and row.type == "hash")
    return [row for row in every_row() if row.kept_with == "counts" and row not in left_out]


@cached_setting("INSTALLED_APPS", maxsize=1)
def _lasting_rows_of_counts() -> Sequence[keys.Key]:
    """Returns those of `_other_rows_of_counts` whose keys do not expire by themselves."""
    return [row for row in _other_rows_of_counts() if not row.ttl]


def names_of(rows: Sequence[keys.Key], subject: str, *, at: datetime) -> list[str]:
    """Returns the names of all keys of these rows that a subject may have."""
    tag = keys.tag(subject)
    return [
        row.placed({**slot, "subject": subject}, tag=tag)
        for row in rows
        for slot in slots(row, at=at)
    ]


def slots(row: keys.Key, *, at: datetime) -> list[dict[str, str]]:
    """Returns the pieces of names, beside the subject, of all keys of the row that there may be.

    For a row with a key for each day, they are the days of the lifetime; for a row with one key,
    there is one slot without pieces.
    """
    piece_names = [name for name in row.piece_names if name in LISTED_PIECES]
    values = [_values(name, row.ttl, at) for name in piece_names]
    return [dict(zip(piece_names, slot, strict=True)) for slot in product(*values)]


def _values(piece: str, lifetime: int, at: datetime) -> Sequence[str]:
    """Returns the values that a piece of the names of keys may have, by the lifetime of the keys
    (s).
    """
    if piece == "dimension":
        return parts.dimensions()
    if piece == "minute":
        return buckets.minute_buckets(lifetime // keys.MINUTE + 2, until=at + buckets.MINUTE)
    if piece == "hour":
        hours = range(lifetime // keys.HOUR + 1)
        return [buckets.hour_bucket(at - number * buckets.HOUR) for number in hours]
    days = buckets.local_days(at - timedelta(seconds=lifetime), at)
    return [*map(buckets.day_bucket, days)]


def call(
    script: str,
    shared: Sequence[keys.Key],
    rows: Mapping[str, dict[str, Any]],
    *arguments: int,
    decode: Callable[[Any], int] = int,
    leaves_expiring: bool = False,
) -> Call[int]:
    """Returns a call with the shared keys of one partition, then all keys of each subject.

    `rows` has what else the script has to know of each subject, by subject. The script gets it as a
    JSON list, whose entries also say where in KEYS the keys of the subject are, and behind it the
    arguments. The result is a number, which the script decides. With `leaves_expiring` the script
    does not get the keys that expire by themselves, such as those of days.
    """
    kinds = keys.hash_kinds()
    prefix = keys.prefix()
    tag = keys.tag(next(iter(rows)))
    at = buckets.now()
    other_rows = _lasting_rows_of_counts() if leaves_expiring else _other_rows_of_counts()
    other_keys = [(row, slot) for row in other_rows for slot in slots(row, at=at)]
    key_names = [row(tag) for row in shared]
    entries: list[dict[str, Any]] = []
    for subject, details in rows.items():
        first = len(key_names) + 1  # Lua counts from 1
        hashes = [keys.member(kind, subject) for kind in kinds]
        key_names += [keys.total(subject), keys.hll(subject)]
        key_names += [prefix + name for name in hashes]
        key_names += [row.placed({**slot, "subject": subject}, tag=tag) for row, slot in other_keys]
        entry = {
            "subject": subject,
            "names": [subject, *hashes],
            "first": first,
            "last": len(key_names),
            **details,
        }
        entries.append(entry)
    return Call(script, key_names, (json.dumps(entries), *arguments), decode)
