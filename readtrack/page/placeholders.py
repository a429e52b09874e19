"""Placeholders: the signed text that a tag leaves where a count or a dot belongs.

A placeholder names its object, so loops, includes, template engines and cached fragments all work.
Visitors cannot sign one, so what they type in a comment stays text.
"""

import re
from functools import cache
from secrets import compare_digest
from typing import Any, NamedTuple
from urllib.parse import quote

from django.conf import settings
from django.db.models import Model

from readtrack import subjects
from readtrack.conf import logger
from readtrack.hits.visitors import digest
from readtrack.reports.page_state import loaded
from readtrack.store import keys

# The kinds of placeholders.
COUNT = "count"  # an element with the short count
EXACT = "exact"  # the exact count as text
WORDS = "words"  # an element with the count in words, such as `1.2k views`
DOT = "dot"
UNREAD = "unread"  # the number of new items
IF = "if"  # the three tags of `if_unread`
ELSE = "else"
END = "end"
PAGE = "page"  # the page's token and the version of its script
TEXT = "text"  # the mark behind a text whose reading counts
PANEL = "panel"

OF_COUNTS = {COUNT, EXACT, WORDS}
OF_DOTS = {DOT, UNREAD, IF}
OF_ELEMENTS = {COUNT, WORDS, DOT, UNREAD}  # the script replaces these

MARK = b"!rt!"  # the beginning of each placeholder
PAGE_MARK = b"!rt!page!"
TEXT_MARK = b"!rt!text!"
PANEL_MARK = b"!rt!panel!"
READER_MARK = re.compile(rb"!rt!(dot|unread|if|panel)!")  # placeholders that need the reader
# Placeholders that may need a query: a count without SQL's count in it, or a panel.
MAY_QUERY = re.compile(rb"!rt!(?:(?:count|exact|words)![^!\s]{1,4000}!!|panel!)")
# A whole placeholder. Its groups are all behind "!rt", the signed body, and the signature. It is a
# lookahead, because the text that a visitor types must not swallow the first byte of our
# placeholder behind it.
PATTERN = re.compile(rb"!rt(?=(!([a-z]{2,6}![^!\s]{1,4000}!\d{0,19})!([\w-]{16})!))")
# Where the first half of the signature is in a placeholder's text. By it the page's script finds
# the element.
KEY = slice(-17, -9)


class Placeholder(NamedTuple):
    """The place of a count or a dot, or a tag of `if_unread`, whose branch ends at the next tag."""

    kind: str
    subject: str  # of a panel with its author behind it; of a page its name, see `shown.name_of`
    # SQL's count, if the object carries it: shown without a query while Redis is down. In a
    # placeholder of a text it is the number of words.
    stored: int | None = None

    @classmethod
    def of(cls, kind: str, obj: Any, *, number_of_words: int = 0) -> "Placeholder | None":
        """Returns the object's placeholder; None for an object without counts or read state.

        Also returns None for an object that is not saved. With DEBUG the reason is logged.
        """
        is_dot = kind in OF_DOTS
        is_saved = isinstance(obj, Model) and obj.pk is not None
        if not is_saved or not _can_have(obj, is_dot=is_dot):
            if settings.DEBUG:
                _explain(obj.__class__, is_dot)
            return None
        subject = subjects.subject_of(obj)
        if is_dot:
            return cls(kind, subject)
        if kind == TEXT:
            return cls(kind, subject, number_of_words)
        if kind == PANEL:
            author = quote(subjects.author_of(obj, of_counts=True))
            subject = f"{subject}|{author}"
        return cls(kind, subject, loaded(obj))

    def __str__(self) -> str:
        """Returns the signed text."""
        stored = "" if self.stored is None else self.stored
        body = f"{self.kind}!{self.subject}!{stored}"
        return f"!rt!{body}!{digest(keys.salt('placeholder'), body)}!"


def _can_have(obj: Model, *, is_dot: bool) -> bool:
    """Returns True if the object can have a dot, or else a count."""
    if is_dot:
        return subjects.can_be_unread(obj)
    return subjects.is_counted(obj.__class__)


@cache  # once for each class
def _explain(model: type[Any], is_dot: bool) -> None:  # noqa: FBT001 - a keyword would slow the cache
    """Logs why a tag shows nothing."""
    if is_dot:
        problem = subjects.why_no_read_state(model)
        if problem:  # without a problem the object has nothing new
            logger.warning("A dot is never shown: %s", problem)
        return
    problem = subjects.why_not_counted(model) or f"this {model.__name__} is not saved."
    logger.warning("view_count shows nothing: %s", problem)


def placeholders_in(content: bytes, salt: str = "") -> dict[bytes, Placeholder]:
    """Returns the placeholders in the content by their text. Text with a wrong signature is none.

    `salt` is that of the page's tenant, if the running thread may have another tenant.
    """
    placeholders = {}
    salt = salt or keys.salt("placeholder")
    for match in PATTERN.finditer(content):
        behind_mark, signed_body, signature = match.groups()
        body = signed_body.decode("utf-8", "replace")
        # The signature is checked first, because the body may be anything that a visitor typed.
        if not compare_digest(digest(salt, body).encode(), signature):
            continue
        kind, subject, stored = body.split("!")
        placeholder = Placeholder(kind, subject, int(stored) if stored else None)
        placeholders[b"!rt" + behind_mark] = placeholder
    return placeholders
