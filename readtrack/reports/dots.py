"""Read state: unread categories, and numbers of readers."""

from collections.abc import Iterable
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db.models import Model

from readtrack.hits import readers
from readtrack.reports.live import page_state
from readtrack.store import clock, read_state
from readtrack.subjects import subjects_of

AnyModel = TypeVar("AnyModel", bound=Model)


def unread(user: Any, objs: Iterable[AnyModel]) -> set[AnyModel]:
    """Returns the unread ones of the objects, in one round trip; an empty set for anonymous users.

    Raises readers.ReaderError for a user id out of bounds.
    """
    return {obj for obj, items in unread_counts(user, objs).items() if items}


def unread_counts(user: Any, objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """Returns the number of new items in each object, in one round trip; 0 for anonymous users.

    With READ_STATE "bitmap" it is 0 or 1. Raises readers.ReaderError for a user id out of bounds.
    """
    subjects = subjects_of(objs)
    if user is None or not user.is_authenticated:
        return dict.fromkeys(subjects, 0)
    found = page_state(dots=list(subjects.values()), reader=readers.reader_by_id(user.pk)).unread
    return {obj: found.get(subject, 0) for obj, subject in subjects.items()}


def reader_counts(objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """Returns the number of readers of each object since its last publication. Raises redis.RedisError."""
    subjects = subjects_of(objs)
    found = read_state.count_readers(list(subjects.values()))
    return {obj: found[subject] for obj, subject in subjects.items()}


def as_of() -> int:
    """Returns Redis's time (µs) for `mark_read`: taken before a query, it leaves unread what is published afterwards.

    Raises redis.RedisError.
    """
    return clock.recent()


aunread = sync_to_async(unread)
aunread_counts = sync_to_async(unread_counts)
areader_counts = sync_to_async(reader_counts)
