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

USERS_AT_ONCE = 500  # that one round trip and one query ask about


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
    Where read state is kept by reader, what is older than it is kept counts as read by everybody.
    Raises TypeError for an object without read state, and redis.RedisError.
    """
    return (state.user for state in _states(obj, users) if state.is_unread is False)


def unread_by(obj: Model, users: QuerySet[Any] | None = None) -> Iterator[Any]:
    """Yields those of the users who have not read the object since its last publication.

    They are asked for as by `readers_of`. A user whose id is out of bounds has no dots, so it is
    not known what that user has read: neither function has such a user. Raises TypeError for an
    object without read state, and redis.RedisError.
    """
    return (state.user for state in _states(obj, users) if state.is_unread)


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

    With `has_read` True it has only the users who have read it, with False only those who are not
    known to have read it. They are looked for among the next 500 users, so there may be none of
    them though later users are. Takes one query and one round trip. Raises what `readers_of`
    raises.
    """
    [subject] = category_subjects([obj])
    rows = users.order_by("pk")
    if after is not None:
        rows = rows.filter(pk__gt=after)
    most_asked = limit
    if has_read is not None:
        most_asked = USERS_AT_ONCE
    users_and_next = [*rows[: most_asked + 1]]
    asked_users = users_and_next[:most_asked]
    states = _with_states(subject, asked_users)
    if has_read is not None:
        states = [state for state in states if (state.is_unread is False) is has_read]
    if len(states) > limit:
        return Portion(states[:limit], states[limit - 1].user.pk)
    if len(users_and_next) > most_asked:
        return Portion(states, asked_users[-1].pk)
    return Portion(states, None)


def _states(obj: Model, users: QuerySet[Any] | None) -> Iterator[State]:
    """Returns an iterator of the states of the users, by default of all users. Raises TypeError at
    once for an object without read state.
    """
    [subject] = category_subjects([obj])
    if users is None:
        users = get_user_model()._default_manager.all()
    return _states_of(subject, users.order_by("pk"))


def _states_of(subject: str, rows: QuerySet[Any]) -> Iterator[State]:
    """Yields the states of the users, USERS_AT_ONCE users in a query. `rows` are users in the order
    of their primary keys.
    """
    users = [*rows[:USERS_AT_ONCE]]
    while users:
        yield from _with_states(subject, users)
        users = [*rows.filter(pk__gt=users[-1].pk)[:USERS_AT_ONCE]]


def _with_states(subject: str, users: Sequence[Any]) -> list[State]:
    """Returns the users' states, in one round trip."""
    reader_by_pk: dict[Any, Reader] = {}  # of users with dots
    for user in users:
        reader = readers.reader_or_none(user.pk)
        if reader is not None:
            reader_by_pk[user.pk] = reader
    are_unread = _are_unread(subject, [*reader_by_pk.values()])
    is_unread_by_pk = dict(zip(reader_by_pk, are_unread, strict=True))
    return [State(user, is_unread_by_pk.get(user.pk)) for user in users]


def _are_unread(subject: str, readers_of_page: list[Reader]) -> list[bool]:
    """Returns for each reader whether the category is unread, by the rule of the dots.

    Raises NotRestoredError while Redis has lost the read state and has not got it back: then nobody
    is known to have read anything.
    """
    calls_of_readers = [read_state.unread_calls(reader, [subject]) for reader in readers_of_page]
    scripts.run_all(*(call for calls in calls_of_readers for call in calls), patient=True)
    unread = []
    for calls in calls_of_readers:
        numbers = [call.result[subject] for call in calls if subject in call.result]
        if not numbers:
            raise NotRestoredError("Redis has lost what readers have read; a flush restores it.")
        unread.append(max(numbers) > 0)
    return unread
