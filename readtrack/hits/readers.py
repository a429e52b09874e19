"""Readers: who a dot is for, and how their number in a category's read state is found.

A whole number is the user's id and the number itself. A name is given its number by Redis, once, in the
order in which readers come: for UUIDs, slugs and ids that lie far apart.
"""

import logging
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from django.contrib.auth import get_user_model
from django.db.models import Field, IntegerField
from django.http import HttpRequest

from readtrack.conf import conf
from readtrack.hits import visitors

logger = logging.getLogger("readtrack")

Reader = int | str

# The families of read state, by strategy. Those by ordinal have keys of their own: bits would change owners.
STATE_KINDS = {"bitmap": "read", "sequence": "seen"}
BITS = {"bitmap": 1, "sequence": 32}


class ReaderError(ValueError):
    """The user's id would allocate more than its share of the read state."""


def reader_of(user: Any) -> Reader:
    """The user as a reader. Raises ReaderError for an id out of bounds."""
    return reader_by_id(user.pk)


def reader_by_id(pk: Any) -> Reader:
    """`reader_of` by the user's primary key."""
    if has_ordinals():
        return quote(str(pk), safe="")
    if type(pk) is int and 0 <= pk <= highest():
        return pk
    raise ReaderError(
        f"User id {pk!r} is not a whole number from 0 to {highest()}: raise READTRACK['MAX_READER'], "
        "or let READTRACK['READERS'] = 'ordinal' number the readers."
    )


def find(request: HttpRequest, user: Any | None) -> Reader | None:
    """Who reads this page; None for who has no dots. An id out of bounds is named in the log, once."""
    if user is None:
        return _anonymous(request) if conf.ANONYMOUS_READERS else None
    return or_none(user.pk)


def or_none(pk: Any) -> Reader | None:
    """`reader_by_id` where nothing may fail: the log names an id out of bounds, once."""
    try:
        return reader_by_id(pk)
    except ReaderError as refusal:
        _warn_once(str(refusal))
        return None


def number_of(reader: Reader | None) -> int | None:
    """The user id, where it is a whole number within bounds, however readers are numbered."""
    if not isinstance(reader, str):
        return reader
    # An ordinal is no substitute: another numbering would hand it to somebody else.
    is_id = reader.isdecimal() and has_whole_ids() and int(reader) <= highest()
    return int(reader) if is_id else None


def has_whole_ids() -> bool:
    """Whether the site's user ids are whole numbers."""
    return isinstance(_id_field(), IntegerField)


def has_ordinals() -> bool:
    """Whether Redis numbers the readers, rather than their user ids."""
    if conf.ANONYMOUS_READERS or conf.READERS != "auto":
        return conf.ANONYMOUS_READERS or conf.READERS == "ordinal"
    return not has_whole_ids()


def highest() -> int:
    """The highest number a reader may have, so that a category's read state stays within its share."""
    return conf.MAX_READER // BITS[conf.READ_STATE]


def state_kind() -> str:
    """The end of the keys that hold the read state by today's settings."""
    return state_kind_of(conf.READ_STATE, has_ordinals=has_ordinals())


def state_kind_of(state: str, *, has_ordinals: bool) -> str:
    """The end of the keys of that strategy and numbering."""
    return f"{STATE_KINDS[state]}:ordinal" if has_ordinals else STATE_KINDS[state]


def state_kinds() -> list[str]:
    """The ends of the keys of every strategy and numbering; today's comes first."""
    every = [state_kind_of(state, has_ordinals=ordinals) for state in STATE_KINDS for ordinals in (False, True)]
    return sorted(every, key=lambda name: name != state_kind())


def _anonymous(request: HttpRequest) -> Reader | None:
    """By the cookie, once the visitor has brought it back: who keeps none would get a number at each page."""
    visitor = visitors.visitor(request, None)
    return f"anon:{visitor.id}" if visitor.kind == "cookie" and not visitor.new_cookie else None


def _id_field() -> "Field[Any, Any]":
    field: Any = get_user_model()._meta.pk
    while field.remote_field:
        field = field.target_field
    return field  # type: ignore[no-any-return]


@lru_cache(maxsize=128)
def _warn_once(message: str) -> None:
    logger.warning("No dots: %s", message)
