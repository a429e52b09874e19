"""Writes a chunk of totals into SQL, and raises totals in Redis where SQL holds more."""

from typing import Any

from django.db import transaction

from readtrack.conf import conf
from readtrack.flush import archiving
from readtrack.flush.scope import run_hour
from readtrack.flush.settling import settle
from readtrack.models import FlushRun, Tracked
from readtrack.sql import archive, databases, epochs, history, row_counts
from readtrack.sql.row_counts import RowCounts, Written
from readtrack.store import counters, lifecycle, scripts, uniques
from readtrack.store.counters import Stored
from readtrack.subjects import rows_by_model


def write_chunk(subjects: list[str], run: FlushRun, *, changed: dict[str, None]) -> None:
    """Writes one chunk, then lifts what SQL turned out to hold more of."""
    live = _live(subjects, run)
    run.orphans += len(live)
    for model, rows in rows_by_model(live).items():
        written = _write(model, rows, live, changed=changed, hour=run_hour(run))
        run.written += len(written.raised)
        run.lifted += _lift({rows[pk]: views for pk, views in written.ahead.items()})
        run.orphans -= len(rows) - len(written.missing)  # what is no row of a model stays: an app may come back
        _remove_orphans([rows[pk] for pk in written.missing])
        if run.kind == run.Kind.ARCHIVE:
            known = {subject: live[subject] for subject in rows.values()}
            archiving.archive(known, hour=run_hour(run))


def _live(subjects: list[str], run: FlushRun) -> dict[str, RowCounts]:
    """The counts of those totals that have their base."""
    slices = scripts.sliced(subjects)
    reads = [call for some in slices for call in (counters.settled_totals(some), uniques.visitors(some))]
    *answers, epoch = scripts.run_all(*reads, counters.epoch(), patient=True)
    # SQL has to know the epoch of what it stores, or it could not tell a Redis that is restored from before it.
    while not epochs.advance(epoch.current, previous=epoch.previous):
        run.settled += settle()
        *answers, epoch = scripts.run_all(*reads, counters.epoch(), patient=True)
    live: dict[str, RowCounts] = {}
    for some, (found, totals), visitors in zip(slices, answers[::2], answers[1::2], strict=True):
        run.read += found
        pairs = zip(some, totals, strict=True)
        live.update(
            (subject, RowCounts(int(total), visitors[subject])) for subject, total in pairs if total is not None
        )
    return live


def _write(
    model: type[Tracked], rows: dict[Any, str], live: dict[str, RowCounts], *, changed: dict[str, None], hour: int
) -> Written:
    connection = databases.of(model)

    def write() -> Written:
        # One transaction where the two share a database: a kill must not come between count and history.
        with transaction.atomic(using=connection.alias):
            written = row_counts.write(model, {pk: live[subject] for pk, subject in rows.items()})
            # What changed before the buckets began has no hour that is known.
            if conf.HISTORY and changed:
                raised = changed.keys() & {rows[pk] for pk in written.raised}
                history.store({subject: live[subject] for subject in raised}, hour=hour)
        return written

    return databases.retried(connection, write)


def _lift(behind: dict[str, int]) -> int:
    if not behind:
        return 0
    sketches = archive.sketches(behind)
    stored = {subject: Stored({"": views}, sketches.get(subject, b"")) for subject, views in behind.items()}
    return sum(
        scripts.run_all(
            *(counters.lift({t: stored[t] for t in some}) for some in scripts.sliced(list(stored))), patient=True
        )
    )


def _remove_orphans(subjects: list[str]) -> None:
    """Removes the keys of rows that were missing before, and are missing still."""
    if not subjects:
        return
    ripe = scripts.run(lifecycle.ripe_orphans(subjects, age=conf.ORPHAN_AGE), patient=True)
    for some in scripts.sliced(ripe):
        scripts.run(lifecycle.remove(some), patient=True)
        archive.delete(some)
