"""The views of models by the hour, out of SQL's history and Redis."""

from collections import Counter
from collections.abc import Sequence

from readtrack.sql import history
from readtrack.store import counters, scripts
from readtrack.store.circuit import fail_open
from readtrack.store.counters import MODEL_HOURS


def model_views(labels: Sequence[str], *, since: int, until: int) -> Counter[int]:
    """Views of those models together by the hour; with Redis gone, what history has."""
    # SQL comes first: a base that is settled and written in between would be seen twice.
    stored = history.sums(labels, since=since, until=until)
    calls = counters.model_hours(labels, range(max(since, until - MODEL_HOURS), until))
    live = counters.by_model(fail_open(scripts.run_all, [], *calls))
    found: Counter[int] = Counter()
    for label, rows in stored.items():
        known = rows.by_hour()
        found.update(known)
        for hour, count in live[label].items():
            found[hour] += max(0, count.views - known.get(hour, 0)) if count.is_settled else count.views
    return found
