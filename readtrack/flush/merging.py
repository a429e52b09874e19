"""Merges Redis and SQL by maximum: settles counters that began anew, writes totals, lifts totals that are behind."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.db import transaction

from readtrack.conf import conf
from readtrack.flush import archiving, hours
from readtrack.models import FlushRun, Tracked
from readtrack.sql import archive, databases, history, row_counts
from readtrack.sql.row_counts import RowCounts, Written
from readtrack.sql.runs import SqlEpoch, known_epoch
from readtrack.store import counters, flushes, keys, lifecycle, scripts, uniques
from readtrack.store.counters import Stored
from readtrack.subjects import rows_by_model

NOTHING = Stored({"": 0})
HOUR = 3_600_000_000  # µs


def settle(epoch: SqlEpoch) -> int:
    """Adds SQL's count to every counter that is unsettled by now. Returns the number of counters settled.

    Also lets a Redis that was restored from a snapshot join SQL's epochs. Raises redis.RedisError or django.db.Error.
    """
    settled, until = 0, max(counters.clock(), epoch.number)
    while True:
        names = counters.unsettled(until=until)
        stored = _stored(names) if names else {}
        # SQL's epoch is read after SQL's counts, so that all of them were settled in this epoch or an earlier one.
        done = scripts.run(counters.settle(stored, known=known_epoch()), patient=True)
        epoch.advance(done.epoch)
        settled += done.counters
        if not names:
            return settled


def _stored(names: list[str]) -> dict[str, Stored]:
    """Returns what SQL stores of each counter: zero for a row that is gone."""
    found = dict.fromkeys(names, NOTHING)
    if hourly := [name for name in names if keys.is_hour(name)]:
        found |= hours.stored_hours(hourly)
    others = [keys.split_member(name) for name in names if not keys.is_hour(name)]
    if hashes := [name for name in others if name[0]]:
        found |= {keys.member(*name): Stored(counts) for name, counts in archive.breakdowns(hashes).items()}
    for model, rows in rows_by_model(names).items():
        counts = row_counts.stored(model, list(rows))
        sketches = archive.sketches(rows.values())
        for pk, row in counts.items():
            found[rows[pk]] = Stored({"": row.views}, sketches.get(rows[pk], b""))
    return found


def write_chunk(subjects: list[str], run: FlushRun, epoch: SqlEpoch, *, changed: Mapping[str, None]) -> None:
    """Writes one chunk of totals, lifts those that SQL holds more of, and adds the numbers to the run.

    History is kept of the subjects in `changed`; others may have changed in an hour that is not known.
    """
    live = _live(subjects, run, epoch)
    hour = run.flushed_until // HOUR
    run.orphans += len(live)
    for model, rows in rows_by_model(live).items():
        write = partial(_write, model, rows, live, changed=changed, hour=hour)
        written = databases.retried(databases.of(model), write)
        run.written += len(written.raised)
        if written.ahead:
            run.lifted += _lift({rows[pk]: views for pk, views in written.ahead.items()})
        run.orphans -= len(rows) - len(written.missing)  # subjects of no model stay: an app may come back
        if written.missing:
            _remove_orphans([rows[pk] for pk in written.missing])
        if run.kind == run.Kind.ARCHIVE:
            archiving.archive_changed({subject: live[subject] for subject in rows.values()}, epoch, hour=hour)


def _live(subjects: list[str], run: FlushRun, epoch: SqlEpoch) -> dict[str, RowCounts]:
    """Returns the views and visitors of the settled totals."""
    slices = scripts.sliced(subjects)
    reads = [call for some in slices for call in (counters.settled_totals(some), uniques.visitors(some))]
    *answers, current = scripts.run_all(*reads, counters.epoch(), patient=True)
    # SQL has to know the epoch of what it stores, or it could not tell a Redis that is restored from before it.
    while not epoch.advance(current):
        run.settled += settle(epoch)
        *answers, current = scripts.run_all(*reads, counters.epoch(), patient=True)
    live: dict[str, RowCounts] = {}
    for some, (found, totals), visitors in zip(slices, answers[::2], answers[1::2], strict=True):
        run.read += found
        for subject, total in zip(some, totals, strict=True):
            if total is not None:
                live[subject] = RowCounts(int(total), visitors[subject])
    return live


def _write(
    model: type[Tracked],
    rows: Mapping[Any, str],
    live: Mapping[str, RowCounts],
    *,
    changed: Mapping[str, None],
    hour: int,
) -> Written:
    # One transaction where both are in one database, so that a kill cannot come between count and history.
    with transaction.atomic(using=databases.of(model).alias):
        written = row_counts.write(model, {pk: live[subject] for pk, subject in rows.items()})
        raised = changed.keys() & {rows[pk] for pk in written.raised} if conf.HISTORY else ()
        history.store({subject: live[subject] for subject in raised}, hour=hour)
    return written


def _lift(behind: Mapping[str, int]) -> int:
    sketches = archive.sketches(behind)
    stored = [(subject, Stored({"": views}, sketches.get(subject, b""))) for subject, views in behind.items()]
    calls = [counters.lift(dict(some)) for some in scripts.sliced(stored)]
    return sum(scripts.run_all(*calls, patient=True))


def _remove_orphans(subjects: list[str]) -> None:
    """Removes the keys of subjects whose row was missing before and is still missing."""
    ripe = scripts.run(flushes.ripe_orphans(subjects, age=conf.ORPHAN_AGE), patient=True)
    for some in scripts.sliced(ripe):
        scripts.run(lifecycle.remove(some), patient=True)
        archive.delete(some)
