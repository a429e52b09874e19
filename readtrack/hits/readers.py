"""Readers: users (or visitors) with read state, and their numbers in it."""

from typing import Any
from urllib.parse import quote

from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.db.models import IntegerField

from readtrack.conf import cached_setting, conf, logger

# The reader's number, which says where the reader is in read state; or a name by which Redis finds
# the number. With the readers "id" the number is the user id; with "ordinal" Redis gives the next
# free one, the reader's ordinal, for UUIDs and ids far apart.
Reader = int | str

# The beginning of the name of a reader who is known by a cookie. Names of users have no colon.
ANONYMOUS = "anon:"


# Memory of a reader in the read state of one category (bits), by the form of DOTS.
READER_BITS = {"bitmap": 1, "sequence": 32}
MOST_BITS = 100_000_000  # of the read state of a category, 12.5 MB: one large user id takes no more


class ReaderError(ValueError):
    """A user id that would allocate more memory in Redis than a category may have."""


def user_model() -> type[Any] | None:
    """Returns the model of the site's users; None for a site whose INSTALLED_APPS have none."""
    try:
        return get_user_model()
    except ImproperlyConfigured:
        return None


def id_of(user: Any) -> Any | None:
    """Returns the primary key of the user; None for an anonymous user and for None.

    Raises TypeError for an object that is no user of this site, and ValueError for a user that is
    not saved.
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
    """Returns the reader with that user id: a name where Redis numbers readers, else a number.

    Raises ReaderError for an id out of bounds, and for None.
    """
    if has_ordinals() and pk is not None:
        # Quoted, so that it has no colon and is not taken for the name of an anonymous reader.
        return quote(str(pk), safe="")
    if type(pk) is int and 0 <= pk <= highest_possible():
        return pk
    raise ReaderError(
        f"User id {pk!r} is not a whole number from 0 to {highest_possible()}:"
        " let READTRACK['DOTS']['readers'] = 'ordinal' number the readers."
    )


@cached_setting("AUTH_USER_MODEL", maxsize=1024)
def reader_or_none(pk: Any) -> Reader | None:
    """Returns what `reader_by_id` does; None for an id out of bounds.

    A user with such an id gets no dots, and a warning says so. Because of the cache, it does so
    only once in a while.
    """
    try:
        return reader_by_id(pk)
    except ReaderError as error:
        logger.warning("No dots: %s", error)
        return None


def number_of(reader: Reader | None) -> int | None:
    """Returns the user id of the reader if it is a whole number within bounds; else None."""
    if not isinstance(reader, str):
        return reader
    # The ordinal would not do, because it belongs to somebody else after Redis has lost `readers`.
    is_id = reader.isdecimal() and has_whole_ids() and int(reader) <= highest_possible()
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
    """Returns True if Redis numbers the readers, False if their user ids are their numbers."""
    return (
        conf.DOTS.anonymous > 0  # an anonymous reader has no user id
        or conf.DOTS.readers == "ordinal"
        or (conf.DOTS.readers == "auto" and not has_whole_ids())
    )


def highest_possible() -> int:
    """Returns the highest number that a reader may have.

    It bounds the memory of a category's read state.

    It depends on the form in DOTS, because a reader takes 1 bit or 32 bits.
    """
    return MOST_BITS // READER_BITS.get(conf.DOTS.form, 1)  # a check names an unknown form
