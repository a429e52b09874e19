"""Writing settled totals to SQL, and lifting totals in Redis of which SQL holds more."""

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Model

from readtrack.conf import conf, logger
from readtrack.flush.archiving import archive_changed
from readtrack.flush.hours import hour_at
from readtrack.flush.settling import settle, stored_counters
from readtrack.models import FlushRun
from readtrack.sql import archive, databases, epochs, history, raising, row_counts
from readtrack.sql.raising import Written
from readtrack.sql.row_counts import RowCounts
from readtrack.store import counters, keys, removal, scripts, uniques
from readtrack.subjects import rows_by_model

# Rows locked at once. PostgreSQL raises so many in some 20 ms, for which the site's own saves of
# these rows wait.
ROWS_LOCKED = 2_000
# Seconds from a flush that misses a row until a later flush, which misses it too, removes its keys.
ORPHAN_PATIENCE = keys.DAY


class Portion(NamedTuple):
    """Some rows of one model, and their live counts."""

    model: type[Model]
    rows: Mapping[Any, str]  # subjects by primary key
    live: Mapping[str, RowCounts]  # by subject

    def subjects(self, pks: Sequence[Any]) -> list[str]:
        """Returns the subjects of the rows with these primary keys."""
        return [self.rows[pk] for pk in pks]


def write_chunk(
    subjects: list[str],
    run: FlushRun,
    *,
    epoch: epochs.SqlEpoch,
    changed: Container[str],
    archived: Container[str] = (),
) -> None:
    """Writes one chunk of totals, lifts those that SQL holds more of, and adds the numbers to the
    run.

    History is kept of the subjects in `changed`, because of other subjects it is not known in which
    hour they changed. Those in `archived` are archived, and all by an archiving flush.
    """
    live = _live(subjects, run, epoch)
    hour = hour_at(run.flushed_until)
    # Subjects of no model stay orphans and are not removed, because an app may come back.
    run.orphans += len(live)
    for portion in _portions(live):
        write = partial(_write, portion, changed=changed, hour=hour)
        written = databases.retried(databases.of(row_counts.table_of(portion.model)), write)
        run.written += len(written.raised)
        run.lifted += _lift(portion.subjects(written.ahead))
        run.orphans -= len(portion.rows) - len(written.missing)
        _remove_ripe(portion.subjects(written.missing))
        locked = set(portion.subjects(written.locked))
        if locked:
            run.locked += len(locked)
            counters.change(locked)
        # These rows do not store what was read from Redis, so their archive would be stale.
        stale = {*locked, *portion.subjects([*written.ahead, *written.missing])}
        due = {}
        for subject in portion.rows.values():
            is_due = run.kind == run.Kind.ARCHIVE or subject in archived
            if is_due and subject not in stale:
                due[subject] = live[subject]
        if due:
            run.lifted += archive_changed(due, epoch, hour=hour)


def _portions(live: Mapping[str, RowCounts]) -> Iterator[Portion]:
    """Yields as many rows of one model as are locked at once."""
    for model, rows in rows_by_model(live).items():
        # Neighbours share pages of the table. They are sorted by their subjects, because not every
        # primary key has an order.
        pks = sorted(rows, key=rows.__getitem__)
        for some_pks in scripts.sliced(pks, ROWS_LOCKED):
            yield Portion(model, {pk: rows[pk] for pk in some_pks}, live)


def _live(subjects: list[str], run: FlushRun, epoch: epochs.SqlEpoch) -> dict[str, RowCounts]:
    """Returns the views and visitors of the settled totals, and adds their number to the run."""
    portions = scripts.parted(subjects)
    total_calls = [counters.settled_totals(portion) for portion in portions]
    visitor_calls = [uniques.visitors(portion) for portion in portions]
    tags = dict.fromkeys(keys.tag(portion[0]) for portion in portions)
    epoch_calls = [counters.epoch(tag) for tag in tags]
    calls: list[scripts.Call[Any]] = [*total_calls, *visitor_calls, *epoch_calls]
    scripts.run_all(*calls, patient=True)
    # SQL has to know the epoch of what it stores, or it could not tell this Redis from one that is
    # restored from before it.
    while not epoch.advance([call.result for call in epoch_calls]):
        run.settled += settle(epoch)
        scripts.run_all(*calls, patient=True)
    totals: dict[str, bytes | None] = {}
    visitors: dict[str, int] = {}
    for portion, total_call, visitor_call in zip(portions, total_calls, visitor_calls, strict=True):
        existing, answer = total_call.result
        run.read += existing
        totals.update(zip(portion, answer, strict=True))
        visitors.update(visitor_call.result)
    numbers = _numbers(totals)
    return {subject: RowCounts(total, visitors[subject]) for subject, total in numbers.items()}


def _numbers(totals: Mapping[str, bytes | None]) -> dict[str, int]:
    """Returns the totals that exist, and logs a warning of those that are no numbers."""
    numbers: dict[str, int] = {}
    broken: list[str] = []
    for subject, total in totals.items():
        if total is None:  # missing or unsettled
            continue
        if counters.is_number(total):
            numbers[subject] = int(total)
        else:
            broken.append(subject)
    if broken:
        logger.warning(
            "Totals that are no numbers were not flushed: %s. Run: readtrack doctor",
            ", ".join(broken[:3]),
        )
    return numbers


def _write(portion: Portion, *, changed: Container[str], hour: int) -> Written:
    """Raises the rows, and stores the history of the raised ones in `changed`."""
    model, rows, live = portion
    # One transaction where both are in one database, so that a kill cannot come between count and
    # history.
    with transaction.atomic(using=databases.of(row_counts.table_of(model)).alias):
        written = raising.write(model, {pk: live[subject] for pk, subject in rows.items()})
        if conf.HISTORY:
            raised = portion.subjects(written.raised)
            history.store(
                {subject: live[subject] for subject in raised if subject in changed}, hour=hour
            )
    return written


def _lift(subjects: Sequence[str]) -> int:
    """Raises totals in Redis to SQL's counts. Returns how many were below these."""
    if not subjects:
        return 0
    stored = stored_counters(subjects)
    return sum(scripts.run_all(*counters.lift(stored), patient=True))


def _remove_ripe(subjects: Sequence[str]) -> None:
    """Removes subjects without a row if their row was already missing ORPHAN_PATIENCE ago."""
    for portion in scripts.parted(subjects):
        ripe = scripts.run(removal.ripe_orphans(portion, age=ORPHAN_PATIENCE), patient=True)
        if ripe:
            scripts.run(removal.remove(ripe), patient=True)
            archive.delete(ripe)
