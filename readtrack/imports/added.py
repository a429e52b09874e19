"""What a batch has added, as a row of ImportedViews keeps it."""

import json
import zlib
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple


class SubjectHour(NamedTuple):
    """The views of a subject in one hour (since 1970)."""

    subject: str
    hour: int
    views: int


class Added(NamedTuple):
    """The views that were added."""

    views: Mapping[str, int]  # by subject
    hours: list[SubjectHour]


def packed(views: Mapping[str, int], hours: Iterable[SubjectHour], *, of: Collection[str]) -> bytes:
    """Returns the views of these subjects, compressed."""
    numbers_by_subject: dict[str, list[int]] = {}  # hour and views, in turn
    for subject, hour, views_of_hour in hours:
        if subject in of:
            numbers_by_subject.setdefault(subject, []).extend((hour, views_of_hour))
    views_of_subjects = {subject: views[subject] for subject in of}
    text = json.dumps([views_of_subjects, numbers_by_subject], separators=(",", ":"))
    return zlib.compress(text.encode())


def unpacked(packed_views: bytes) -> Added:
    """Returns what `packed` has compressed."""
    views, numbers_by_subject = json.loads(zlib.decompress(packed_views))
    hours = []
    for subject, numbers in numbers_by_subject.items():
        for hour, views_of_hour in zip(numbers[::2], numbers[1::2], strict=True):
            hours.append(SubjectHour(subject, hour, views_of_hour))
    return Added(views, hours)
