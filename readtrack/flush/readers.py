"""The number of readers of each category, by the hour. A publication sets it to zero."""

from datetime import datetime
from itertools import chain

from readtrack import buckets
from readtrack.sql import history
from readtrack.store import read_state
from readtrack.store.scripts import SLICE
from readtrack.subjects import read_state_models, subject_column
from readtrack.unread.starting import subjects_of_rows


def store(*, at: datetime) -> int:
    """Stores the numbers that changed, for the hour of `at`. Returns how many. Raises redis.RedisError."""
    hour = buckets.hour_index(at)
    # By the site's own rows, because SCAN would miss categories whose key a publication removed.
    number = 0
    for subjects in chain.from_iterable(subjects_of_rows(model, SLICE) for model in read_state_models()):
        counts = read_state.count_readers(subjects, patient=True)
        found = {subject_column(subject): count for subject, count in counts.items()}
        stored = history.newest_readers(list(found))
        changed = {column: count for column, count in found.items() if count != stored.get(column, 0)}
        history.store_readers(changed, hour=hour)
        number += len(changed)
    return number
