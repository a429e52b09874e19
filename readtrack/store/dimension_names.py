"""The names of dimensions, past ones too: counts by a dimension that is gone are removed from
Redis.
"""

from collections.abc import Collection, Sequence
from typing import Any

from readtrack import parts
from readtrack.store import keys, scripts
from readtrack.store.connection import server_time
from readtrack.store.scripts import Call

# A dimension that is not among the site's for so long (µs) is gone. A deploy that changes them
# takes less.
GONE_AFTER = keys.DAY * 1_000_000


def gone(tags: Sequence[str]) -> list[str]:
    """Notes the dimensions of the site, and returns those that it had until a day ago or earlier.

    Raises redis.RedisError.
    """
    now = server_time(patient=True)
    scores = scripts.flat((now, name) for name in parts.dimensions())
    range_of_gone = ("-inf", now - GONE_AFTER, "BYSCORE")
    note_calls: list[Call[Any]] = []
    gone_calls = []
    for tag in tags:
        key_name = keys.dimension_names(tag)
        if scores:
            note_calls.append(Call("ZADD", [key_name], scores))
        gone_calls.append(Call("ZRANGE", [key_name], range_of_gone, scripts.names))
    scripts.run_all(*note_calls, *gone_calls, patient=True)
    names: dict[str, None] = {}
    for call in gone_calls:
        names.update(dict.fromkeys(call.result))
    return [*names]


def remove(names: Sequence[str], subjects: Collection[str]) -> None:
    """Removes the counts of the subjects by these dimensions. Raises redis.RedisError."""
    calls: list[Call[Any]] = []
    for portion in scripts.parted(subjects):
        key_names = [keys.dimension(name, subject) for subject in portion for name in names]
        calls.append(Call("UNLINK", key_names))
    scripts.run_all(*calls, patient=True)


def forget(names: Sequence[str], tags: Sequence[str]) -> None:
    """Forgets dimensions whose counts are removed. Raises redis.RedisError."""
    calls: list[Call[Any]] = [Call("ZREM", [keys.dimension_names(tag)], names) for tag in tags]
    scripts.run_all(*calls, patient=True)
