"""Adds SQL's count to counters that Redis began anew."""

from readtrack.flush import hours
from readtrack.sql import archive, epochs, row_counts
from readtrack.store import counters, keys, scripts
from readtrack.store.counters import Stored, StoredCount
from readtrack.subjects import rows_by_model


def settle() -> int:
    """Gives counters marked until now their base, and takes a restored Redis into the line; gives how many."""
    settled, until = 0, max(counters.clock(), epochs.known())
    while True:
        names = counters.unsettled(until=until)
        bases = _stored(names)
        # Read after the bases: whatever they hold was settled in this epoch or an earlier one.
        done = scripts.run(counters.settle(bases, head=epochs.known()), patient=True)
        epochs.advance(done.epoch.current, previous=done.epoch.previous)
        settled += done.counters
        if not names:
            return settled


def _stored(names: list[str]) -> dict[str, StoredCount]:
    """What SQL keeps of each counter; a row that is gone has nothing."""
    hourly = [name for name in names if keys.is_hour(name)]
    hashes = [name for name in names if keys.split_member(name)[0] and not keys.is_hour(name)]
    bases: dict[str, StoredCount] = {
        **dict.fromkeys(names, 0),
        **archive.breakdowns(hashes),
        **hours.stored_hours(hourly),
    }
    for model, rows in rows_by_model(names).items():
        stored = row_counts.stored(model, list(rows))
        sketches = archive.sketches(rows.values())
        for pk, row in stored.items():
            bases[rows[pk]] = Stored({"": row.views}, sketches.get(rows[pk], b""))
    return bases
