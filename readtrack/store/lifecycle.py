"""The end of a subject's keys: removing, resetting, and removing what a restored Redis brought back."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from readtrack.store import keys, scripts
from readtrack.store.connection import connect
from readtrack.store.counters import SCAN_COUNT
from readtrack.store.scripts import Call


def remove(subjects: Sequence[str]) -> Call[int]:
    """Removes all keys of the subjects; the answer is how many subjects."""
    return _call("remove", [keys.unsettled(), keys.flush_orphans()], {subject: {} for subject in subjects})


def remove_idle(stored: Mapping[str, tuple[int, Mapping[str, int]]]) -> Call[int]:
    """Removes subjects that hold exactly what SQL stores: the total, and the sum of the counts of each kind of hash."""
    rows = {
        subject: {"stored": {"views": str(views), "sums": [sums.get(kind, 0) for kind in keys.hash_kinds()]}}
        for subject, (views, sums) in stored.items()
    }
    return _call("remove", [keys.unsettled(), keys.flush_orphans()], rows, owned=keys.stored)


def reset(subjects: Sequence[str]) -> Call[int]:
    """Sets the subjects to zero; the answer is Redis's time of it (µs)."""
    return _call("reset", [keys.unsettled(), keys.reset()], {subject: {} for subject in subjects})


def purge(times: Mapping[str, int]) -> Call[int]:
    """Removes counts from before these resets (µs); the answer is how many resets this Redis did not know of."""
    rows = {subject: {"time": time} for subject, time in times.items()}
    return _call("purge", [keys.unsettled(), keys.reset(), keys.flush_last()], rows)


def _call(
    script: str,
    names: list[str],
    rows: Mapping[str, dict[str, Any]],
    *,
    owned: Callable[[str], tuple[str, ...]] = keys.lasting,
) -> Call[int]:
    """Returns the script's call with the keys of each subject, and a row that says where they are."""
    kinds = keys.hash_kinds()
    found = []
    for subject, row in rows.items():
        first = len(names) + 1
        names += owned(subject)
        members = [subject, *(keys.member(kind, subject) for kind in kinds)]
        found.append({"subject": subject, "names": members, "first": first, "last": len(names), **row})
    return Call(script, names, (json.dumps(found),), int)


def clear() -> None:
    """Removes every key with our prefix."""
    client: Any = connect(patient=True)
    for some in scripts.sliced(list(client.scan_iter(match=keys.matching("*"), count=SCAN_COUNT))):
        client.unlink(*some)
