"""Setting a subject to zero, on both sides and for good.

A flush that read the old count may write it after the reset. So Redis remembers the reset for a day, in which settling
and lifting give that subject nothing back, and every flush brings its row down to what is live. SQL remembers it
too: when an old snapshot of Redis comes back, what it holds from before the reset is removed.
"""

from collections.abc import Iterable

from readtrack import subjects
from readtrack.flush import archiving
from readtrack.models import Reset
from readtrack.sql import archive, databases, row_counts
from readtrack.sql.row_counts import Snapshot
from readtrack.store import counters, lifecycle, scripts, uniques

LIFE = 86_400_000_000  # microseconds; no flush holds on to a chunk that long


def reset(tokens: list[str]) -> None:
    """Sets the subjects to zero. Raises redis.RedisError or django.db.Error; then it has to be done again."""
    for some in scripts.sliced(tokens):
        time = scripts.run(lifecycle.reset(some), patient=True)
        for model, rows in subjects.rows(some).items():
            for pk in rows:
                row_counts.zero(model, pk)
        archive.delete(some)
        _remember(some, time)


def _remember(tokens: Iterable[str], time: int) -> None:
    rows = ((subjects.column(token), time, token) for token in tokens)
    databases.upsert(Reset, ("subject",), ("redis_time", "token"), rows=rows)


def finish(*, now: int) -> None:
    """Brings rows that an older count was written to down to what is live; `now` is Redis's, in microseconds."""
    marks = lifecycle.resets()
    for some in scripts.sliced(list(marks)):
        for model, rows in subjects.rows(some).items():
            stored = row_counts.stored(model, list(rows))
            # Read after SQL: what SQL rightly stores is live by now.
            live = _live([rows[pk] for pk in stored])
            for pk, row in stored.items():
                right = live[rows[pk]]
                if row.views > right.views or row.visitors > right.visitors:
                    lowest = Snapshot(min(row.views, right.views), min(row.visitors, right.visitors))
                    row_counts.lower(model, pk, stored=row, live=lowest)
    for token, time in marks.items():
        if time < now - LIFE:
            archive.delete([token], models=archive.OWN)  # old ones may have been written late
            archiving.keep_breakdowns([token])
            lifecycle.forget_reset(token, at=time)


def _live(tokens: list[str]) -> dict[str, Snapshot]:
    if not tokens:
        return {}
    totals, visitors = scripts.run_all(counters.totals(tokens), uniques.visitors(tokens), patient=True)
    return {token: Snapshot(totals[token].views if token in totals else 0, visitors[token]) for token in tokens}


def forget(*, before: int) -> None:
    """Drops the marks in a restored Redis, of resets before then (µs): what is live there may be less than is right."""
    lifecycle.forget_resets(until=before)


def repeat(*, since: int) -> None:
    """Removes the counts that a restored Redis, which remembers nothing since then (µs), has from before a reset.

    SQL's side stays: it holds what was counted since the reset.
    """
    rows = Reset.objects.using(databases.of(Reset).alias).filter(redis_time__gt=since)
    times = dict(rows.values_list("token", "redis_time"))
    for some in scripts.sliced(list(times)):
        scripts.run(lifecycle.purge({token: times[token] for token in some}), patient=True)
