"""How many have read each category, by the hour. The number falls at each publication: the latest one counts."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from readtrack import buckets
from readtrack.models import ReaderHistory
from readtrack.sql import databases
from readtrack.sql.reader_history import newest, stored_rows
from readtrack.store import read_state
from readtrack.store.scripts import SLICE
from readtrack.subjects import read_state_models, subject_column, subject_of_row


def store(*, at: datetime) -> int:
    """Stores, for the hour of `at`, the numbers that changed; gives how many. Raises redis.RedisError."""
    hour = buckets.hour_index(at)
    # By the site's own rows, not by SCAN: nobody has read a category whose key a publication took away.
    return sum(_store(subjects, hour=hour) for model in read_state_models() for subjects in _subjects(model))


def _subjects(model: Any) -> Iterator[list[str]]:
    rows = model._base_manager.using(databases.of(model).alias).order_by("pk").values_list("pk", flat=True)
    page = list(rows[:SLICE])
    while page:
        yield [subject_of_row(model, pk) for pk in page]
        page = list(rows.filter(pk__gt=page[-1])[:SLICE])


def _store(subjects: Sequence[str], *, hour: int) -> int:
    counts = read_state.count_readers(subjects, patient=True)
    found = {subject_column(subject): count for subject, count in counts.items()}
    stored = newest(list(found))
    changed = [
        ReaderHistory(subject=column, hour=hour, readers=count)
        for column, count in found.items()
        if count != stored.get(column, 0)
    ]
    features = databases.of(ReaderHistory).features
    stored_rows().bulk_create(
        changed,
        update_conflicts=True,
        update_fields=["readers"],
        unique_fields=["subject", "hour"] if features.supports_update_conflicts_with_target else None,
    )
    return len(changed)
