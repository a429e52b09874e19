"""The number of readers of each category, by the hour. A publication sets it to zero."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from readtrack import buckets
from readtrack.sql import databases, history
from readtrack.store import read_state
from readtrack.store.scripts import SLICE
from readtrack.subjects import read_state_models, subject_column, subject_of_row


def store(*, at: datetime) -> int:
    """Stores the numbers that changed, for the hour of `at`. Returns how many. Raises redis.RedisError."""
    hour = buckets.hour_index(at)
    # By the site's own rows, because SCAN would miss categories whose key a publication removed.
    return sum(_store(subjects, hour=hour) for model in read_state_models() for subjects in _subjects(model))


def _subjects(model: Any) -> Iterator[list[str]]:
    rows = databases.rows(model).order_by("pk").values_list("pk", flat=True)
    page = list(rows[:SLICE])
    while page:
        yield [subject_of_row(model, pk) for pk in page]
        page = list(rows.filter(pk__gt=page[-1])[:SLICE])


def _store(subjects: Sequence[str], *, hour: int) -> int:
    counts = read_state.count_readers(subjects, patient=True)
    found = {subject_column(subject): count for subject, count in counts.items()}
    stored = history.newest_readers(list(found))
    changed = {column: count for column, count in found.items() if count != stored.get(column, 0)}
    history.store_readers(changed, hour=hour)
    return len(changed)
