"""Writing settled totals to SQL, and lifting totals in Redis of which SQL holds more."""

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.db.models import Model

from readtrack import buckets
from readtrack.conf import logger
from readtrack.flush.archiving import archive_changed
from readtrack.flush.settling import refuse_hidden, settle, stored_counters
from readtrack.flush.steps import Steps
from readtrack.models import Archive, FlushRun
from readtrack.progress import Progress, no_progress
from readtrack.sql import absent, archive, databases, raising, row_counts
from readtrack.sql.epochs import SqlEpoch
from readtrack.sql.faults import Faults
from readtrack.sql.raising import Written
from readtrack.sql.row_counts import RowCounts
from readtrack.store import counters, keys, removal, scripts, uniques
from readtrack.subjects import subjects_by_model

# Rows that one transaction locks. PostgreSQL raises them in some 20 ms, for which the site's own
# saves of these rows have to wait.
ROWS_LOCKED = 2_000
# Seconds for which the row of a subject has to be missing until a flush removes the subject's keys.
ORPHAN_PATIENCE = keys.DAY


class Extent(NamedTuple):
    """What a flush stores of subjects beside their totals."""

    # Those that may have been viewed since the last good flush. Only for them steps of parts run in
    # the transaction, because the views of an import, which the others may have, are of other
    # hours.
    changed: Container[str] = ()
    archived: Container[str] = ()


class Portion(NamedTuple):
    """Some rows of one model, and their live counts."""

    model: type[Model]
    rows: Mapping[Any, str]  # subjects by primary key
    live: Mapping[str, RowCounts]  # by subject, of these rows and of others in the chunk

    def subjects(self, pks: Sequence[Any]) -> list[str]:
        """Returns the subjects of the rows with these primary keys."""
        return [self.rows[pk] for pk in pks]

    def of(self, subjects: Sequence[str]) -> "Portion":
        """Returns the part of the portion that has these subjects."""
        if len(subjects) == len(self.rows):
            return self
        subjects_to_keep = set(subjects)
        rows = {pk: subject for pk, subject in self.rows.items() if subject in subjects_to_keep}
        return self._replace(rows=rows)


class Work(NamedTuple):
    """What a flush works with."""

    record: FlushRun
    epoch: SqlEpoch
    faults: Faults
    steps: Sequence[Steps]  # of the parts
    changed: dict[str, None]  # subjects that may have been viewed since the last good flush
    # Subjects whose past a part is writing, if everything is compared.
    left_out: frozenset[str] = frozenset()
    progress: Progress = no_progress  # is told the number of totals


def write_chunk(subjects: list[str], work: Work, *, extent: Extent) -> None:
    """Writes one chunk of totals to SQL, raises totals in Redis where SQL has more, and adds the
    numbers to the record.

    `extent` is what it stores beside the totals.
    """
    live = _live(subjects, work)
    # At first all subjects are taken for orphans. Each portion takes off the subjects that have a
    # row. Subjects of models that this site does not have are in no portion, so they stay orphans.
    # Their keys stay, too, because an app may come back.
    work.record.orphans += len(live)
    for portion in _portions(live):
        stale = _write_portion(portion, work, extent)
        due_for_archive = {}
        for subject in portion.rows.values():
            if subject in extent.archived and subject not in stale:
                due_for_archive[subject] = live[subject]
        if due_for_archive:
            write = partial(_archive, due_for_archive, work)
            work.faults.store([*due_for_archive], write)
    work.progress(len(subjects))


def _write_portion(portion: Portion, work: Work, extent: Extent) -> set[str]:
    """Writes the portion, and adds the numbers to the record of the flush.

    Returns the subjects whose rows do not store what was read from Redis, so that their archive
    would be stale.
    """
    record = work.record
    faults = work.faults
    written = Written(raised=[], ahead=[], missing=[], locked=[])
    write = partial(_write, portion, written, work.steps, extent)
    failed = faults.store([*portion.rows.values()], write)
    missing = set(portion.subjects(written.missing))
    ahead = set(portion.subjects(written.ahead))
    locked = set(portion.subjects(written.locked))
    hidden = refuse_hidden(portion.model, missing | locked, faults)
    failed |= hidden
    missing -= hidden
    locked -= hidden
    record.written += len(written.raised)
    record.lifted += _lift([*ahead], faults)
    not_stored = failed | missing
    stored = [subject for subject in portion.rows.values() if subject not in not_stored]
    for step in work.steps:
        step.stored(stored)
    record.orphans -= len(portion.rows) - len(missing)
    _remove_ripe_orphans([*missing])
    if locked:
        record.locked += len(locked)
        counters.mark_changed(locked)  # so that the next flush of what changed tries them again
    return failed | missing | ahead | locked


