"""Merging the hashes of counts: funnels, reading, and the values of dimensions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from django.db import transaction

from readtrack.conf import conf
from readtrack.hits.reading import READ
from readtrack.models import Breakdown
from readtrack.sql import archive, breakdown_history, databases, epochs, history, row_counts
from readtrack.sql.row_counts import RowCounts
from readtrack.store import counters, keys, scripts
from readtrack.store.counters import Epoch, Hash, Name, Stored
from readtrack.subjects import subject_column

Hashes = Mapping[Name, Mapping[str, int]]  # counts by field, of each hash

READING = "reading"  # the hash of a subject's reads
OTHER = "other"  # the field that takes the counts of replaced values


def store(subjects: Sequence[str], epoch: epochs.SqlEpoch, *, hour: int) -> Hashes:
    """Stores the counts of the subjects' hashes, with their gains under that hour (since 1970).

    Raises hashes in Redis where SQL holds more. Returns the settled hashes, without counts where
    Redis has none. If Redis has to be settled first, the next flush stores them.
    """
    hashes: dict[Name, Mapping[str, int]] = {}
    for portion in scripts.sliced(subjects):
        hashes.update(_store_portion(portion, epoch, hour=hour))
    return hashes


def _store_portion(subjects: Sequence[str], epoch: epochs.SqlEpoch, *, hour: int) -> Hashes:
    # SQL is read before Redis, so that _add_gains sees whether rows changed since then.
    stored = archive.breakdowns(
        [(kind, subject) for subject in subjects for kind in keys.hash_kinds()]
    )
    live, redis_epochs = _live_hashes(subjects)
    if not epoch.advance(redis_epochs):
        return live
    if conf.HISTORY and _gains(live, stored):
        add_gains = partial(_add_gains, live, stored, hour=hour)
        if not databases.retried(databases.of(Breakdown), add_gains):
            return {**live, **_store_portion(subjects, epoch, hour=hour)}
    else:
        _raise(live, stored, hour=hour)
    _lift(live, stored)
    return live


def _live_hashes(subjects: Sequence[str]) -> tuple[Hashes, Sequence[Epoch]]:
    """Returns the settled hashes, and the epochs of their partitions as of a moment later."""
    hash_calls = counters.hashes(subjects, keys.hash_kinds())
    epoch_calls = [counters.epoch(tag) for tag in keys.by_tag(subjects)]
    scripts.run_all(*hash_calls, *epoch_calls, patient=True)
    settled: dict[Name, Mapping[str, int]] = {}
    for call in hash_calls:
        for name, counts in call.result.items():
            if counts.is_settled:
                settled[name] = counts.counts
    return settled, [call.result for call in epoch_calls]


def _lift(live: Hashes, stored: Hashes) -> None:
    """Raises the hashes in Redis of which SQL holds more."""
    ahead = [name for name in live if _higher(live[name], stored[name])]
    if not ahead:
        return
    # SQL is read again after Redis, so that nothing comes back that was deleted in between.
    stored = archive.breakdowns(ahead)
    higher = {keys.member(*name): Stored(_higher(live[name], stored[name])) for name in ahead}
    scripts.run_all(*counters.lift(higher), patient=True)


def _higher(counts: Mapping[str, int], stored: Mapping[str, int]) -> Mapping[str, int]:
    """Returns the stored counts that are higher than the live ones of a hash."""
    # A value that Redis lacks was replaced if it counts no more than the floor. Otherwise Redis
    # has lost it.
    floor = Hash(counts).floor
    return {field: count for field, count in stored.items() if count > counts.get(field, floor)}


def _gains(live: Hashes, stored: Hashes) -> Counter[breakdown_history.Gain]:
    """Returns how much more is live than stored, by model, kind of hash and field.

    Where new values have replaced others in a hash, the gain of each value is an estimate. The sum
    of the hash is exact.
    """
    gains: Counter[breakdown_history.Gain] = Counter()
    for (hash_kind, subject), counts in live.items():
        if hash_kind == READING:  # reads have a history of each object
            continue
        label = subject.partition(":")[0]
        for field, rise in _rises(counts, stored[hash_kind, subject]).items():
            gains[label, hash_kind, field[: archive.FIELD_LENGTH]] += rise
    return +gains  # without zeros


def _rises(counts: Mapping[str, int], stored: Mapping[str, int]) -> dict[str, int]:
    """Returns how much each field of a hash rose, without the counts that new values inherited."""
    rises = {
        field: count - stored.get(field, 0)
        for field, count in counts.items()
        if count > stored.get(field, 0)
    }
    # A new value has the count of the one that it replaced.
    inherited = sum(stored[field] for field in _replaced(counts, stored))
    heirs = rises.keys() - (stored.keys() - {OTHER})
    for field in sorted(heirs, key=lambda field: (field != OTHER, rises[field])):
        least = 0 if field == OTHER else 1  # a new value was seen at least once
        share = min(inherited, rises[field] - least)
        rises[field] -= share
        inherited -= share
    return rises


def _replaced(counts: Mapping[str, int], stored: Mapping[str, int]) -> list[str]:
    """Returns the stored values of a hash that others have replaced, not those that were lost."""
    floor = Hash(counts).floor
    return [field for field, count in stored.items() if field not in counts and count <= floor]


def _add_gains(live: Hashes, before: Hashes, *, hour: int) -> bool:
    """Stores the counts, and what they gained, in one transaction.

    Returns False if rows are not as they were `before` Redis was read, which has to be read again.
    """
    with transaction.atomic(using=databases.of(Breakdown).alias):
        epochs.lock_epoch()  # one flush at a time, because each of two would add the same gain
        stored = archive.breakdowns(live)
        # The rows were stored, replaced, reset or deleted, maybe after Redis was read.
        if any(stored[name] != before[name] for name in live):
            return False
        _raise(live, stored, hour=hour)
        # Read again and not computed, because MySQL may store two values that differ in case as
        # one.
        breakdown_history.add_gains(_gains(archive.breakdowns(live), stored), hour=hour)
    return True


def _raise(live: Hashes, stored: Hashes, *, hour: int) -> None:
    """Stores counts that rose, and deletes values that were replaced."""
    live = _without_deleted(live, stored)
    if conf.HISTORY:
        # The reads come before the counts, because a flush that is killed in between is done
        # again.
        _store_reads(live, stored, hour=hour)
    databases.upsert(Breakdown, ("subject", "kind", "field"), ("count",), rows=_rows(live, stored))
    for name, counts in live.items():
        if replaced := _replaced(counts, stored[name]):
            archive.delete_fields(name, replaced, floor=Hash(counts).floor)


def _without_deleted(live: Hashes, stored: Hashes) -> Hashes:
    """Returns the live hashes without those that Redis holds of deleted rows.

    Redis was down when the row was deleted, or was restored from before it. SQL has deleted the
    hash, so its counts would be gained a second time.
    """
    new = [name for name, counts in live.items() if counts and not stored[name]]
    # SQL deletes a hash after its row. So a row that is found here, after `stored` was read, had
    # all its hashes in `stored`.
    missing = row_counts.missing({subject for _hash_kind, subject in new})
    deleted = {name for name in new if name[1] in missing}
    return {name: counts for name, counts in live.items() if name not in deleted}


def _store_reads(live: Hashes, stored: Hashes, *, hour: int) -> None:
    """Stores the reads that rose in the history of their objects."""
    risen: dict[str, RowCounts] = {}
    for (hash_kind, subject), counts in live.items():
        if hash_kind != READING:
            continue
        reads = counts.get(READ, 0)
        if reads > stored[hash_kind, subject].get(READ, 0):
            risen[history.of_reads(subject)] = RowCounts(reads, 0)
    history.store(risen, hour=hour)


def _rows(live: Hashes, stored: Hashes) -> list[tuple[str, str, str, int]]:
    """Returns the rows of Breakdown that are to be raised: subject, kind, field and count."""
    rows = []
    for (hash_kind, subject), counts in live.items():
        column = subject_column(subject)
        before = stored[hash_kind, subject]
        for field, count in counts.items():
            if count > before.get(field, 0):
                rows.append((column, hash_kind, field[: archive.FIELD_LENGTH], count))
    return rows
