"""Setting a subject to zero, in Redis and in SQL, for good."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.db import router
from django.db.models import Model

from readtrack.flush.steps import Steps
from readtrack.progress import Progress, no_progress
from readtrack.sql import archive, databases, deletions, raising, read_states, row_counts
from readtrack.sql.faults import Faults
from readtrack.sql.row_counts import RowCounts
from readtrack.store import (
    clock,
    counters,
    keys,
    read_state,
    resetting,
    scanning,
    scripts,
    trending,
    uniques,
)
from readtrack.store.circuit import fail_open
from readtrack.subjects import counted_models, owner, read_state_models, subjects_by_model


# docs/explanation/flush.md describes what may come after a reset: flushes that began before it,
# restored snapshots.
def reset(subjects: Sequence[str]) -> None:
    """Sets the counts of the subjects to zero, in Redis and in SQL.

    Raises redis.RedisError or django.db.Error; the reset then has to be done again.
    """
    for portion in scripts.parted(subjects):
        call = resetting.reset(portion)
        # What trends, and rises now, does so by views from before the reset.
        forget_trending = trending.forgetting(portion, at=clock.now())
        scripts.run_all(call, forget_trending, patient=True)
        for model, subjects_by_pk in subjects_by_model(portion).items():
            raising.zero(model, subjects_by_pk)
        archive.delete(portion)
        deletions.note_times(dict.fromkeys(portion, call.result))


def reset_model(
    model: type[Model], *, is_empty: bool = False, progress: Progress = no_progress
) -> int:
    """Sets the counts of all objects of the model to zero, and removes their read state.

    A model that shares its counts with a parent is reset together with the parent. `is_empty` is
    for a table that has no rows any more: the subjects are removed, as if their rows had been
    deleted. `progress` is told the number of subjects. Returns the number of subjects. Raises
    redis.RedisError or django.db.Error; the reset then has to be done again.
    """
    is_counted = owner(model) in counted_models()
    subjects = subjects_of_model(model)
    for portion in scripts.parted(subjects):
        if is_empty:
            deletions.remove(portion)
        elif is_counted:
            reset(portion)
        for subject in portion:
            read_state.remove(subject)
        read_states.delete(portion)
        progress(len(portion))
    return len(subjects)


def subjects_of_model(model: type[Model]) -> list[str]:
    """Returns the subjects that a reset of the model sets to zero: those that have counts or read
    state. Raises redis.RedisError or django.db.Error.
    """
    owning_model = owner(model)
    # A dict and not a set, because it keeps the order. Redis may give a subject more than once.
    subjects = dict.fromkeys(scanning.subjects(owning_model._meta.label_lower))
    if owning_model in counted_models():
        subjects |= dict.fromkeys(row_counts.subjects(owning_model))
    return [*subjects]


def on_flush(sender: Any, *, using: str, **kwargs: Any) -> None:
    """Receives post_migrate, which `manage.py flush` also sends, and resets the models that the
    command has emptied.

    Without it, new rows with the old ids would get the counts and dots of the rows before them. In
    tests it does nothing, because Django's TransactionTestCase flushes after each test;
    `readtrack.testing.clear` removes the keys of tests.
    """
    is_migration = "plan" in kwargs  # only `manage.py migrate` sends a plan
    if is_migration or keys.test_prefix():
        return
    for model in dict.fromkeys([*counted_models(), *read_state_models()]):
        is_flushed = model._meta.managed and router.db_for_write(model) == using
        if is_flushed and not databases.rows(model).exists():
            fail_open(reset_model, 0, model, is_empty=True)


def finish(resets: Mapping[str, int], steps: Sequence[Steps], faults: Faults, *, now: int) -> None:
    """Lowers rows to the live counts if another flush wrote an older count to them after a reset.

    `resets` has the times of the noted resets by subject, `now` is the present time. All times are
    of Redis's clock (µs).
    """
    not_lowered: set[str] = set()
    lowered: list[str] = []
    for portion in scripts.sliced(list(resets)):
        for model, subjects_by_pk in subjects_by_model(portion).items():
            locked: set[str] = set()
            lower = partial(_lower_some, model, subjects_by_pk, locked, lowered)
            not_lowered |= faults.store([*subjects_by_pk.values()], lower)
            not_lowered |= locked
    if lowered:
        for step in steps:
            step.lowered(lowered)
    # What a flush read before this time, it has written by now.
    end_of_stale_writes = now - keys.reset.ttl * 1_000_000
    for subject, reset_time in resets.items():
        if reset_time < end_of_stale_writes and subject not in not_lowered:
            forget = partial(_forget, steps, reset_time=reset_time)
            faults.store([subject], forget)


def _forget(steps: Sequence[Steps], subjects: Sequence[str], *, reset_time: int) -> None:
    """Forgets the reset of one subject at that time, after which no flush can write old counts."""
    [subject] = subjects
    if subject not in deletions.times_of_lowering([subject]):  # it was set to zero
        _delete_stale_archive(subject)
        for step in steps:
            step.reset_ends(subject)
    resetting.delete_reset(subject, at=reset_time)


def _lower_some(
    model: type[Model],
    rows: Mapping[Any, str],
    locked: set[str],
    lowered: list[str],
    subjects: Sequence[str],
) -> None:
    """Lowers those of the rows that have these subjects. Adds the subjects of rows that another
    transaction has locked to `locked`, and those of rows that it has lowered to `lowered`.
    """
    subjects_to_lower = set(subjects)
    rows_to_lower = {pk: subject for pk, subject in rows.items() if subject in subjects_to_lower}
    locked |= _lower(model, rows_to_lower, lowered)


def lower(subjects: Sequence[str]) -> None:
    """Lowers the rows of `subjects` to the live counts, where SQL stores more and a reset is
    noted. A row that another transaction has locked is left to the next flush.
    """
    for model, subjects_by_pk in subjects_by_model(subjects).items():
        _lower(model, subjects_by_pk, [])


def _lower(model: type[Model], rows: Mapping[Any, str], lowered: list[str]) -> set[str]:
    """Lowers the rows that store more than Redis has, and adds their subjects to `lowered`.

    `rows` has the subjects by primary key. A row stays if its reset is no longer noted. Returns the
    subjects of the rows that could not be lowered, because another transaction has locked them.
    """
    # SQL is read before Redis. In this order a count that SQL rightly stores is not above the live
    # count, which may only have risen meanwhile.
    with databases.site_transaction(databases.of(model)):
        stored = row_counts.stored(model, list(rows))
    live = _live_counts_of_resets([rows[pk] for pk in stored])
    connection = databases.of(row_counts.table_of(model))
    locked = set()
    for pk, row in stored.items():
        counts = live.get(rows[pk])
        if counts is None:
            continue
        lowest = RowCounts(min(row.views, counts.views), min(row.visitors, counts.visitors))
        if lowest == row:
            continue
        write = partial(raising.lower, model, pk, to=lowest, stored=row)
        is_unlocked = databases.retried(connection, write)
        if is_unlocked:
            lowered.append(rows[pk])
        else:
            locked.add(rows[pk])
    return locked


def _live_counts_of_resets(subjects: Sequence[str]) -> dict[str, RowCounts]:
    """Returns the live counts of those subjects whose reset is noted, by subject."""
    portions = scripts.parted(subjects)
    total_calls = [counters.totals(portion) for portion in portions]
    visitor_calls = [uniques.visitors(portion) for portion in portions]
    # Read after the totals: an idle subject may leave Redis as soon as its note is gone, and then a
    # missing total is not 0.
    note_calls = [resetting.noted(portion) for portion in portions]
    scripts.run_all(*total_calls, *visitor_calls, *note_calls, patient=True)
    totals = ChainMap(*(call.result for call in total_calls))
    visitors = ChainMap(*(call.result for call in visitor_calls))
    noted = set().union(*(call.result for call in note_calls))
    no_views = counters.Total(0)
    return {
        subject: RowCounts(totals.get(subject, no_views).views, visitors[subject])
        for subject in subjects
        if subject in noted
    }


def _delete_stale_archive(subject: str) -> None:
    """Deletes the archived row that a flush which began before the reset of the subject may have
    written after it. Without the reset's note another flush has done it, and the row may be newer.
    """
    if subject in scripts.run(resetting.noted([subject]), patient=True):
        archive.delete_rows([subject])
