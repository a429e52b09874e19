"""Who has read an object: which users, not only how many.

Anonymous readers are never named.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import Model, QuerySet

from readtrack.hits import readers
from readtrack.hits.readers import Reader
from readtrack.sql.read_states import NotRestoredError
from readtrack.store import read_state, scripts
from readtrack.subjects import category_subjects

PAGE = 500  # users that one round trip and one query ask about


class State(NamedTuple):
    """Whether a user has read an object."""

    user: Any
    is_unread: bool | None  # None for a user without dots, of whom it is not known


class Portion(NamedTuple):
    """Some of the users, in the order of their primary keys."""

    states: list[State]
    next_after: Any  # the primary key after which to go on; None at the end


def readers_of(obj: Model, users: QuerySet[Any] | None = None) -> Iterator[Any]:
    """Yields those of the users who have read the object since its last publication.

    `users` is a queryset of the user model, by default of all users. They come in the order of
    their primary keys, in pages of 500: each takes one query and one round trip when you get to it.
    Where read state is kept by reader, what is older than it is kept counts as read by everybody. Raises
    TypeError for an object without read state, and redis.RedisError.
    """
    return (state.user for state in _asked(obj, users) if state.is_unread is False)


def unread_by(obj: Model, users: QuerySet[Any] | None = None) -> Iterator[Any]:
    """Yields those of the users who have not read the object since its last publication.

    They are asked for as by `readers_of`. A user whose id is out of bounds has no dots, so it is not
    known what that user has read: neither function has such a user. Raises TypeError for an object
    without read state, and redis.RedisError.
    """
    return (state.user for state in _asked(obj, users) if state.is_unread)


def portion(
    obj: Model,
    users: QuerySet[Any],
    *,
    limit: int,
    after: Any = None,
    has_read: bool | None = None,
) -> Portion:
    """Returns which of the users have read the object: at most `limit` users, those whose primary
    keys come after `after`.

    With `has_read`, only the users who have read it, or only those who are not known to have read
    it. They are looked for among the next 500 users, so there may be none, and others after these
    users. Takes one query and one round trip. Raises what `readers_of` raises.
    """
    [subject] = category_subjects([obj])
    rows = users.order_by("pk")
    if after is not None:
        rows = rows.filter(pk__gt=after)
    most = limit if has_read is None else PAGE
    asked = [*rows[: most + 1]]
    has_more = len(asked) > most
    states = _with_states(subject, asked[:most])
    if has_read is not None:
        states = [state for state in states if (state.is_unread is False) is has_read]
    if len(states) > limit:
        return Portion(states[:limit], states[limit - 1].user.pk)
    return Portion(states, asked[most - 1].pk if has_more else None)


def _asked(obj: Model, users: QuerySet[Any] | None) -> Iterator[State]:
    """Returns an iterator of the users' states. Raises TypeError for an object without read state."""
    [subject] = category_subjects([obj])
    rows = get_user_model()._default_manager.all() if users is None else users
    return _in_pages(subject, rows.order_by("pk"))


def _in_pages(subject: str, rows: QuerySet[Any]) -> Iterator[State]:
    """Yields what `_asked` returns, page by page."""
    page = [*rows[:PAGE]]
    while page:
        yield from _with_states(subject, page)
        page = [*rows.filter(pk__gt=page[-1].pk)[:PAGE]]


def _with_states(subject: str, users: Sequence[Any]) -> list[State]:
    """Returns the users' states, in one round trip."""
    all_readers = [readers.reader_or_none(user.pk) for user in users]
    unread = iter(_are_unread(subject, [reader for reader in all_readers if reader is not None]))
    return [
        State(user, None if reader is None else next(unread))
        for user, reader in zip(users, all_readers, strict=True)
    ]


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
