"""Read state: what is unread for a user, and how many readers a category has."""

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Any

from django.conf import settings
from django.db.models import Model, Q
from django.utils.timezone import make_naive

from readtrack.hits import readers
from readtrack.reports.page_state import page_state
from readtrack.store import clock, read_state, scripts
from readtrack.store.circuit import fail_open
from readtrack.subjects import (
    AnyModel,
    can_be_unread,
    label_in,
    label_of,
    line_of_settings,
    listed,
    model_with_label,
    parse_subject,
    subject_of,
)

LATE = timedelta(hours=1)  # by which a row may be written before it is published, at most

MOST_IN_TOTAL = 10_000  # objects of which a total is asked at once


def unread(user: Any, objs: Iterable[AnyModel]) -> set[AnyModel]:
    """Returns those of the objects that are unread for the user, in one round trip.

    Returns none for an anonymous user, and for a user whose id is out of bounds. Raises TypeError
    if `user` is no user of this site.
    """
    return {obj for obj, items in unread_counts(user, objs).items() if items}


def unread_counts(user: Any, objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """Returns the number of new items in each object for the user, in one round trip.

    With the form "bitmap" it is 0 or 1, with "positions" 100 stands for more than 99. It is 0 for an anonymous user, for a user whose id is out
    of bounds, and for an object without read state or whose `has_news` is false. Raises TypeError
    if `user` is no user of this site.
    """
    subjects = {obj: subject_of(obj) for obj in listed(objs)}
    pk = readers.id_of(user)
    reader = None if pk is None else readers.or_none(pk)
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
    rows: Iterable[Model] = objs._default_manager.all() if isinstance(objs, type) else listed(objs)
    objects = list(islice(rows, MOST_IN_TOTAL + 1))
    if len(objects) > MOST_IN_TOTAL:
        raise ValueError(
            f"A total is of {MOST_IN_TOTAL:,} objects at most: those that users follow."
        )
    return sum(unread_counts(user, objects).values())


def read_until(user: Any, obj: Model) -> datetime | None:
    """Returns the time (aware UTC) up to which the user has read the object.

    That is the time, by Redis's clock, when the last page of it with something new began, or of a
    later marking of everything. Returns None for a user who has read nothing, and while Redis is
    down. Raises TypeError for an object of a model without "read_state": "positions".
    """
    news = _news_of(user, obj)
    if news is None or not news.position:
        return None
    return _time(news.position)


def first_unread(
    user: Any, rows: Any, *, of: Model | None = None, written: str = ""
) -> Model | None:
    """Returns the first of the rows that is new to the user, in one trip and one query.

    `rows` is a queryset of posts in their order, or the manager of a thread's posts. The thread is
    `of`, by default the one whose manager it is. Returns None if nothing is new.

    A row is new if it was published since the user was there, whenever it was written. After more
    than 99 publications, and after one that names no row (`mark_unread`), `written` is needed, the
    name of the field with the time of a row: the first row is then up to an hour too early. Without
    that name it is the first row of all. Raises TypeError without a thread, or for one without
    positions.
    """
    queryset = rows.all()
    thread = of or getattr(rows, "instance", None) or queryset._hints.get("instance")
    if thread is None:
        raise TypeError("Name the thread: first_unread(user, rows, of=thread).")
    news = _news_of(user, thread)
    if news is None or not news.posts:
        return None
    is_new = _condition(news, queryset.model, written=written)
    first: Model | None = queryset.filter(is_new).first()
    return first


def _condition(news: read_state.NewsOfReader, model: type[Model], *, written: str) -> Q:
    """Returns the condition of rows of the model that are new, or may be."""
    label = label_of(model)
    new_rows = [parse_subject(post) for post in news.posts if label_in(post) == label]
    is_known = Q(pk__in=[row[1] for row in new_rows if row])
    # A model that is renamed has posts by its old name.
    is_renamed = any(model_with_label(label_in(post)) is None for post in news.posts)
    if not news.has_unknown and not is_renamed:
        return is_known
    if not written:
        return Q()
    earliest = _time(news.position) - LATE
    if not settings.USE_TZ:
        earliest = make_naive(earliest)
    return is_known | Q(**{f"{written}__gte": earliest})


def _news_of(user: Any, obj: Model) -> read_state.NewsOfReader | None:
    """Returns what is new to the user in a thread; None for an anonymous user and without Redis.

    Raises TypeError for an object of another form.
    """
    subject = subject_of(obj)
    positions = read_state.positions_of(label_in(subject))
    if positions is None:
        line = line_of_settings(obj._meta.label, "read_state", value="positions")
        raise TypeError(
            f"{type(obj).__name__} has no positions of readers; write into the settings {line}."
        )
    pk = readers.id_of(user)
    reader = None if pk is None else readers.or_none(pk)
    if reader is None:
        return None
    return fail_open(scripts.run, None, positions.news_of(reader, subject))


def _time(microseconds: int) -> datetime:
    """Returns a time of Redis's clock as an aware datetime."""
    return datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=microseconds)


def reader_counts(objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """Returns the number of readers who have read each object since its last publication.

    Objects of the form "positions", and their boards, are left out, because nobody knows their
    readers. Raises redis.RedisError.
    """
    subjects = {obj: subject_of(obj) for obj in listed(objs)}
    counts = read_state.count_readers(list(subjects.values()))
    return {obj: counts[subject] for obj, subject in subjects.items() if subject in counts}


def as_of() -> int:
    """Returns Redis's time (µs since 1970). Take it before you query what a page shows, and give it
    to `mark_read`. Raises redis.RedisError.
    """
    return clock.recent()
