"""Who has read an object: which users, not only how many.

Anonymous readers are never named.
"""

from collections.abc import Iterator
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Model, QuerySet

from readtrack.hits import readers
from readtrack.hits.readers import Reader
from readtrack.sql.read_states import NotRestoredError
from readtrack.store import read_state, scripts
from readtrack.subjects import category_subjects

PAGE = 500  # users that one round trip and one query ask about


def readers_of(obj: Model, users: QuerySet[Any] | None = None) -> Iterator[Any]:
    """Yields those of the users who have read the object since its last publication.

    `users` is a queryset of the user model, by default of all users. They come in the order of
    their primary keys, in pages of 500: each takes one query and one round trip when you get to it.
    With the form "positions", what is older than READ_DAYS counts as read by everybody. Raises
    TypeError for an object without read state, and redis.RedisError.
    """
    return (user for user, is_unread in _asked(obj, users) if not is_unread)


def unread_by(obj: Model, users: QuerySet[Any] | None = None) -> Iterator[Any]:
    """Yields those of the users who have not read the object since its last publication.

    They are asked for as by `readers_of`. A user whose id is out of bounds has no dots, so it is not
    known what that user has read: neither function has such a user. Raises TypeError for an object
    without read state, and redis.RedisError.
    """
    return (user for user, is_unread in _asked(obj, users) if is_unread)


def _asked(obj: Model, users: QuerySet[Any] | None) -> Iterator[tuple[Any, bool]]:
    """Returns an iterator of the users, each with whether the object is unread for that user."""
    [subject] = category_subjects([obj])
    rows = get_user_model()._default_manager.all() if users is None else users
    return _in_pages(subject, rows.order_by("pk"))


def _in_pages(subject: str, rows: QuerySet[Any]) -> Iterator[tuple[Any, bool]]:
    """Yields what `_asked` returns, page by page."""
    page = [*rows[:PAGE]]
    while page:
        readers_of_page = {}
        for user in page:
            reader = readers.or_none(user.pk)
            if reader is not None:
                readers_of_page[user] = reader
        unread = _are_unread(subject, [*readers_of_page.values()])
        yield from zip(readers_of_page, unread, strict=True)
        page = [*rows.filter(pk__gt=page[-1].pk)[:PAGE]]


def _are_unread(subject: str, readers_of_page: list[Reader]) -> list[bool]:
    """Returns for each reader whether the category is unread, by the rule of the dots.

    Raises NotRestoredError while Redis has lost the read state and has not got it back: then nobody
    is known to have read anything.
    """
    calls_of_readers = [read_state.unread(reader, [subject]) for reader in readers_of_page]
    scripts.run_all(*(call for calls in calls_of_readers for call in calls), patient=True)
    unread = []
    for calls in calls_of_readers:
        numbers = [call.result[subject] for call in calls if subject in call.result]
        if not numbers:
            raise NotRestoredError("Redis has lost what readers have read; a flush restores it.")
        unread.append(max(numbers) > 0)
    return unread
