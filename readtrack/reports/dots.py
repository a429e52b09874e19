"""Read state for display: what is unread, and how many have read a category."""

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
    """Those of the objects that the user has not read, in one round trip. None for anonymous users."""
    return {obj for obj, items in unread_counts(user, objs).items() if items}


def unread_counts(user: Any, objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """How much is new to the user in each object, in one round trip; with a bitmap 1 stands for something.

    Nothing for anonymous users. Raises readers.ReaderError for a user id out of bounds.
    """
    subjects = subjects_of(objs)
    if user is None or not user.is_authenticated:
        return dict.fromkeys(subjects, 0)
    found = page_state(dots=list(subjects.values()), reader=readers.reader_by_id(user.pk)).unread
    return {obj: found.get(subject, 0) for obj, subject in subjects.items()}


def reader_counts(objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """How many have read each object since there was last something new. Raises redis.RedisError."""
    subjects = subjects_of(objs)
    found = read_state.count_readers(list(subjects.values()))
    return {obj: found[subject] for obj, subject in subjects.items()}


def as_of() -> int:
    """Redis's time (µs): taken before a query, it lets `mark_read` leave unread what came later.

    Raises redis.RedisError.
    """
    return clock.recent()


aunread = sync_to_async(unread)
aunread_counts = sync_to_async(unread_counts)
areader_counts = sync_to_async(reader_counts)
