"""Readers: which bit of a category's bitmap is a user's."""

import logging
from functools import lru_cache
from typing import Any

from readtrack.conf import conf

logger = logging.getLogger("readtrack")


class ReaderError(ValueError):
    """The user's id would allocate more than its share of a bitmap."""


def number(user: Any) -> int:
    """The number of the user's bit. Raises ReaderError for an id out of bounds."""
    if type(user.pk) is int and 0 <= user.pk <= conf.MAX_READER:
        return user.pk
    raise ReaderError(
        f"User id {user.pk!r} is not a whole number from 0 to {conf.MAX_READER}, READTRACK['MAX_READER']."
    )


def number_or_none(user: Any | None) -> int | None:
    """`number` for a page, which has no dots for who cannot have any; the log says so once."""
    if user is None:
        return None
    try:
        return number(user)
    except ReaderError as refusal:
        _warn_once(str(refusal))
        return None


@lru_cache(maxsize=128)
def _warn_once(message: str) -> None:
    logger.warning("No dots: %s", message)
