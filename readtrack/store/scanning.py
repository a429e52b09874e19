"""Looking through all keys with SCAN, and removing many of them."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from readtrack.progress import Progress, no_progress
from readtrack.store import keys, scripts
from readtrack.store.connection import connect
from readtrack.store.scripts import Call
from readtrack.store.servers import SeveralServers

SCAN_COUNT = 1000  # keys looked at in one SCAN step, which scripts then work through


def key_batches(
    pattern: str,
    progress: Progress = no_progress,
    *,
    tag: str = "",
    beginning: str | None = None,
) -> Iterator[list[str]]:
    """Yields the names of the keys that match the pattern behind the prefix, one list a SCAN step.

    A name may come twice. `progress` is told the number of keys looked at since the last
    call. With the tag of a partition, only the server of the partition is asked. `beginning` is
    another prefix than ours. Raises redis.RedisError.
    """
    client: Any = connect(patient=True)
    match = keys.matching(pattern, beginning=beginning)
    # None is the first one. That of a cluster is a value of its own kind, but the last one is 0.
    cursor: Any = None
    if tag and isinstance(client, SeveralServers):
        cursor = client.scan_of([keys.unsettled(tag)])
    while cursor != 0:
        cursor, answer = client.scan(cursor or 0, match=match, count=SCAN_COUNT)
        progress(SCAN_COUNT)
        yield [name.decode() for name in answer]


def subjects(label: str) -> Iterator[str]:
    """Yields the subjects of the model `label` that have counts or read state.

    They come in no order. A subject may come more than once. Raises redis.RedisError.
    """
    separator = ":"
    if keys.is_divided():  # then a tag such as `:{rt07}` is between the family and the subject
        separator = ":{rt*}:"
    rows = [row for row in keys.every() if row is keys.total or row.kept_with == "read state"]
    families = dict.fromkeys(row.family for row in rows)
    for family in families:
        for name in chain.from_iterable(key_batches(f"{family}{separator}{label}:*")):
            _, pieces = keys.parse(name)
            subject = pieces.get("subject")
            if subject:
                yield subject


def unlink(key_names: Sequence[str]) -> int:
    """Removes the keys. Returns how many existed. Raises redis.RedisError."""
    # One command a key, because the keys of a cluster may be in different slots.
    calls = [Call[int]("UNLINK", [name]) for name in key_names]
    return sum(scripts.run_all(*calls, patient=True))


def clear() -> None:
    """Removes every key with our prefix. Raises redis.RedisError."""
    for key_names in key_batches("*"):
        unlink(key_names)
