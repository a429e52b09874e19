"""The views of each model by the hour; those of the whole site are their sum.

Redis counts them beside the totals and by the same rules. An hour that begins anew there is marked, settled with what
history has of it, written only once it has that base, and lifted where it is behind. History's rows are absolute, so
an hour's views are the difference to the row before, and a row that rises raises all later ones.
"""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from readtrack import buckets
from readtrack.models import History
from readtrack.sql import databases, epochs, history
from readtrack.sql.history import Sums
from readtrack.store import counters, scripts
from readtrack.store.counters import Total
from readtrack.store.model_hours import HOURS, Hours, by_label, hour_calls, hour_name, parse_hour_name
from readtrack.subjects import tracked_labels

FOREVER = 2**31 - 1  # an hour that is never reached
NOTHING = Total(0)


def stored_hours(names: Sequence[str]) -> dict[str, int]:
    """What history has of those hours, by their names in `views:unsettled`."""
    wanted = {parse_hour_name(name): name for name in names}
    if not wanted:
        return {}
    hours = [hour for _, hour in wanted]
    stored = history.sums({label for label, _ in wanted}, since=min(hours), until=max(hours) + 1)
    found = {label: rows.by_hour() for label, rows in stored.items()}
    return {name: found[label].get(hour, 0) for (label, hour), name in wanted.items()}


def store(*, at: datetime) -> int | None:
    """Brings history up to the hour of `at`, and Redis up to history; gives how many of its hours were behind.

    None where SQL cannot follow this Redis yet: settle, then try again. Raises redis.RedisError or django.db.Error.
    """
    present = buckets.hour_index(at)
    since = present - HOURS + 1
    calls = hour_calls(tracked_labels(), range(since, present + 1))
    *answers, epoch = scripts.run_all(*calls, counters.epoch(), patient=True)
    live = by_label(answers)
    connection = databases.of(History)

    def write() -> dict[str, int] | None:
        # Whoever writes sums takes turns: rows are computed out of the rows before them.
        with transaction.atomic(using=connection.alias):
            epochs.lock()
            if not epochs.advance(epoch.current, previous=epoch.previous):
                return None
            behind: dict[str, int] = {}
            stored = history.sums(live, since=since, until=FOREVER)
            rows = [row for label in live for row in _raised(label, live[label], stored[label], behind=behind)]
            databases.upsert(History, ("subject", "hour"), ("views", "visitors"), rows=rows)
        return behind

    behind = databases.retried(connection, write)
    if behind is None:
        return None
    lifts = [counters.lift(dict(some)) for some in scripts.sliced([*behind.items()])]
    lifted: list[int] = scripts.run_all(*lifts, patient=True)
    return sum(lifted)


def _raised(label: str, live: Hours, stored: Sums, *, behind: dict[str, int]) -> list[tuple[str, int, int, int]]:
    """The rows that are to rise; notes what history has of hours that Redis has less of."""
    known = stored.by_hour()
    total = row = stored.before
    rows = []
    for hour in sorted({*known, *live}):
        count, least = live.get(hour, NOTHING), known.get(hour, 0)
        views = max(least, count.views) if count.is_settled else least
        total, row = total + views, row + least
        if total > row and (views or hour in known):
            rows.append((label, hour, total, 0))
        if hour in live and count.is_settled and count.views < least:
            behind[hour_name(label, hour)] = least
    return rows
