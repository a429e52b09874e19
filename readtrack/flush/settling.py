"""Settling: a counter that began anew in Redis gets the count that SQL stores, once."""

from collections.abc import Mapping, Sequence

from readtrack.conf import conf
from readtrack.sql import archive, epochs, history, row_counts
from readtrack.store import counters, keys, scripts
from readtrack.store.connection import server_time
from readtrack.store.counters import Epoch, Name, Stored
from readtrack.subjects import rows_by_model

NOTHING = Stored({"": 0})  # what SQL stores of a row that is gone


def settle(epoch: epochs.SqlEpoch) -> int:
    """Adds SQL's count to each unsettled counter, and lets a restored Redis join SQL's epochs.

    Returns the number of counters that were settled.
    """
    settled = 0
    until = server_time(patient=True)
    while True:
        lists = counters.unsettled(until=until, tags=epoch.tags)
        all_names = [name for unsettled, _ in lists for name in unsettled]
        stored = stored_counters(all_names)
        # SQL's epochs are read after SQL's counts, so that all these counts were settled in these
        # epochs or in earlier ones.
        sql_epochs = epoch.known([redis_epoch for _, redis_epoch in lists])
        calls = [
            counters.settle(
                {name: stored[name] for name in unsettled},
                epoch=redis_epoch,
                sql_epoch=sql_epochs.get(redis_epoch.tag),
            )
            for unsettled, redis_epoch in lists
        ]
        answers: list[tuple[int, Epoch]] = scripts.run_all(*calls, patient=True)
        epoch.advance([new_epoch for _, new_epoch in answers])
        settled += sum(count for count, _ in answers)
        if not all_names:
            return settled


def stored_counters(counter_names: Sequence[str]) -> dict[str, Stored]:
    """Returns what SQL stores of each counter, by the names that `views:unsettled` has for them."""
    hours: list[str] = []
    hashes: list[Name] = []
    totals: list[str] = []
    for name in counter_names:
        family, subject = keys.split_member(name)
        if family == "hour":
            hours.append(name)
        elif family:
            hashes.append((family, subject))
        else:
            totals.append(name)
    stored = dict.fromkeys(counter_names, NOTHING)
    if hours:
        stored.update(_stored_hours(hours))
    if hashes:
        stored.update(_stored_hashes(hashes))
    stored.update(_stored_totals(totals))
    return stored


def _stored_hours(counter_names: Sequence[str]) -> Mapping[str, Stored]:
    """Returns what SQL stores of each hour of a model, by the names of the counters."""
    hours = {name: keys.parse_hour(name) for name in counter_names}
    indexes = [hour for _, hour in hours.values()]
    sums = history.sums(
        {model for model, _ in hours.values()}, since=min(indexes), until=max(indexes) + 1
    )
    views = {model: stored.by_hour() for model, stored in sums.items()}
    return {name: Stored({"": views[model].get(hour, 0)}) for name, (model, hour) in hours.items()}


def _stored_hashes(hashes: Sequence[Name]) -> Mapping[str, Stored]:
    """Returns what SQL stores of each hash, by the names of the counters."""
    breakdowns = archive.breakdowns(hashes)
    return {keys.member(*name): Stored(counts) for name, counts in breakdowns.items()}


def _stored_totals(subjects: Sequence[str]) -> Mapping[str, Stored]:
    """Returns what SQL stores of the subjects that have a row, and begins their history."""
    stored: dict[str, Stored] = {}
    for model, rows in rows_by_model(subjects).items():
        by_pk = row_counts.stored(model, list(rows))
        counts = {rows[pk]: row for pk, row in by_pk.items()}
        if conf.HISTORY:
            history.begin({subject: row for subject, row in counts.items() if row.views})
        sketches = archive.sketches(counts)
        for subject, row in counts.items():
            sketch = sketches.get(subject, b"")
            stored[subject] = Stored({"": row.views}, sketch, row.visitors)
    return stored
