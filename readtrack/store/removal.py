"""Removing subjects from Redis: those whose row is gone, and those that were idle for long."""

from collections.abc import Mapping, Sequence
from typing import Any

from readtrack.store import keys, scripts, subject_keys
from readtrack.store.scripts import Call

SHARED = (keys.unsettled, keys.reset, keys.purged, keys.flush_orphans)


def ripe_orphans(subjects: Sequence[str], *, age: int) -> Call[list[str]]:
    """Notes that subjects of one partition have no row in SQL.

    The answer has those that were noted at least `age` seconds ago.
    """
    notes = keys.flush_orphans(keys.tag(subjects[0]))
    return Call("orphan", [notes], (age * 1_000_000, *subjects), scripts.names)


def remove(subjects: Sequence[str]) -> Call[int]:
    """Removes all keys of subjects of one partition whose rows are gone. The answer is Redis's time
    (µs).
    """
    rows: dict[str, dict[str, Any]] = {subject: {} for subject in subjects}
    return subject_keys.call(
        "remove", SHARED, rows, keys.purged.ttl, decode=lambda answer: int(answer[1])
    )


def remove_idle(
    views: Mapping[str, int], hashes: Mapping[tuple[str, str], Mapping[str, int]]
) -> Call[int]:
    """Removes subjects of one partition if they hold exactly what SQL stores.

    `views` has the stored totals by subject, `hashes` the stored counts by kind and subject, then
    by field. Redis compares the totals, and the sum of the counts of each kind. The answer is the
    number of subjects that were removed.
    """
    rows = {}
    for subject, total in views.items():
        sums = [sum(hashes.get((kind, subject), {}).values()) for kind in keys.hash_kinds()]
        rows[subject] = {"stored": {"views": str(total), "sums": sums}}
    return subject_keys.call(
        "remove", SHARED, rows, keys.purged.ttl, decode=lambda answer: int(answer[0])
    )
