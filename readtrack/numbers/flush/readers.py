"""Storing the number of readers of each category."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from django.db.models import Model

from readtrack import buckets
from readtrack.numbers.models import ReaderHistory
from readtrack.numbers.sql import history
from readtrack.sql import databases
from readtrack.sql.faults import Faults
from readtrack.store import keys, read_state, scripts
from readtrack.subjects import label_of, read_state_models, subject_column
from readtrack.unread.starting import subjects_of_rows


def store(*, at: datetime, faults: Faults) -> int:
    """Stores how many readers each category has, where that number changed, for the hour of `at`.

    Returns how many numbers were stored: none while Redis has not got its read state back. Raises
    redis.RedisError.
    """
    if read_state.not_begun(keys.tags()):
        return 0
    hour = buckets.hour_index(at)
    return sum(
        faults.attempt(label_of(model), partial(_store_model, model, hour), 0)
        for model in read_state_models()
        if read_state.form_of(label_of(model)).knows_readers
    )


def _store_model(model: type[Model], hour: int) -> int:
    """Stores the numbers of readers of the model's categories. Returns how many were stored."""
    stored = 0
    for subjects in _portions(model):
        counts = read_state.count_readers(subjects, patient=True)
        counts_by_column = {subject_column(subject): count for subject, count in counts.items()}
        newest = history.newest_readers(list(counts_by_column))
        rows = [
            ReaderHistory(subject=column, hour=hour, readers=count)
            for column, count in counts_by_column.items()
            if count != newest[column]
        ]
        # Not by databases.upsert, which never lowers a number: the number of readers may fall.
        write = partial(
            databases.replace, ReaderHistory, ["subject", "hour"], ["readers"], rows=rows
        )
        databases.retried(databases.of(ReaderHistory), write)
        stored += len(rows)
    return stored


def _portions(model: type[Model]) -> Iterator[list[str]]:
    """Yields the subjects of all categories of the model, in portions that one call can take."""
    # They come from the site's rows and not from SCAN, because a publication removes the key of its
    # category, which then has 0 readers.
    portions = subjects_of_rows(model, scripts.SLICE)
    while True:
        with databases.site_transaction(databases.of(model)):
            subjects = next(portions, None)
        if subjects is None:
            return
        yield subjects
