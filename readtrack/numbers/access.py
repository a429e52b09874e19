"""Permission to see the numbers of all objects of an author."""

from typing import Any

from readtrack.access import is_author, may_view_numbers
from readtrack.conf import conf


def may_view_report_of(user: Any, author: str) -> bool:
    """Returns True if the user may see the report of all objects of an author, because the user is
    that author.

    `author` is the author's primary key as text. A function in VIEW_NUMBERS decides about single
    objects, so with such a function there is no report.
    """
    return not conf.VIEW_NUMBERS and is_author(user, author)


def may_view_any_of(user: Any, author: str) -> bool:
    """Returns True if the user may see the numbers of some of the author's objects. A function in
    VIEW_NUMBERS may still refuse each of them; after False no object need be loaded.

    `author` is the author's primary key as text.
    """
    return bool(conf.VIEW_NUMBERS) or is_author(user, author) or may_view_numbers(user)
