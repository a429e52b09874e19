"""Readers: users (or visitors) with read state, and their positions in a category's read state."""

from typing import Any
from urllib.parse import quote

from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.db.models import IntegerField

from readtrack.conf import cached_setting, conf, logger, reader_bits

# A position, or the name that Redis finds the position by. With READERS "id" a position is the user
# id; with "ordinal" it is the next free one, for UUIDs and ids far apart.
Reader = int | str

ANONYMOUS = "anon:"  # begins the name of a reader by cookie; names of users have no colon


class ReaderError(ValueError):
    """A user id that would allocate more memory than MAX_READER allows."""


def user_model() -> type[Any] | None:
    """Returns the model of the site's users; None for a site whose INSTALLED_APPS have none."""
    try:
        return get_user_model()
    except ImproperlyConfigured:
        return None


def id_of(user: Any) -> Any | None:
    """Returns the key of a user, None for nobody. Raises TypeError for no user of this site,
    ValueError if unsaved.
    """
    if user is None or getattr(user, "is_authenticated", None) is False:
        return None
    if not isinstance(user, get_user_model()):
        raise TypeError(f"{user!r} is no {get_user_model().__name__}, the user model of this site.")
    if user.pk is None:
        raise ValueError(
            f"{user!r} has no primary key yet; save the user before tracking what is read."
        )
    return user.pk


def reader_by_id(pk: Any) -> Reader:
    """Returns the reader with that user id. Raises ReaderError for an id out of bounds, or for
    none.
    """
    if has_ordinals() and pk is not None:
        return quote(str(pk), safe="")
    if type(pk) is int and 0 <= pk <= highest():
        return pk
    raise ReaderError(
        f"User id {pk!r} is not a whole number from 0 to {highest()}: raise READTRACK['MAX_READER'], "
        "or let READTRACK['READERS'] = 'ordinal' number the readers."
    )


@cached_setting("AUTH_USER_MODEL", maxsize=1024)
def or_none(pk: Any) -> Reader | None:
    """Returns the reader with that user id, or None for an id out of bounds.

    A user with such an id gets no dots, the marks of what is unread. A warning says so; the cache
    keeps most calls from repeating it.
    """
    try:
        return reader_by_id(pk)
    except ReaderError as error:
        logger.warning("No dots: %s", error)
        return None


def number_of(reader: Reader | None) -> int | None:
    """Returns the user id of the reader if it is a whole number within bounds, else None."""
    if not isinstance(reader, str):
        return reader
    # An ordinal is no substitute, because it changes owners when `readers` is lost.
    is_id = reader.isdecimal() and has_whole_ids() and int(reader) <= highest()
    return int(reader) if is_id else None


def has_whole_ids() -> bool:
    """Returns True if the site's user ids are whole numbers."""
    model = user_model()
    if model is None:
        return True
    field: Any = model._meta.pk
    while field.remote_field:
        field = field.target_field
    return isinstance(field, IntegerField)


@cached_setting("AUTH_USER_MODEL")
def has_ordinals() -> bool:
    """Returns True if Redis numbers the readers, False if their user ids are their positions."""
    return (
        conf.ANONYMOUS_READERS
        or conf.READERS == "ordinal"
        or (conf.READERS == "auto" and not has_whole_ids())
    )


def highest() -> int:
    """Returns the highest position, which bounds the memory of a category's read state.

    It is that of the site's form of read state.
    """
    return conf.MAX_READER // reader_bits()