def _archive(live: Mapping[str, RowCounts], work: Work, subjects: Sequence[str]) -> None:
    """Archives some of the subjects in `live`, and adds the number of lifted ones to the record of
    the flush.
    """
    if absent.is_absent(Archive):
        return
    live_of_some = {subject: live[subject] for subject in subjects}
    hour = buckets.hour_of(work.record.flushed_until)
    work.record.lifted += archive_changed(live_of_some, work.steps, hour=hour)


def _portions(live: Mapping[str, RowCounts]) -> Iterator[Portion]:
    """Yields the rows of the subjects, ROWS_LOCKED rows of one model at most at a time."""
    for model, subjects_by_pk in subjects_by_model(live).items():
        # Sorted, because rows that are neighbours share pages of the table. By subject, because
        # not every primary key has an order.
        pks = sorted(subjects_by_pk, key=subjects_by_pk.__getitem__)
        for pks_of_portion in scripts.sliced(pks, ROWS_LOCKED):
            yield Portion(model, {pk: subjects_by_pk[pk] for pk in pks_of_portion}, live)


def _live(subjects: list[str], work: Work) -> dict[str, RowCounts]:
    """Returns the live views and visitors of the subjects whose totals are settled, by subject.

    Adds the number of totals that exist to the record of the flush.
    """
    portions = scripts.parted(subjects)
    total_calls = [counters.settled_totals(portion) for portion in portions]
    visitor_calls = [uniques.visitors(portion) for portion in portions]
    tags = dict.fromkeys(keys.tag(portion[0]) for portion in portions)
    epoch_calls = [counters.epoch(tag) for tag in tags]
    calls: list[scripts.Call[Any]] = [*total_calls, *visitor_calls, *epoch_calls]
    scripts.run_all(*calls, patient=True)
    # SQL has to know the epoch of the counts before it stores them. Otherwise it would not notice
    # if Redis is restored later from a snapshot that is older than these counts.
    attempts = databases.attempts("epochs")
    while not work.epoch.advance([call.result for call in epoch_calls]):
        next(attempts)
        work.record.settled += settle(work.epoch, work.faults)
        scripts.run_all(*calls, patient=True)
    totals: dict[str, bytes | None] = {}
    visitors: dict[str, int] = {}
    for portion, total_call, visitor_call in zip(portions, total_calls, visitor_calls, strict=True):
        existing_count, totals_of_portion = total_call.result
        work.record.read += existing_count
        totals.update(zip(portion, totals_of_portion, strict=True))
        visitors.update(visitor_call.result)
    numbers = _numbers(totals)
    return {subject: RowCounts(total, visitors[subject]) for subject, total in numbers.items()}


def _numbers(totals: Mapping[str, bytes | None]) -> dict[str, int]:
    """Returns the totals that are numbers, by subject. Logs a warning about all other totals."""
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


def _write(
    portion: Portion,
    written: Written,
    steps: Sequence[Steps],
    extent: Extent,
    subjects: Sequence[str],
) -> None:
    """Writes some subjects of the portion, and adds their rows to those that are written."""
    connection = databases.of(row_counts.table_of(portion.model))
    write = partial(_write_rows, portion.of(subjects), steps, extent)
    written_now = databases.retried(connection, write)
    written.raised.extend(written_now.raised)
    written.ahead.extend(written_now.ahead)
    written.missing.extend(written_now.missing)
    written.locked.extend(written_now.locked)


def _write_rows(portion: Portion, steps: Sequence[Steps], extent: Extent) -> Written:
    """Raises the rows, and lets parts store what belongs to those raised rows that changed."""
    snapshots = {pk: portion.live[subject] for pk, subject in portion.rows.items()}
    # In one transaction, so that a kill cannot come between a count and what a part stores with
    # it. (If they are in different databases, it can: then this transaction is that of the count.)
    connection = databases.of(row_counts.table_of(portion.model))
    with databases.site_transaction(connection, is_writing=True):
        written = raising.write(portion.model, snapshots)
        changed: dict[str, RowCounts] = {}
        for subject in portion.subjects(written.raised):
            if subject in extent.changed:
                changed[subject] = portion.live[subject]
        for step in steps:
            step.in_transaction(changed)
    return written


def _lift(subjects: Sequence[str], faults: Faults) -> int:
    """Raises totals in Redis to SQL's counts. Returns how many totals were below them."""
    if not subjects:
        return 0
    stored = stored_counters(subjects, faults)
    return sum(scripts.run_all(*counters.lift(stored), patient=True))


def _remove_ripe_orphans(subjects: Sequence[str]) -> None:
    """Removes those of the subjects whose row was already missing ORPHAN_PATIENCE ago.

    The subjects have no row now.
    """
    for portion in scripts.parted(subjects):
        ripe = scripts.run(removal.ripe_orphans(portion, age=ORPHAN_PATIENCE), patient=True)
        if ripe:
            scripts.run(removal.remove(ripe), patient=True)
            archive.delete(ripe)
