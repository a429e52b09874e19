"""The compact form of windows: sets of hashed integers for each slice of time.

A visitor's view of a subject is one 32-bit integer (two, until a new visitor's cookie comes back) in one of
`WINDOW_SHARDS` sets. A window ends with the slice that it would end in, about one slice late at most.
"""

from collections.abc import Sequence
from hashlib import blake2b
from math import ceil

from readtrack.conf import conf
from readtrack.hits.hit import Hit
from readtrack.store import keys


def is_compact() -> bool:
    """Returns True if the site chose this form."""
    return conf.WINDOW_STORE == "compact"


def length() -> int:
    """Returns the length of one slice (s)."""
    return max(1, ceil(conf.WINDOW / max(1, conf.WINDOW_SLICES)))


def count() -> int:
    """Returns how many slices a window may touch: those that make it up, and the one that it begins in."""
    return ceil(conf.WINDOW / length()) + 1


def of_view(subject: str, *, identities: Sequence[str], hit: Hit) -> list[tuple[str, int | str]]:
    """Returns the windows that may hold the visitor's view of the subject, each with its member; "" for a string."""
    if not is_compact():
        return [(keys.window(who, subject), "") for who in identities]
    entries = [entry(subject, visitor=who, hit=hit) for who in identities]
    return [(name, member) for names, member in entries for name in names]


def entry(subject: str, *, visitor: str, hit: Hit) -> tuple[list[str], int]:
    """Returns the sets that may hold the visitor's view of the subject, newest first, and the view's member of them."""
    digest = blake2b(f"{visitor}:{subject}".encode(), digest_size=8).digest()
    tag, shards = keys.tag(subject), max(1, conf.WINDOW_SHARDS // conf.PARTITIONS)
    shard = int.from_bytes(digest[:4], "big") % shards
    newest = int(hit.at.timestamp()) // length()
    names = [keys.window_slice(tag, f"{number:x}", f"{shard:x}") for number in range(newest, newest - count(), -1)]
    return names, int.from_bytes(digest[4:], "big", signed=True)
