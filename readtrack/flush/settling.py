"""Settling: adds SQL's counts to counters that began anew in Redis."""

from readtrack.flush import hours
from readtrack.sql import archive, row_counts
from readtrack.sql.runs import SqlEpoch, known_epoch
from readtrack.store import counters, keys, scripts
from readtrack.store.counters import Stored
from readtrack.subjects import rows_by_model

NOTHING = Stored({"": 0})


def settle(epoch: SqlEpoch) -> int:
    """Adds SQL's count to every counter that is unsettled by now. Returns the number of counters settled.

    Also lets a Redis that was restored from a snapshot join SQL's epochs. Raises redis.RedisError or django.db.Error.
    """
    settled, until = 0, max(counters.clock(), epoch.number)
    known = epoch.number
    while True:
        names = counters.unsettled(until=until)
        stored = _stored(names) if names else {}
        if names:  # read after the counts, which were all settled in this epoch or an earlier one
            known = known_epoch()
        done = scripts.run(counters.settle(stored, known=known), patient=True)
        epoch.advance(done.epoch)
        settled += done.counters
        if not names:
            return settled
        known = epoch.number


def _stored(names: list[str]) -> dict[str, Stored]:
    """Returns what SQL stores of each counter: zero for a row that is gone."""
    found = dict.fromkeys(names, NOTHING)
    if hourly := [name for name in names if keys.is_hour(name)]:
        found |= hours.stored_hours(hourly)
    others = [keys.split_member(name) for name in names if not keys.is_hour(name)]
    if hashes := [name for name in others if name[0]]:
        found |= {keys.member(*name): Stored(counts) for name, counts in archive.breakdowns(hashes).items()}
    for model, rows in rows_by_model(names).items():
        counts = row_counts.stored(model, list(rows))
        sketches = archive.sketches(rows.values())
        for pk, row in counts.items():
            found[rows[pk]] = Stored({"": row.views}, sketches.get(rows[pk], b""))
    return found
