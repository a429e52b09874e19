"""Setting a subject to zero, on both sides and for good.

A flush that read the old count may write it after the reset. So Redis remembers the reset for a day, in which settling
and lifting give that subject nothing back, and every flush brings its row down to what is live. SQL remembers it
too: when an old snapshot of Redis comes back, what it holds from before the reset is removed.
"""

from collections.abc import Iterable

from readtrack.flush import archiving
from readtrack.models import Reset
from readtrack.sql import archive, databases, row_counts
from readtrack.sql.row_counts import RowCounts
from readtrack.store import counters, lifecycle, scripts, uniques
from readtrack.subjects import rows_by_model, subject_column

LIFE = 86_400_000_000  # microseconds; no flush holds on to a chunk that long


def reset(subjects: list[str]) -> None:
    """Sets the subjects to zero. Raises redis.RedisError or django.db.Error; then it has to be done again."""
    for some in scripts.sliced(subjects):
        time = scripts.run(lifecycle.reset(some), patient=True)
        for model, rows in rows_by_model(some).items():
            for pk in rows:
                row_counts.zero(model, pk)
        archive.delete(some)
        _remember(some, time)


def _remember(subjects: Iterable[str], time: int) -> None:
    rows = ((subject_column(subject), time, subject) for subject in subjects)
    databases.upsert(Reset, ("subject",), ("redis_time", "full_subject"), rows=rows)


def finish(*, now: int) -> None:
    """Brings rows that an older count was written to down to what is live; `now` is Redis's, in microseconds."""
    marks = lifecycle.resets()
    for some in scripts.sliced(list(marks)):
        for model, rows in rows_by_model(some).items():
            stored = row_counts.stored(model, list(rows))
            # Read after SQL: what SQL rightly stores is live by now.
            live = _live([rows[pk] for pk in stored])
            for pk, row in stored.items():
                right = live[rows[pk]]
                if row.views > right.views or row.visitors > right.visitors:
                    lowest = RowCounts(min(row.views, right.views), min(row.visitors, right.visitors))
                    row_counts.lower(model, pk, stored=row, live=lowest)
    for subject, time in marks.items():
        if time < now - LIFE:
            archive.delete([subject], models=archive.OWN)  # old ones may have been written late
            archiving.store_breakdowns([subject])
            lifecycle.delete_reset(subject, at=time)


def _live(subjects: list[str]) -> dict[str, RowCounts]:
    if not subjects:
        return {}
    totals, visitors = scripts.run_all(counters.totals(subjects), uniques.visitors(subjects), patient=True)
    return {
        subject: RowCounts(totals[subject].views if subject in totals else 0, visitors[subject]) for subject in subjects
    }


def delete_marks(*, before: int) -> None:
    """Drops the marks in a restored Redis, of resets before then (µs): what is live there may be less than is right."""
    lifecycle.delete_resets(until=before)


def repeat(*, since: int) -> None:
    """Removes the counts that a restored Redis, which remembers nothing since then (µs), has from before a reset.

    SQL's side stays: it holds what was counted since the reset.
    """
    rows = Reset.objects.using(databases.of(Reset).alias).filter(redis_time__gt=since)
    times = dict(rows.values_list("full_subject", "redis_time"))
    for some in scripts.sliced(list(times)):
        scripts.run(lifecycle.purge({subject: times[subject] for subject in some}), patient=True)
