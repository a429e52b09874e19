"""Merging the hashes of counts of Redis and SQL: funnels, reading, and values of dimensions.

A hash has a name, which is its kind and its subject, and a count for each of its fields. `live` are
the hashes in Redis, `stored` are those in SQL (the model Breakdown).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from readtrack import buckets, row_security
from readtrack.hits.stages import STAGES
from readtrack.numbers import live_counters
from readtrack.numbers.flush import late_views
from readtrack.numbers.flush.late_views import NOTHING_LATE, LateViews
from readtrack.numbers.live_counters import Hash, LiveHashes
from readtrack.numbers.models import Breakdown
from readtrack.numbers.options import numbers_options
from readtrack.numbers.sql import breakdown_history, day_breakdowns, history
from readtrack.numbers.sql import hashes as stored_hashes
from readtrack.numbers.sql.history_lock import lock_history
from readtrack.sql import absent, databases, epochs, row_counts
from readtrack.sql.row_counts import RowCounts
from readtrack.store import counters, keys, scripts
from readtrack.store.counters import Epoch, Name, Stored
from readtrack.subjects import label_in, subject_column, subjects_by_model

# Counts by the name of the hash, then by field. A hash that has none may be left out.
Hashes = Mapping[Name, Mapping[str, int]]

NOTHING: Mapping[str, int] = {}  # the counts of a hash that is left out
OTHER = "other"  # the field for all values that a hash has no field of their own for


class Hours(NamedTuple):
    """The hours (since 1970) under which gains are stored."""

    present: int
    newest_flush: int  # the last one of any flush that began before this one
    # The gains of objects with views of earlier hours are divided among the hours of these views,
    # because Redis does not know when it gained them.
    late: Mapping[str, LateViews] = NOTHING_LATE


def store(
    subjects: Sequence[str],
    epoch: epochs.SqlEpoch,
    *,
    hours: Hours,
    most_seen: Mapping[str, RowCounts] | None = None,
) -> Hashes:
    """Stores the counts of the subjects' hashes in SQL, and how much they gained by that.

    The gains of each model are stored under the present hour, and those of each object under the
    day of TIME_ZONE in which that hour begins; those of objects with late views under the hours and
    days of these views. `most_seen` has the views that SQL stores, if they were read before the
    hashes: the next flush stores what was seen since then. Where SQL has higher counts, it raises
    the counts in Redis. Returns the settled hashes in Redis. If Redis has to be settled first,
    nothing is stored, and the next flush stores the hashes. Without its table nothing is stored,
    either.
    """
    if absent.is_absent(Breakdown):
        return {}
    hashes: dict[Name, Mapping[str, int]] = {}
    for portion in scripts.sliced(subjects):
        hashes.update(_store_portion(portion, epoch, hours=hours, most_seen=most_seen or {}))
    return hashes


def _store_portion(
    subjects: Sequence[str],
    epoch: epochs.SqlEpoch,
    *,
    hours: Hours,
    most_seen: Mapping[str, RowCounts],
) -> Hashes:
    """Does what `store` does, for as many subjects as one call takes. Raises ContendedError."""
    attempts = databases.attempts("breakdowns")
    live: Hashes = {}
    is_stored = False
    while not is_stored:
        next(attempts)
        live_now, is_stored = _store_once(subjects, epoch, hours=hours, most_seen=most_seen)
        live = {**live, **live_now}
    return live


def _store_once(
    subjects: Sequence[str],
    epoch: epochs.SqlEpoch,
    *,
    hours: Hours,
    most_seen: Mapping[str, RowCounts],
) -> tuple[Hashes, bool]:
    """Does what `_store_portion` does. Returns the hashes in Redis, and False if another flush has
    changed the rows meanwhile, so that it has to begin again with the rows as they are now.
    """
    # SQL is read before Redis, so that _store_with_gains sees whether rows changed since then.
    stored = stored_hashes.of_subjects(subjects, keys.hash_kinds())
    redis_hashes, redis_epochs = _live_hashes(subjects)
    live = redis_hashes.settled
    if not epoch.advance(redis_epochs):
        counters.mark_changed(subjects)
        return live, True
    changed = {name: counts for name, counts in live.items() if counts != stored.get(name)}
    for name in stored.keys() - live.keys() - redis_hashes.unsettled:
        changed[name] = NOTHING  # Redis has lost the hash
    if not changed:
        return live, True
    to_store = _not_above(changed, most_seen)
    if numbers_options().history and _may_gain(changed):
        store_with_gains = partial(_store_with_gains, to_store, stored, hours=hours)
        is_stored = databases.retried(databases.of(Breakdown), store_with_gains)
        if not is_stored:
            return live, False
    else:
        store_without_gains = partial(_store_without_gains, to_store, stored, hours=hours)
        databases.retried(databases.of(Breakdown), store_without_gains)
    _lift(changed, stored)
    return live, True


def _may_gain(changed: Hashes) -> bool:
    """Returns True if any of the hashes is of a kind whose gains are stored."""
    # The stages of views have a history of each object.
    return any(hash_kind != stored_hashes.READING for hash_kind, _subject in changed)


def _not_above(live: Hashes, most_seen: Mapping[str, RowCounts]) -> Hashes:
    """Returns the hashes with no stage of more views than its object has in `most_seen`."""
    bounded = dict(live)
    for name, counts in live.items():
        hash_kind, subject = name
        if hash_kind == stored_hashes.READING and subject in most_seen:
            most = most_seen[subject].views
            bounded_counts = dict(counts)
            for stage in STAGES.keys() & counts.keys():
                bounded_counts[stage] = min(counts[stage], most)
            bounded[name] = bounded_counts
    return bounded


def _live_hashes(subjects: Sequence[str]) -> tuple[LiveHashes, Sequence[Epoch]]:
    """Returns the hashes in Redis, and the epochs of their partitions.

    Redis reads the epochs after the hashes.
    """
    hash_calls = live_counters.existing_hashes(subjects, keys.hash_kinds())
    epoch_calls = [counters.epoch(tag) for tag in keys.by_tag(subjects)]
    scripts.run_all(*hash_calls, *epoch_calls, patient=True)
    found = LiveHashes({}, set())
    for call in hash_calls:
        found.settled.update(call.result.settled)
        found.unsettled.update(call.result.unsettled)
    return found, [call.result for call in epoch_calls]


def _lift(live: Hashes, stored: Hashes) -> None:
    """Raises the counts in Redis that are below those in SQL."""
    hash_names = [
        name for name, counts in live.items() if _higher_in_sql(counts, stored.get(name, NOTHING))
    ]
    if not hash_names:
        return
    # SQL is read again after Redis, so that nothing comes back that was deleted in between.
    stored = stored_hashes.breakdowns(hash_names)
    counts_by_member: dict[str, Stored] = {}
    for name in hash_names:
        higher_counts = _higher_in_sql(live[name], stored[name])
        counts_by_member[keys.member(*name)] = Stored(higher_counts)
    scripts.run_all(*counters.lift(counts_by_member), patient=True)


def _higher_in_sql(counts: Mapping[str, int], stored: Mapping[str, int]) -> Mapping[str, int]:
    """Returns the stored counts of a hash, by field, that are higher than its live `counts`."""
    higher_counts = {
        field: count for field, count in stored.items() if count > counts.get(field, 0)
    }
    if not higher_counts:
        return NOTHING
    # A hash has a limited number of fields. If Redis lacks a field that counts no more than the
    # floor, a new value has replaced it. If it counts more, Redis has lost it.
    for field in _replaced(counts, higher_counts):
        del higher_counts[field]
    return higher_counts


def _full_hashes(live: Hashes) -> set[day_breakdowns.HashName]:
    """Returns the hashes with so many fields that others may have replaced some on the same day.

    The subjects are as columns have them.
    """
    full = set()
    for (hash_kind, subject), counts in live.items():
        if len(counts) >= day_breakdowns.VALUES:
            full.add((subject_column(subject), hash_kind))
    return full


def _gains_of_models(
    gains_of_objects: Mapping[day_breakdowns.Gain, int],
) -> Counter[breakdown_history.Gain]:
    """Returns what all objects of a model gained together, by its label, kind and field."""
    gains: Counter[breakdown_history.Gain] = Counter()
    for (column, hash_kind, field), rise in gains_of_objects.items():
        gains[label_in(column), hash_kind, field] += rise
    return gains


def _rises(counts: Mapping[str, int], stored: Mapping[str, int]) -> dict[str, int]:
    """Returns how much each field of a hash rose since SQL stored it, by field: an entry for each
    field that counts more than in SQL.

    A new value that replaced another value in a full hash began with the other value's count. That
    inherited count is no rise, so it is subtracted, and the rise may be 0. Then the rise of each
    value is an estimate; the sum of the hash is exact.
    """
    rises: dict[str, int] = {}
    for field, count in counts.items():
        rise = count - stored.get(field, 0)
        if rise > 0:
            rises[field] = rise
    replaced_fields = _replaced(counts, stored)
    if not replaced_fields:
        return rises
    inherited = sum(stored[field] for field in replaced_fields)
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
    if stored.keys() <= counts.keys():
        return []
    floor = Hash(counts).floor
    return [field for field, count in stored.items() if field not in counts and count <= floor]


def _gains_by_hour(
    gains: Mapping[day_breakdowns.Gain, int], live: Hashes, hours: Hours
) -> Mapping[int, Mapping[day_breakdowns.Gain, int]]:
    """Returns the gains by the hour (since 1970) under which they are stored."""
    if not hours.late:
        return {hours.present: gains}
    views_by_column = {
        subject_column(subject): hours.late[subject].by_hour
        for _hash_kind, subject in live
        if subject in hours.late
    }
    gains_of_hashes: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for (column, hash_kind, field), gain in gains.items():
        gains_of_hashes[column, hash_kind][field] = gain
    by_hour: defaultdict[int, Counter[day_breakdowns.Gain]] = defaultdict(Counter)
    for (column, hash_kind), gains_of_hash in gains_of_hashes.items():
        views = views_by_column.get(column, {hours.present: 1})
        for hour, fields in late_views.divided_by_field(gains_of_hash, views).items():
            for field, gain in fields.items():
                by_hour[hour][column, hash_kind, field] = gain
    return by_hour


def _store_with_gains(live: Hashes, stored_before: Hashes, *, hours: Hours) -> bool:
    """Stores the live counts and their gains in one transaction.

    `stored_before` is what SQL had stored before Redis was read. If that has changed, nothing is
    stored, and Redis has to be read again: returns False.
    """
    with databases.own_transaction(databases.of(Breakdown)):
        lock_history()  # one flush at a time, because each of two would add the same gain
        subjects = {subject for _hash_kind, subject in live}
        stored = stored_hashes.of_subjects(subjects, keys.hash_kinds())
        # Another flush, a reset or a deletion may have changed rows after Redis was read.
        if any(stored.get(name) != stored_before.get(name) for name in live):
            return False
        gains = _raise(live, stored, hours=hours)
        full_hashes = _full_hashes(live)
        for hour, gains_of_hour in _gains_by_hour(gains, live, hours).items():
            breakdown_history.add_gains(_gains_of_models(gains_of_hour), hour=hour)
            day_breakdowns.add_gains(
                gains_of_hour, day=buckets.local_day(hour), full_hashes=full_hashes
            )
    return True


def _store_without_gains(live: Hashes, stored: Hashes, *, hours: Hours) -> None:
    """Stores the live counts and the history of stages in one transaction.

    A kill between the two would leave history above the counts. If Redis was lost then, the next
    flush would store a lower number in history, which looks like a reset: all seen views of the
    object would be gained once more. (If the two are in different databases, a kill can come
    between them.)
    """
    with databases.own_transaction(databases.of(Breakdown)):
        _raise(live, stored, hours=hours)


def _raise(live: Hashes, stored: Hashes, *, hours: Hours) -> dict[day_breakdowns.Gain, int]:
    """Stores the counts that rose, and deletes the rows of values that were replaced.

    The caller has to open a transaction. Returns what the objects gained by that, by subject (as
    columns have it), kind and field.
    """
    live = _without_deleted(live, stored)
    if numbers_options().history:
        _store_stages(live, stored, hours=hours)
    rows: list[tuple[str, str, str, int]] = []
    gains: dict[day_breakdowns.Gain, int] = {}
    for name, counts in _storable(live).items():
        hash_kind, subject = name
        column = subject_column(subject)
        for field, rise in _rises(counts, stored.get(name, NOTHING)).items():
            rows.append((column, hash_kind, field, counts[field]))
            if rise and hash_kind != stored_hashes.READING:
                gains[column, hash_kind, field] = rise
    databases.upsert(Breakdown, ("subject", "kind", "field"), ("count",), rows=rows)
    for name, counts in live.items():
        replaced_fields = _replaced(counts, stored.get(name, NOTHING))
        if replaced_fields:
            stored_hashes.delete_fields(name, replaced_fields, floor=Hash(counts).floor)
    return gains


def _without_deleted(live: Hashes, stored: Hashes) -> Hashes:
    """Returns the live hashes without the hashes of objects that are deleted.

    Redis may still have such a hash, because it was down when the object was deleted, or was
    restored from an older snapshot. SQL has deleted the hash, so all its counts would look like
    gains, for the second time.
    """
    not_in_sql = [name for name, counts in live.items() if counts and name not in stored]
    # SQL deletes an object's row before its hashes. So if the row exists now, after `stored` was
    # read, `stored` had all its hashes.
    missing_subjects = _without_row({subject for _hash_kind, subject in not_in_sql})
    if not missing_subjects:
        return live
    deleted = {(kind, subject) for kind, subject in not_in_sql if subject in missing_subjects}
    return {name: counts for name, counts in live.items() if name not in deleted}


def _without_row(subjects: Iterable[str]) -> set[str]:
    """Returns those of the subjects that have no row.

    It leaves out subjects of models that this site does not count, because an app may come back,
    and those of models whose rows may only be hidden.
    """
    found: set[str] = set()
    for model, rows in subjects_by_model(subjects).items():
        with databases.site_transaction(databases.of(model)):
            existing = row_counts.stored(model, list(rows))
        not_found = [subject for pk, subject in rows.items() if pk not in existing]
        if not_found and not row_security.refusal(model):
            found.update(not_found)
    return found


def _store_stages(live: Hashes, stored: Hashes, *, hours: Hours) -> None:
    """Stores how many views reached each stage, where that rose, in the history of their
    objects.
    """
    rows: list[tuple[str, int, RowCounts]] = []
    for (hash_kind, subject), counts in live.items():
        if hash_kind != stored_hashes.READING:
            continue
        stored_counts = stored.get((hash_kind, subject), NOTHING)
        views_by_hour = hours.late[subject].by_hour if subject in hours.late else {}
        for stage in STAGES:
            count = counts.get(stage, 0)
            stored_count = stored_counts.get(stage, 0)
            if count <= stored_count:
                continue
            name = history.of_stage(stage, subject)
            sum_before = stored_count
            if views_by_hour:
                # A stage is divided like the one before it, so no hour has more of it.
                views_by_hour = late_views.divided(count - stored_count, views_by_hour)
                for hour, number in late_views.sums_before(hours.present, views_by_hour):
                    sum_before = stored_count + number
                    rows.append((name, hour, RowCounts(sum_before, 0)))
            if sum_before < count:
                rows.append((name, hours.present, RowCounts(count, 0)))
    history.store_hours(rows, newest_flush=hours.newest_flush)


def _storable(live: Hashes) -> Hashes:
    """Returns the live counts as SQL can have them.

    A value with characters that the database lacks stays in Redis only. The name of a field is cut.
    """
    fields: set[str] = set().union(*live.values())
    # Asked once for each field, because most values are those of many objects.
    names_in_sql = {
        field: field[: stored_hashes.FIELD_LENGTH]
        for field in fields
        if databases.can_hold(Breakdown, field)
    }
    if fields == set(names_in_sql.values()):
        return live
    storable: dict[Name, Mapping[str, int]] = {}
    for name, counts in live.items():
        storable[name] = {
            names_in_sql[field]: count for field, count in counts.items() if field in names_in_sql
        }
    return storable
