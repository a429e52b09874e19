"""Removing subjects from Redis: those whose row in SQL is gone, and those that were not viewed for
long.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from readtrack.store import keys, scripts, subject_keys
from readtrack.store.scripts import Call

SHARED_KEYS = (keys.unsettled, keys.reset, keys.purged, keys.flush_orphans)


def ripe_orphans(subjects: Sequence[str], *, age: int) -> Call[list[str]]:
    """Returns the call that notes that subjects of one partition have no row in SQL.

    The result is the subjects that were first noted `age` seconds ago or earlier.
    """
    notes = keys.flush_orphans(keys.tag(subjects[0]))
    return Call("orphan", [notes], (age * 1_000_000, *subjects), scripts.names)


def remove(subjects: Sequence[str]) -> Call[int]:
    """Returns the call that removes all keys of subjects of one partition whose rows are gone. The
    result is Redis's time (µs).
    """
    rows: dict[str, dict[str, Any]] = {subject: {} for subject in subjects}
    return subject_keys.call("remove", SHARED_KEYS, rows, keys.purged.ttl, decode=_time_of)


def _time_of(answer: Sequence[Any]) -> int:
    """Returns Redis's time in an answer of remove.lua, which has it as text."""
    _number_removed, redis_time = answer
    return int(redis_time)


def remove_idle(
    views: Mapping[str, int], hashes: Mapping[tuple[str, str], Mapping[str, int]] | None
) -> Call[int]:
    """Returns the call that removes subjects of one partition if Redis holds exactly what SQL
    stores of them.

    `views` has the stored totals by subject, `hashes` the stored counts by kind and subject, then
    by field. The script compares the totals, and the sum of the counts of each kind. The result is
    the number of subjects that were removed. `hashes` is None where no part stores any: what a part
    that is gone has left over goes with its subject. What expires by itself stays, because reports
    still read it.
    """
    rows = {}
    for subject, total in views.items():
        sums = []
        if hashes is not None:
            for kind in keys.hash_kinds():
                counts = hashes.get((kind, subject), {})
                sums.append(sum(counts.values()))
        rows[subject] = {"stored": {"views": str(total), "sums": sums}}
    return subject_keys.call(
        "remove",
        SHARED_KEYS,
        rows,
        keys.purged.ttl,
        decode=itemgetter(0),
        leaves_expiring=True,
    )
