"""What is kept of deleted rows, so that new rows with the same keys do not inherit their counts.

Redis may be gone when a row is deleted, or come back later from before that. Then it still has the
counts of the old row. A row of Reset says when they ended, as it does for a count that was reset.
"""

from collections.abc import Iterable, Sequence

from django.db.models import Max

from readtrack.models import FlushRun, Reset
from readtrack.sql import archive, databases
from readtrack.store import clock, keys, removal, resetting, scripts
from readtrack.store.circuit import fail_open
from readtrack.subjects import subject_column

LOWERED = "lowered:"  # begins the names of subjects of which counts were taken back
KEPT = 90 * keys.DAY * 1_000_000  # µs; an older snapshot of Redis gives old counts to new rows


def remove(subjects: Sequence[str]) -> None:
    """Removes the counts of deleted rows from Redis and from the app's own tables, for good.

    If Redis fails, the next flush that finds it removes them.
    """
    for portion in scripts.parted(subjects):
        time = fail_open(scripts.run, 0, removal.remove(portion))
        if not time:  # Redis failed
            time = _latest_time(portion)
        note_times(dict.fromkeys(portion, time), is_deletion=True)
        archive.delete(portion)


def note_times(times: dict[str, int], *, is_deletion: bool = False) -> None:
    """Notes in SQL when subjects were reset, or their rows deleted: times of Redis, by subject."""
    rows = [
        (subject_column(subject), time, subject, is_deletion) for subject, time in times.items()
    ]
    fields = ("redis_time", "full_subject", "is_deletion")
    databases.upsert(Reset, ("subject",), fields, rows=rows)


def times_of_lowering(subjects: Iterable[str]) -> dict[str, int]:
    """Returns when counts of the subjects were last taken back (µs), by subject."""
    columns = [subject_column(LOWERED + subject) for subject in subjects]
    rows = databases.having(databases.rows(Reset), "subject", columns)
    return dict(rows.values_list("full_subject", "redis_time"))


def times_of_resets(subjects: Iterable[str]) -> dict[str, int]:
    """Returns when the subjects were last reset, or their rows deleted (µs), by subject."""
    subject_by_column = {subject_column(subject): subject for subject in subjects}
    rows = databases.having(databases.rows(Reset), "subject", [*subject_by_column])
    times = rows.values_list("subject", "redis_time")
    return {subject_by_column[column]: time for column, time in times}


def _latest_time(subjects: Sequence[str]) -> int:
    """Returns the time (µs) of a new note that `subjects` were reset or deleted.

    No Redis of the site has noted a later time until now, however its clock goes. All earlier notes
    of `subjects` have other times, because Redis is told of each time once.
    """
    estimate = (int(clock.now().timestamp()) + 1) * 1_000_000
    newest_flush = databases.rows(FlushRun).aggregate(newest=Max("redis_time"))["newest"] or 0
    notes = databases.rows(Reset).filter(subject__in=[*map(subject_column, subjects)])
    newest_note = notes.aggregate(newest=Max("redis_time"))["newest"] or 0
    return max(estimate, newest_flush + 1, newest_note + 1)


def make_way(subject: str) -> None:
    """Removes from Redis what it still has of a deleted row, because a new row gets its key.

    Redis is told of the deletion by that, so that no flush takes the first views of the new row for
    those of the old one. Raises redis.RedisError or django.db.Error.
    """
    rows = databases.rows(Reset).filter(subject=subject_column(subject), is_deletion=True)
    time = rows.values_list("redis_time", flat=True).first()
    if time is not None:
        scripts.run(resetting.purge([subject], {subject: time}))


def forget_old(*, now: int) -> None:
    """Deletes the notes of deletions that are KEPT old, by Redis's clock (µs)."""
    databases.rows(Reset).filter(is_deletion=True, redis_time__lt=now - KEPT).delete()
