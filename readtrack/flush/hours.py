"""The views of each model by the hour; those of the whole site are their sum.

Redis counts them beside the totals and by the same rules. An hour that begins anew is marked, settled with what history
stores of it, written once it is settled, and lifted if it is behind. Rows of history are absolute, so the views of an
hour are the difference to the row before, and a row that rises raises all later ones.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import transaction

from readtrack import buckets
from readtrack.models import History
from readtrack.sql import databases, history
from readtrack.sql.history import Sums
from readtrack.sql.runs import SqlEpoch, lock_epoch
from readtrack.store import counters, keys, scripts
from readtrack.store.counters import MODEL_HOURS, Stored, Total
from readtrack.subjects import tracked_labels

FOREVER = 2**31 - 1  # an hour that is never reached
NOTHING = Total(0)


def stored_hours(names: Sequence[str]) -> dict[str, Stored]:
    """Returns what history stores of these hours, by their names in `views:unsettled`."""
    wanted = {keys.parse_hour(name): name for name in names}
    hours = [hour for _, hour in wanted]
    stored = history.sums({model for model, _ in wanted}, since=min(hours), until=max(hours) + 1)
    found = {model: rows.by_hour() for model, rows in stored.items()}
    return {name: Stored({"": found[model].get(hour, 0)}) for (model, hour), name in wanted.items()}


def store(*, at: datetime) -> int | None:
    """Brings history up to the hour of `at`, and Redis up to history. Returns the number of hours raised in Redis.

    Returns None if Redis has to be settled first. Raises redis.RedisError or django.db.Error.
    """
    present = buckets.hour_index(at)
    since = present - MODEL_HOURS + 1
    calls = counters.model_hours(tracked_labels(), range(since, present + 1))
    *answers, epoch = scripts.run_all(*calls, counters.epoch(), patient=True)
    live = counters.by_model(answers)
    connection = databases.of(History)

    def write() -> dict[str, Stored] | None:
        # One writer at a time, because rows are computed from the rows before them.
        with transaction.atomic(using=connection.alias):
            lock_epoch()
            if not SqlEpoch().advance(epoch):
                return None
            behind: dict[str, Stored] = {}
            stored = history.sums(live, since=since, until=FOREVER)
            rows = [row for model in live for row in _raised(model, live[model], stored[model], behind=behind)]
            databases.upsert(History, ("subject", "hour"), ("views", "visitors"), rows=rows)
        return behind

    behind = databases.retried(connection, write)
    if behind is None:
        return None
    lifts = [counters.lift(dict(some)) for some in scripts.sliced([*behind.items()])]
    lifted: list[int] = scripts.run_all(*lifts, patient=True)
    return sum(lifted)


def _raised(
    model: str, live: Mapping[int, Total], stored: Sums, *, behind: dict[str, Stored]
) -> list[tuple[str, int, int, int]]:
    """Returns the rows to raise, and enters hours of which Redis has less than history into `behind`."""
    known = stored.by_hour()
    total = row = stored.before
    rows = []
    for hour in sorted({*known, *live}):
        count, least = live.get(hour, NOTHING), known.get(hour, 0)
        views = max(least, count.views) if count.is_settled else least
        total, row = total + views, row + least
        if total > row and (views or hour in known):
            rows.append((model, hour, total, 0))
        if hour in live and count.is_settled and count.views < least:
            behind[keys.member(keys.hour_kind(hour), model)] = Stored({"": least})
    return rows
