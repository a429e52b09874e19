"""Merging the hashes of counts of Redis and SQL: funnels, reading, and values of dimensions.

A hash has a name, which is its kind and its subject, and a count for each of its fields. `live` are
the hashes in Redis, `stored` are those in SQL (the model Breakdown).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from readtrack import local_time
from readtrack.conf import conf
from readtrack.models import Breakdown
from readtrack.sql import (
    archive,
    breakdown_history,
    databases,
    day_breakdowns,
    epochs,
    history,
    row_counts,
)
from readtrack.sql.row_counts import RowCounts
from readtrack.store import counters, keys, scripts
from readtrack.store.counters import Epoch, Hash, Name, Stored
from readtrack.subjects import label_in, subject_column

Hashes = Mapping[Name, Mapping[str, int]]  # counts by the name of the hash, then by field

OTHER = "other"  # the field for all values that a hash has no field of their own for


def store(subjects: Sequence[str], epoch: epochs.SqlEpoch, *, hour: int) -> Hashes:
    """Stores the counts of the subjects' hashes in SQL, and how much they gained by that.

    The gains of each model are stored under the given hour (since 1970), and those of each object
    under the day of TIME_ZONE in which that hour begins. Where SQL has higher counts, it raises
    the counts in Redis. Returns the settled hashes in Redis; a hash that Redis lacks is empty. If
    Redis has to be settled first, nothing is stored, and the next flush stores the hashes.
    """
    hashes: dict[Name, Mapping[str, int]] = {}
    for portion in scripts.sliced(subjects):
        hashes.update(_store_portion(portion, epoch, hour=hour))
    return hashes


def _store_portion(subjects: Sequence[str], epoch: epochs.SqlEpoch, *, hour: int) -> Hashes:
    """Does what `store` does, for as many subjects as one call takes."""
    hash_names = [(kind, subject) for subject in subjects for kind in keys.hash_kinds()]
    # SQL is read before Redis, so that _store_with_gains sees whether rows changed since then.
    stored = archive.breakdowns(hash_names)
    live, redis_epochs = _live_hashes(subjects)
    if not epoch.advance(redis_epochs):
        return live
    if conf.HISTORY and _gains(live, stored):
        store_with_gains = partial(_store_with_gains, live, stored, hour=hour)
        is_stored = databases.retried(databases.of(Breakdown), store_with_gains)
        if not is_stored:  # begins again, with the rows as they are now
            return {**live, **_store_portion(subjects, epoch, hour=hour)}
    else:
        store_without_gains = partial(_store_without_gains, live, stored, hour=hour)
        databases.retried(databases.of(Breakdown), store_without_gains)
    _lift(live, stored)
    return live


def _live_hashes(subjects: Sequence[str]) -> tuple[Hashes, Sequence[Epoch]]:
    """Returns the settled hashes in Redis, and the epochs of their partitions.

    Redis reads the epochs after the hashes.
    """
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
    """Raises the counts in Redis that are below those in SQL."""
    hash_names = [name for name in live if _higher_in_sql(live[name], stored[name])]
    if not hash_names:
        return
    # SQL is read again after Redis, so that nothing comes back that was deleted in between.
    stored = archive.breakdowns(hash_names)
    counts_by_member: dict[str, Stored] = {}
    for name in hash_names:
        higher_counts = _higher_in_sql(live[name], stored[name])
        counts_by_member[keys.member(*name)] = Stored(higher_counts)
    scripts.run_all(*counters.lift(counts_by_member), patient=True)


def _higher_in_sql(counts: Mapping[str, int], stored: Mapping[str, int]) -> Mapping[str, int]:
    """Returns the stored counts of a hash, by field, that are higher than its live `counts`."""
    # A hash has a limited number of fields. If Redis lacks a field that counts no more than the
    # floor, a new value has replaced it. If it counts more, Redis has lost it.
    floor = Hash(counts).floor
    return {field: count for field, count in stored.items() if count > counts.get(field, floor)}


def _gains(live: Hashes, stored: Hashes) -> Counter[day_breakdowns.Gain]:
    """Returns how much higher the live counts are, by subject (as columns have it), kind and field.

    If new values have replaced other values in a hash, the gain of each value is an estimate. The
    sum of the hash is exact.
    """
    gains: Counter[day_breakdowns.Gain] = Counter()
    for (hash_kind, subject), counts in live.items():
        if hash_kind == archive.READING:  # the stages of views have a history of each object
            continue
        column = subject_column(subject)
        for field, rise in _rises(counts, stored[hash_kind, subject]).items():
            gains[column, hash_kind, field[: archive.FIELD_LENGTH]] += rise
    return +gains  # a Counter's plus sign leaves out the zeros


def _gains_of_models(
    gains_of_objects: Mapping[day_breakdowns.Gain, int],
) -> Counter[breakdown_history.Gain]:
    """Returns what all objects of a model gained together, by its label, kind and field."""
    gains: Counter[breakdown_history.Gain] = Counter()
    for (column, hash_kind, field), rise in gains_of_objects.items():
        gains[label_in(column), hash_kind, field] += rise
    return gains


def _rises(counts: Mapping[str, int], stored: Mapping[str, int]) -> dict[str, int]:
    """Returns how much each field of a hash rose since SQL stored it, by field.

    A new value that replaced another value in a full hash began with the other value's count. That
    inherited count is no rise, so it is subtracted.
    """
    rises = {
        field: count - stored.get(field, 0)
        for field, count in counts.items()
        if count > stored.get(field, 0)
    }
    inherited = sum(stored[field] for field in _replaced(counts, stored))
    # It is not known which value inherited which count. So the inherited counts are subtracted from
    # OTHER first, and then from the new values, lowest first.
    heirs = rises.keys() - (stored.keys() - {OTHER})
    for field in sorted(heirs, key=lambda field: (field != OTHER, rises[field])):
        least = 0 if field == OTHER else 1  # a new value was seen at least once
        share = min(inherited, rises[field] - least)
        rises[field] -= share
        inherited -= share
    return rises


def _replaced(counts: Mapping[str, int], stored: Mapping[str, int]) -> list[str]:
    """Returns the stored fields of a hash that new values have replaced in Redis.

    A missing field that counts more than the floor was lost and not replaced.
    """
    floor = Hash(counts).floor
    return [field for field, count in stored.items() if field not in counts and count <= floor]


def _store_with_gains(live: Hashes, stored_before: Hashes, *, hour: int) -> bool:
    """Stores the live counts and their gains in one transaction.

    `stored_before` is what SQL had stored before Redis was read. If that has changed, nothing is
    stored, and Redis has to be read again: returns False.
    """
    with databases.own_transaction(databases.of(Breakdown)):
        epochs.lock_epoch()  # one flush at a time, because each of two would add the same gain
        stored = archive.breakdowns(live)
        # Another flush, a reset or a deletion may have changed rows after Redis was read.
        if any(stored[name] != stored_before[name] for name in live):
            return False
        _raise(live, stored, hour=hour)
        # The new counts are read from SQL, because the database may lack characters of a value.
        raised = archive.breakdowns(live)
        gains = _gains(raised, stored)
        breakdown_history.add_gains(_gains_of_models(gains), hour=hour)
        day_breakdowns.add_gains(gains, day=local_time.local_day(hour))
    return True


def _store_without_gains(live: Hashes, stored: Hashes, *, hour: int) -> None:
    """Stores the live counts and the history of stages in one transaction.

    A kill between the two would leave history above the counts. If Redis was lost then, the next
    flush would store a lower number in history, which looks like a reset: all seen views of the
    object would be gained once more. (If the two are in different databases, a kill can come
    between them.)
    """
    with databases.own_transaction(databases.of(Breakdown)):
        _raise(live, stored, hour=hour)


def _raise(live: Hashes, stored: Hashes, *, hour: int) -> None:
    """Stores the counts that rose, and deletes the rows of values that were replaced.

    The caller has to open a transaction.
    """
    live = _without_deleted(live, stored)
    if conf.HISTORY:
        _store_stages(live, stored, hour=hour)
    databases.upsert(Breakdown, ("subject", "kind", "field"), ("count",), rows=_rows(live, stored))
    for name, counts in live.items():
        replaced_fields = _replaced(counts, stored[name])
        if replaced_fields:
            archive.delete_fields(name, replaced_fields, floor=Hash(counts).floor)


def _without_deleted(live: Hashes, stored: Hashes) -> Hashes:
    """Returns the live hashes without the hashes of objects that are deleted.

    Redis may still have such a hash, because it was down when the object was deleted, or was
    restored from an older snapshot. SQL has deleted the hash, so all its counts would look like
    gains, for the second time.
    """
    not_in_sql = [name for name, counts in live.items() if counts and not stored[name]]
    # SQL deletes an object's row before its hashes. So if the row exists now, after `stored` was
    # read, `stored` had all its hashes.
    missing_subjects = row_counts.missing({subject for _hash_kind, subject in not_in_sql})
    deleted = {(kind, subject) for kind, subject in not_in_sql if subject in missing_subjects}
    return {name: counts for name, counts in live.items() if name not in deleted}


def _store_stages(live: Hashes, stored: Hashes, *, hour: int) -> None:
    """Stores how many views were seen, engaged and read, where that rose, in the history of their
    objects.
    """
    risen: dict[str, RowCounts] = {}
    for (hash_kind, subject), counts in live.items():
        if hash_kind != archive.READING:
            continue
        stored_counts = stored[hash_kind, subject]
        for field, stage in history.STAGES.items():
            count = counts.get(field, 0)
            if count > stored_counts.get(field, 0):
                risen[history.of_stage(stage, subject)] = RowCounts(count, 0)
    history.store(risen, hour=hour)


def _rows(live: Hashes, stored: Hashes) -> list[tuple[str, str, str, int]]:
    """Returns the new rows of Breakdown, of counts that rose: subject, kind, field and count."""
    rows = []
    for (hash_kind, subject), counts in live.items():
        column = subject_column(subject)
        stored_counts = stored[hash_kind, subject]
        for field, count in counts.items():
            # A value with characters that the database lacks stays in Redis only.
            if count > stored_counts.get(field, 0) and databases.can_hold(Breakdown, field):
                rows.append((column, hash_kind, field[: archive.FIELD_LENGTH], count))
    return rows
