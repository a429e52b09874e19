"""Adds SQL's count to counters that Redis began anew."""

from readtrack import subjects
from readtrack.flush import hours
from readtrack.sql import archive, epochs, row_counts
from readtrack.store import counters, keys, scripts
from readtrack.store.counters import Base, Kept


def settle() -> int:
    """Gives counters marked until now their base, and takes a restored Redis into the line; gives how many."""
    settled, until = 0, max(counters.clock(), epochs.head())
    while True:
        names = counters.unbased(until=until)
        bases = _bases(names)
        # Read after the bases: whatever they hold was settled in this epoch or an earlier one.
        done = scripts.run(counters.settle(bases, head=epochs.head()), patient=True)
        epochs.follow(done.epoch.current, previous=done.epoch.previous)
        settled += done.counters
        if not names:
            return settled


def _bases(names: list[str]) -> dict[str, Base]:
    """What SQL keeps of each counter; a row that is gone has nothing."""
    hourly = [name for name in names if keys.is_hour(name)]
    hashes = [name for name in names if keys.split_member(name)[0] and not keys.is_hour(name)]
    bases: dict[str, Base] = {**dict.fromkeys(names, 0), **archive.breakdowns(hashes), **hours.bases(hourly)}
    for model, rows in subjects.rows(names).items():
        stored = row_counts.stored(model, list(rows))
        sketches = archive.sketches(rows.values())
        for pk, row in stored.items():
            bases[rows[pk]] = Kept({"": row.views}, sketches.get(rows[pk], b""))
    return bases
