"""Settling: a counter that began anew in Redis gets the count that SQL stores, once."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from django.db.models import Model

from readtrack import parts, row_security
from readtrack.sql import archive, databases, epochs, row_counts
from readtrack.sql.faults import Faults
from readtrack.store import counters, keys, scripts
from readtrack.store.connection import server_time
from readtrack.store.counters import Epoch, Stored
from readtrack.subjects import subjects_by_model

NOTHING = Stored({"": 0})  # what SQL stores of a row that is gone
# A counter of which no installed part has known for so long (µs) is of a part that is gone. A
# deploy that adds a part takes less.
LEFT_OVER_AFTER = keys.DAY * 1_000_000


class _Settling(NamedTuple):
    """What is to be settled in one partition."""

    redis_epoch: Epoch
    sql_epoch: Epoch | None  # the epoch that SQL knows of the partition, if any
    to_add: Mapping[str, Stored]  # SQL's counts by counter
    unreadable: int  # number of the counters that are left out, because SQL cannot be read


def settle(epoch: epochs.SqlEpoch, faults: Faults) -> int:
    """Adds SQL's count to each unsettled counter, and lets a restored Redis join SQL's epochs.

    Returns the number of counters that were settled. Counters that begin meanwhile are left to the
    next flush, and so are those whose row cannot be read. What a part that is gone has left over
    is settled after a day, so that flushes do not read it for ever.
    """
    settled = 0
    until = server_time(patient=True)
    # How many counters stay unsettled, by the tag of the partition. They stay at the start of the
    # list, and are passed over.
    unreadable: Counter[str] = Counter()
    attempts = databases.attempts("unsettled counters")
    while True:
        # Of each partition the next counters, and its epoch.
        lists = counters.unsettled(until=until, tags=epoch.tags, after=unreadable)
        settlings = _settlings(lists, epoch, faults, left_over_before=until - LEFT_OVER_AFTER)
        # A partition without unsettled counters is called, too, because it may have been restored.
        calls = [
            counters.settle(
                settling.to_add, epoch=settling.redis_epoch, sql_epoch=settling.sql_epoch
            )
            for settling in settlings
        ]
        counts, new_epochs = zip(*scripts.run_all(*calls, patient=True), strict=True)
        epoch.advance(new_epochs)
        settled_now: int = sum(counts)
        settled += settled_now
        if not any(began_by_name for began_by_name, _redis_epoch in lists):
            return settled
        for settling in settlings:
            unreadable[settling.redis_epoch.tag] += settling.unreadable
        if not settled_now and any(settling.to_add for settling in settlings):
            # Another flush may have settled them.
            next(attempts)  # raises after the last one


def _settlings(
    lists: Sequence[tuple[Mapping[str, int], Epoch]],
    epoch: epochs.SqlEpoch,
    faults: Faults,
    *,
    left_over_before: int,
) -> list[_Settling]:
    """Returns what is to be settled in each partition.

    `lists` has, for each partition, when each counter began (µs) and the epoch in Redis. Counters
    of parts that are gone are settled if they began before `left_over_before` (µs).
    """
    counter_names = list(chain.from_iterable(began_by_name for began_by_name, _epoch in lists))
    stored = stored_counters(counter_names, faults)
    # SQL's epochs are read after SQL's counts, so that all these counts were settled in these
    # epochs or in earlier ones.
    sql_epochs = epoch.known([redis_epoch for _began_by_name, redis_epoch in lists])
    settlings = []
    for began_by_name, redis_epoch in lists:
        sql_epoch = sql_epochs.get(redis_epoch.tag)
        left_over = _left_over(began_by_name, before=left_over_before)
        to_add = _to_add(
            began_by_name,
            {**dict.fromkeys(left_over, NOTHING), **stored},
            redis_epoch=redis_epoch,
            sql_epoch=sql_epoch,
        )
        unreadable = len(began_by_name) - len(to_add)
        settlings.append(_Settling(redis_epoch, sql_epoch, to_add, unreadable))
    return settlings


def _left_over(began_by_name: Mapping[str, int], *, before: int) -> list[str]:
    """Returns the counters of parts, which are no totals, that began before that time (µs)."""
    names = []
    for name, began in began_by_name.items():
        family, _subject = keys.split_member(name)
        if family and began < before:
            names.append(name)
    return names


def _to_add(
    unsettled_names: Iterable[str],
    stored: Mapping[str, Stored],
    *,
    redis_epoch: Epoch,
    sql_epoch: Epoch | None,
) -> dict[str, Stored]:
    """Returns what SQL stores of the counters, without those whose row could not be read.

    `redis_epoch` is the epoch of their partition in Redis, `sql_epoch` the one that SQL knows of
    it, if any.
    """
    if sql_epoch is None or sql_epoch.current == redis_epoch.current:
        return {name: stored[name] for name in unsettled_names if name in stored}
    # A restored Redis has to empty its list before it can join SQL's epochs. Its counters merge by
    # maximum, which a later flush makes up for.
    return {name: stored.get(name, NOTHING) for name in unsettled_names}


def stored_counters(counter_names: Sequence[str], faults: Faults) -> dict[str, Stored]:
    """Returns what SQL stores of each counter, by the counter's name in `views:unsettled`.

    Such a name is the subject for a total (`blog.post:42`), the kind and the subject for a hash
    (`funnel:blog.post:42`), and the key without the prefix for an hour of a model. Totals whose row
    cannot be read are left out, and so are counters of which no installed part knows.
    """
    totals: list[str] = []
    counters_of_parts: list[str] = []
    for name in counter_names:
        family, _subject = keys.split_member(name)
        if family:
            counters_of_parts.append(name)
        else:
            totals.append(name)
    stored = dict.fromkeys(totals, NOTHING)
    if counters_of_parts:
        for part in parts.installed():
            stored.update(part.stored_counters(counters_of_parts))
    for model, subjects_by_pk in subjects_by_model(totals).items():
        read = partial(_read_totals, model, subjects_by_pk, stored)
        unreadable = faults.store([*subjects_by_pk.values()], read)
        not_found = [
            subject
            for subject in subjects_by_pk.values()
            if stored[subject] is NOTHING and subject not in unreadable
        ]
        # The count of a hidden row is not known, so to settle it would lose that.
        unreadable |= refuse_hidden(model, not_found, faults)
        for subject in unreadable:
            del stored[subject]
    return stored


def refuse_hidden(model: type[Model], subjects: Collection[str], faults: Faults) -> set[str]:
    """Notes those of the subjects as faults that look deleted or locked because a policy of the
    database hides their rows, or keeps the flush from changing them. Returns them.
    """
    if not subjects:
        return set()
    refusal = row_security.refusal(model)
    if refusal is None:
        return set()
    faults.refuse([*subjects], refusal)
    return set(subjects)


def _read_totals(
    model: type[Model], rows: Mapping[Any, str], stored: dict[str, Stored], subjects: Sequence[str]
) -> None:
    """Puts SQL's counts and sketches of those subjects that have a row into `stored`, by subject.

    Parts are told of these counts, too. `rows` has the subjects of the model by primary key.
    """
    subjects_to_read = set(subjects)
    pks = [pk for pk, subject in rows.items() if subject in subjects_to_read]
    with databases.site_transaction(databases.of(model)):
        counts_by_pk = row_counts.stored(model, pks)
    counts = {rows[pk]: row for pk, row in counts_by_pk.items()}
    for part in parts.installed():
        part.settled(counts)
    sketches = archive.sketches(counts)
    for subject, row in counts.items():
        sketch = sketches.get(subject, b"")
        stored[subject] = Stored({"": row.views}, sketch, row.visitors)
