"""Setting a subject to zero, in Redis and in SQL, for good.

A flush that read the old count may write it after the reset. So Redis notes the reset for a day. Meanwhile settling and
lifting give that subject nothing back, and every flush lowers its row to the live count. SQL notes the reset as well:
if an old snapshot of Redis is restored, the counts that it holds from before the reset are removed.
"""

from collections.abc import Mapping

from readtrack.flush import archiving
from readtrack.models import Reset
from readtrack.sql import archive, databases, row_counts
from readtrack.sql.row_counts import RowCounts
from readtrack.sql.runs import SqlEpoch
from readtrack.store import counters, flushes, keys, lifecycle, scripts, uniques
from readtrack.store.counters import Total
from readtrack.subjects import rows_by_model, subject_column

NOTED = keys.reset.seconds * 1_000_000  # µs that Redis notes a reset; no flush holds a chunk that long


def reset(subjects: list[str]) -> None:
    """Sets the subjects to zero. Raises redis.RedisError or django.db.Error; then it has to be done again."""
    for some in scripts.sliced(subjects):
        time = scripts.run(lifecycle.reset(some), patient=True)
        for model, rows in rows_by_model(some).items():
            row_counts.zero(model, rows)
        archive.delete(some)
        notes = [(subject_column(subject), time, subject) for subject in some]
        databases.upsert(Reset, ("subject",), ("redis_time", "full_subject"), rows=notes)


def finish(marks: Mapping[str, int], epoch: SqlEpoch, *, now: int) -> None:
    """Lowers rows that got an older count to the live one. `marks` are the noted resets; times are Redis's (µs)."""
    for some in scripts.sliced(list(marks)):
        for model, rows in rows_by_model(some).items():
            stored = row_counts.stored(model, list(rows))
            # Read after SQL, so that a count that SQL rightly stores is live by now.
            live = _live([rows[pk] for pk in stored])
            for pk, row in stored.items():
                lowest = RowCounts(*map(min, row, live[rows[pk]]))
                if lowest != row:
                    row_counts.lower(model, pk, stored=row, live=lowest)
    for subject, time in marks.items():
        if time < now - NOTED:
            archive.delete([subject], models=archive.OWN)  # rows from before may have been written late
            archiving.store_breakdowns([subject], epoch)
            flushes.delete_reset(subject, at=time)


def _live(subjects: list[str]) -> dict[str, RowCounts]:
    if not subjects:
        return {}
    totals, visitors = scripts.run_all(counters.totals(subjects), uniques.visitors(subjects), patient=True)
    return {one: RowCounts(totals.get(one, Total(0)).views, visitors[one]) for one in subjects}


def repeat(times: Mapping[str, int]) -> None:
    """Removes counts from before these resets (µs) from a Redis that was restored from before them.

    SQL stays, because it holds what was counted since the reset.
    """
    for some in scripts.sliced(list(times)):
        scripts.run(lifecycle.purge({subject: times[subject] for subject in some}), patient=True)
