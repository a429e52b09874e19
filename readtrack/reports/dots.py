"""Read state: what is unread for a user, and how many readers a category has."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from django.db.models import Model

from readtrack.hits import readers
from readtrack.reports.page_state import page_state
from readtrack.store import clock, read_state
from readtrack.subjects import AnyModel, can_be_unread, listed, subject_of

MOST_IN_TOTAL = 10_000  # objects of which a total is asked at once


def unread(user: Any, objs: Iterable[AnyModel]) -> set[AnyModel]:
    """Returns those of the objects that are unread for the user, in one round trip.

    Returns none for an anonymous user, and for a user whose id is out of bounds. Raises TypeError
    if `user` is no user of this site.
    """
    return {obj for obj, items in unread_counts(user, objs).items() if items}


def unread_counts(user: Any, objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """Returns the number of new items in each object for the user, in one round trip.

    With the form "bitmap" it is 0 or 1. Of a form of a part that stops to count, a number above the
    highest stands for more. It is 0 for an anonymous user, for a user whose id is out of bounds,
    and for an object without read state or whose `has_news` is false. Raises TypeError if `user` is
    no user of this site.
    """
    subjects = {obj: subject_of(obj) for obj in listed(objs)}
    pk = readers.id_of(user)
    reader = None
    if pk is not None:
        reader = readers.reader_or_none(pk)
    if reader is None:
        return dict.fromkeys(subjects, 0)
    dots = [subject for obj, subject in subjects.items() if can_be_unread(obj)]
    items = page_state(dots=dots, reader=reader).unread
    return {obj: items.get(subject, 0) for obj, subject in subjects.items()}


def unread_total(user: Any, objs: Iterable[Model] | type[Model]) -> int:
    """Returns the number of new items in all of the objects together, in one round trip.

    `objs` may be a model, for all of its rows, which takes a query. Otherwise it is as in
    `unread_counts`, so with the form "bitmap" it is the number of objects with a dot. Raises
    ValueError for more than MOST_IN_TOTAL objects.
    """
    if isinstance(objs, type):
        objs = objs._default_manager.all()
    objects = list(islice(listed(objs), MOST_IN_TOTAL + 1))
    if len(objects) > MOST_IN_TOTAL:
        raise ValueError(
            f"A total is of {MOST_IN_TOTAL:,} objects at most: those that users follow."
        )
    return sum(unread_counts(user, objects).values())


def reader_counts(objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """Returns the number of readers who have read each object since its last publication.

    Objects whose read state is kept by reader are left out, because nobody knows their readers.
    Raises redis.RedisError.
    """
    subjects = {obj: subject_of(obj) for obj in listed(objs)}
    counts = read_state.count_readers(list(subjects.values()))
    return {obj: counts[subject] for obj, subject in subjects.items() if subject in counts}


def as_of() -> int:
    """Returns Redis's time (µs since 1970). Take it before you query what a page shows, and give it
    to `mark_read`. Raises redis.RedisError.
    """
    return clock.recent()
