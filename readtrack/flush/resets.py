"""Setting a subject to zero, in Redis and in SQL, for good."""

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from django.db import router
from django.db.models import Model, Q

from readtrack.flush import archiving
from readtrack.models import Archive, ReaderHistory, Reset
from readtrack.sql import archive, databases, row_counts, runs
from readtrack.store import (
    counters,
    keys,
    read_state,
    removal,
    resetting,
    scanning,
    scripts,
    uniques,
)
from readtrack.store.circuit import fail_open
from readtrack.subjects import (
    counted_models,
    owner,
    read_state_models,
    rows_by_model,
    subject_column,
    subject_of_row,
)


# docs/explanation/flush.md tells what may come after a reset: late flushes, restored snapshots.
def reset(subjects: Sequence[str]) -> None:
    """Sets the subjects to zero. Raises redis.RedisError or django.db.Error; then it has to be done
    again.
    """
    for some in scripts.parted(subjects):
        time = scripts.run(resetting.reset(some), patient=True)
        for model, rows in rows_by_model(some).items():
            row_counts.zero(model, rows)
        archive.delete(some)
        notes = [(subject_column(subject), time, subject) for subject in some]
        databases.upsert(Reset, ("subject",), ("redis_time", "full_subject"), rows=notes)


def reset_model(
    model: type[Model], *, is_empty: bool = False, progress: Callable[[int], object] = int
) -> int:
    """Sets all subjects of the model to zero and removes their read state. Returns the number of
    subjects.

    Children share it. Where the table is empty, the subjects are removed as those of deleted rows
    are. `progress` is called with numbers of subjects. Raises redis.RedisError or django.db.Error;
    then it has to be done again.
    """
    own = owner(model)
    found = dict.fromkeys(scanning.subjects(own._meta.label_lower))
    if own in counted_models():
        rows = row_counts.held(own, databases.rows(own))  # hidden ones, too
        pks = rows.filter(Q(view_count__gt=0) | Q(visitor_count__gt=0)).values_list("pk", flat=True)
        found |= {
            pk if row_counts.table_of(own) is not own else subject_of_row(own, pk): None
            for pk in pks
        }
    for some in scripts.parted(found):
        if is_empty:
            scripts.run(removal.remove(some), patient=True)
            archive.delete(some)
        elif own in counted_models():
            reset(some)
        for subject in some:
            read_state.remove(subject)
        archive.delete(some, models=[ReaderHistory])
        progress(len(some))
    return len(found)


def on_flush(sender: Any, *, using: str, **kwargs: Any) -> None:
    """Receives post_migrate, which `manage.py flush` sends, too, and resets the models that it
    emptied.

    Otherwise new rows would get old ids, and the counts and dots of the rows that had them. Keys of
    tests stay, because Django's test case flushes after each test; `readtrack.testing.clear`
    removes them.
    """
    if "plan" in kwargs or keys.test_prefix():  # a migration has a plan
        return
    for model in dict.fromkeys([*counted_models(), *read_state_models()]):
        is_flushed = model._meta.managed and router.db_for_write(model) == using
        if is_flushed and not databases.rows(model).exists():
            fail_open(reset_model, 0, model, is_empty=True)


def finish(marks: Mapping[str, int], epoch: runs.SqlEpoch, *, now: int) -> None:
    """Lowers rows that got an older count to the live one. `marks` are the noted resets; times are
    Redis's (µs).
    """
    # Redis is read after SQL each time, so that a count that SQL rightly stores is live by then.
    locked = set()
    for some in scripts.sliced(list(marks)):
        for model, rows in rows_by_model(some).items():
            present = row_counts.stored(model, list(rows))
            parts = scripts.parted([rows[pk] for pk in present])
            answers = scripts.run_all(
                *map(counters.totals, parts), *map(uniques.visitors, parts), patient=True
            )
            totals, visitors = ChainMap(*answers[: len(parts)]), ChainMap(*answers[len(parts) :])
            for pk, row in present.items():
                live = totals.get(rows[pk], counters.Total(0)).views, visitors[rows[pk]]
                lowest = row_counts.RowCounts(*map(min, row, live))
                if lowest == row:
                    continue
                write = partial(row_counts.lower, model, pk, to=lowest, stored=row)
                if not databases.retried(databases.of(row_counts.table_of(model)), write):
                    locked.add(rows[pk])
    for subject, time in marks.items():
        if (
            time < now - keys.reset.ttl * 1_000_000 and subject not in locked
        ):  # µs; no flush holds a chunk that long
            archive.delete(
                [subject], models=[Archive]
            )  # rows from before may have been written late
            stored = archive.breakdowns([(kind, subject) for kind in keys.hash_kinds()])
            hashes = ChainMap(
                *scripts.run_all(*counters.hashes([subject], keys.hash_kinds()), patient=True)
            )
            for name, counts in stored.items():
                late = [
                    field
                    for field, count in counts.items()
                    if count > hashes[name].counts.get(field, 0)
                ]
                archive.delete_fields(name, late, floor=max(counts.values(), default=0))
            archiving.store_breakdowns([subject], epoch, hour=now // archiving.HOUR)
            resetting.delete_reset(subject, at=time)
