"""Views and visitors of the last minutes, which Redis keeps by minute."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from readtrack import buckets
from readtrack.store import keys, scripts, trending
from readtrack.store.scripts import Call

NUMBERS_AT_ONCE = 6000  # views of a subject in a minute that one call reads


def views(subjects_or_labels: Sequence[str], minutes: int, *, at: datetime) -> list[Call[int]]:
    """Returns calls that read the views of the last minutes, one for each partition.

    They are the views of all these subjects, or of all these models, together.
    """
    minute_names = buckets.minute_buckets(minutes, until=at)
    are_subjects = any(":" in name for name in subjects_or_labels)
    arguments = [str(int(are_subjects)), *subjects_or_labels]
    calls = []
    for tag in keys.tags():
        key_names = trending.keys_of_minutes(tag, minute_names)
        calls.append(Call("readtrack.numbers/recent_views", key_names, arguments, int, absent=None))
    return calls


def by_minute(
    subjects: Sequence[str], minutes: int, *, at: datetime
) -> list[Call[dict[str, list[int]]]]:
    """Returns calls that read the views of each of some subjects in each of the last minutes, the
    running one last.

    The result of a call is by subject, for some of the subjects.
    """
    minute_names = buckets.minute_buckets(minutes, until=at)
    calls = []
    for portion in scripts.parted(subjects, max(1, NUMBERS_AT_ONCE // minutes)):
        key_names = trending.keys_of_minutes(keys.tag(portion[0]), minute_names)
        decode = partial(_views_of_each, portion)
        call = Call("readtrack.numbers/views_by_minute", key_names, portion, decode, absent={})
        calls.append(call)
    return calls


def _views_of_each(
    subjects: Sequence[str], answer: Sequence[Sequence[Any]]
) -> dict[str, list[int]]:
    """Returns the views in each minute, by subject."""
    views: dict[str, list[int]] = {subject: [] for subject in subjects}
    nothing = [0] * len(subjects)
    for numbers in answer:
        for subject, number in zip(subjects, numbers or nothing, strict=True):
            views[subject].append(int(number or 0))
    return views


def visitors(labels: Sequence[str], minutes: int, *, at: datetime) -> list[Call[Any]]:
    """Returns calls that count the different visitors of models in the last minutes.

    There is one call for each partition. With one partition its result is the number; with several
    partitions each result is a sketch, and `uniques.union` counts them.
    """
    if not labels:
        return []
    minute_names = buckets.minute_buckets(minutes, until=at)
    calls: list[Call[Any]] = []
    for tag in keys.tags():
        minute_keys = [
            keys.minute_visitors(tag, minute, label) for minute in minute_names for label in labels
        ]
        scratch_key = f"{minute_keys[0]}:union"
        wants_sketch = 1 if tag else 0
        key_names = [scratch_key, *minute_keys]
        calls.append(
            Call("readtrack.numbers/recent_visitors", key_names, (wants_sketch,), absent=None)
        )
    return calls
