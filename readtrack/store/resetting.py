"""Setting subjects to zero in Redis. The time of each reset is noted for the next flushes."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from readtrack.store import keys, scripts, subject_keys
from readtrack.store.connection import connect
from readtrack.store.scripts import Call


def reset(subjects: Sequence[str]) -> Call[int]:
    """Returns the call that sets subjects of one partition to zero.

    The result is the time of the reset (µs, by Redis).
    """
    return subject_keys.call(
        "reset", [keys.unsettled, keys.reset], {subject: {} for subject in subjects}
    )


def purge(subjects: Sequence[str], times: Mapping[str, int]) -> Call[int]:
    """Returns the call that removes what Redis has of subjects of one partition from before their
    resets, or of deleted rows.

    `times` has the time of the reset or the deletion (µs) by subject. The result is the number of
    subjects whose reset or deletion Redis did not know.
    """
    shared = [keys.unsettled, keys.reset, keys.purged, keys.flush_last, keys.flush_full]
    rows = {subject: {"time": times[subject]} for subject in subjects}
    return subject_keys.call("purge", shared, rows, keys.purged.ttl)


def noted(subjects: Sequence[str]) -> Call[set[str]]:
    """Returns the call that reads which subjects of one partition have a note of their reset."""

    def decode(answer: Sequence[Any]) -> set[str]:
        return {subject for subject, time in zip(subjects, answer, strict=True) if time is not None}

    return Call("ZMSCORE", [keys.reset(keys.tag(subjects[0]))], subjects, decode)


def noted_resets(tags: Sequence[str] = ()) -> dict[str, int]:
    """Returns the times (µs) of the noted resets by subject, by default of all partitions."""
    calls = [
        Call("ZRANGE", [keys.reset(tag)], (0, -1, "WITHSCORES"), scripts.pairs)
        for tag in tags or keys.tags()
    ]
    return dict(chain(*scripts.run_all(*calls, patient=True)))


def delete_reset(subject: str, *, at: int) -> None:
    """Deletes the note of the subject's reset at `at` (µs).

    The note of a later reset stays.
    """
    client: Any = connect(patient=True)
    name = keys.reset(keys.tag(subject))
    if client.zscore(name, subject) == at:
        client.zrem(name, subject)
