"""Placeholders: the signed text that a tag leaves where a count or a dot belongs.

A placeholder names its object, so loops, includes, template engines and cached fragments all work.
Visitors cannot sign one. What cannot be verified is removed from the page.
"""

import re
from functools import cache
from secrets import compare_digest
from typing import Any, NamedTuple
from urllib.parse import quote

from django.conf import settings
from django.db.models import Model

from readtrack import layouts, subjects
from readtrack.conf import cached_setting, logger
from readtrack.hits.visitors import digest, earlier_digests
from readtrack.reports.page_state import count_in_memory
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
PAGE = "page"  # what a page says of itself for the reports on it
TOLD = "told"  # what the answer to a report tells beside counts and dots
TEXT = "text"  # the mark behind a text whose reading counts
PANEL = "panel"

OF_COUNTS = {COUNT, EXACT, WORDS}
OF_DOTS = {DOT, UNREAD, IF}
OF_REPORTS = {PAGE, TOLD, TEXT}  # what takes their place is the matter of a part
KINDS = {*OF_COUNTS, *OF_DOTS, ELSE, END, PAGE, TOLD, TEXT, PANEL}

MARK = b"!rt!"  # the beginning of each placeholder
PANEL_MARK = b"!rt!panel!"
READER_MARK = re.compile(rb"!rt!(dot|unread|if|panel)!")  # placeholders that need the reader
# Placeholders that may need a query: a count without SQL's count in it, or a panel.
MAY_QUERY = re.compile(rb"!rt!(?:(?:count|exact|words)![^!\s]{1,4000}!(?:@|!)|panel!)")
LANGUAGE = re.compile("[a-z0-9-]{2,20}")
# The signed body. No character of a subject, or of a page's name, ends an attribute, an element or
# a text of JSON. So what only looks like a placeholder can be removed.
BODY = rb"[a-z]{2,6}![\w.~%:|/,\x80-\xff-]{1,4000}!\d{0,19}(?:@[a-z0-9-]{2,20})?"
# A whole placeholder. Its groups are all behind "!rt", the signed body, and the signature. It is a
# lookahead, because the text that a visitor types must not swallow the first byte of our
# placeholder behind it.
PATTERN = re.compile(rb"!rt(?=(!(%s)!([\w-]{16})!))" % BODY)
# What looks like a placeholder, also if the filter `escapejs` has changed its signature.
LIKE_A_PLACEHOLDER = re.compile(rb"!rt!%s!(?:[\w-]|\\u002D){16}!" % BODY)


class Placeholder(NamedTuple):
    """The place of a count or a dot, or a tag of `if_unread`, whose branch ends at the next tag."""

    kind: str
    subject: str  # of a panel with its author behind it; of a page its name, see `shown.name_of`
    # SQL's count, if the object carries it: shown without a query while Redis is down. In a
    # placeholder of a text it is the number of words.
    stored: int | None = None
    language: str = ""  # that of a `{% language %}` block around the tag; "" for the page's

    @classmethod
    def of(
        cls, kind: str, obj: Any, *, number_of_words: int = 0, tag: str = ""
    ) -> "Placeholder | None":
        """Returns the object's placeholder; None for an object without counts or read state.

        Also returns None for an object that is not saved. With DEBUG the reason is logged, with the
        text of the tag and its place in the templates.
        """
        is_dot = kind in OF_DOTS
        subject = ""
        if isinstance(obj, Model):
            subject = subjects.subject_if_saved(obj)
        if not subject or not _can_have(obj, is_dot=is_dot):
            if settings.DEBUG:
                is_saved = subject != ""
                _explain(_class_of(obj), is_dot, is_saved, tag)
            return None
        if is_dot:
            return cls(kind, subject)
        if kind == TEXT:
            return cls(kind, subject, number_of_words)
        if kind == PANEL:
            author = quote(subjects.author_of(obj, of_counts=True))
            subject = f"{subject}|{author}"
        return cls(kind, subject, count_in_memory(obj))

    def __str__(self) -> str:
        """Returns the signed text."""
        body = self.body
        signature = digest(keys.salt(layouts.PLACEHOLDER), body)
        return f"!rt!{body}!{signature}!"

    @property
    def body(self) -> str:
        """The text that is signed."""
        body = f"{self.kind}!{self.subject}!"
        if self.stored is not None:
            body += str(self.stored)
        if self.language:
            body += f"@{self.language}"
        return body


def _can_have(obj: Model, *, is_dot: bool) -> bool:
    """Returns True if the object can have a dot, or else a count."""
    if is_dot:
        return subjects.can_be_unread(obj)
    return subjects.is_counted(obj.__class__)


def _class_of(obj: Any) -> Any:
    """Returns the class of the object; that of None for "", which templates have for a missing
    variable.
    """
    if isinstance(obj, str) and not obj:
        return type(None)
    return obj.__class__


@cache  # once for each class and tag; with positional arguments, which are found sooner
def _explain(model: type[Any], is_dot: bool, is_saved: bool, tag: str) -> None:  # noqa: FBT001
    """Logs why a tag shows nothing. The class is that of None if the variable is missing, too."""
    if model is type(None):
        problem = "its variable is missing, None or empty."
    elif is_dot:
        problem = subjects.why_no_read_state(model)
    else:
        problem = subjects.why_not_counted(model)
    if not problem and not is_saved:
        problem = f"this {model.__name__} is not saved."
    if not problem:  # the object of a dot has nothing new
        return
    if not tag:
        tag = "view_count"
        if is_dot:
            tag = "unread_dot"
    logger.warning("%s shows nothing: %s", tag, problem)


class Spot(NamedTuple):
    """A placeholder where it stands in a content."""

    start: int
    text: bytes
    placeholder: Placeholder

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return self.start + len(self.text)


def spots_in(content: bytes, salt: str = "") -> list[Spot]:
    """Returns the placeholders in the content, in their order. Text with a wrong signature is none.

    `salt` is that of the page's tenant, if the running thread may have another tenant.
    """
    salt = salt or keys.salt(layouts.PLACEHOLDER)
    verified: dict[bytes, Placeholder | None] = {}
    spots: list[Spot] = []
    end = 0  # of the last one
    for match in PATTERN.finditer(content):
        start = match.start()
        if start < end:  # a second match within the last placeholder
            continue
        text = b"!rt" + match[1]
        if text not in verified:
            verified[text] = _verified(match[2], match[3], salt)
        placeholder = verified[text]
        if placeholder is not None:
            spots.append(Spot(start, text, placeholder))
            end = start + len(text)
    return spots


def placeholders_in(content: bytes, salt: str = "") -> dict[bytes, Placeholder]:
    """Returns the placeholders in the content by their text. `salt` is as in `spots_in`."""
    return {spot.text: spot.placeholder for spot in spots_in(content, salt)}


# Because the counts of a site's most read pages are on many of its pages: a tenth of the time.
@cached_setting("SECRET_KEY", "SECRET_KEY_FALLBACKS", maxsize=1024)
def _verified(signed_body: bytes, signature: bytes, salt: str) -> Placeholder | None:
    """Returns the placeholder with that body; None with a signature that is not the site's."""
    body = signed_body.decode("utf-8", "replace")
    # The signature is checked first, because the body may be anything that a visitor typed.
    if not _is_signed(body, signature, salt=salt):
        return None
    kind, subject, number_and_language = body.split("!")
    number, _, language = number_and_language.partition("@")
    if kind not in KINDS:  # nothing takes its place
        _warn_of_kind(kind)
    stored = None
    if number:
        stored = int(number)
    return Placeholder(kind, subject, stored, language)


def _is_signed(body: str, signature: bytes, *, salt: str) -> bool:
    """Returns True for a signature by the site's key, or by one that it had before."""
    if compare_digest(digest(salt, body).encode(), signature):
        return True
    return any(
        compare_digest(earlier.encode(), signature) for earlier in earlier_digests(salt, body)
    )


def without_strangers(text: bytes) -> bytes:
    """Returns the text between two placeholders without what only looks like one.

    It may be a visitor's joke, or signed by a key that the site no longer has.
    """
    if MARK not in text:
        return text
    emptied, removed = LIKE_A_PLACEHOLDER.subn(b"", text)
    if removed:
        _warn_of_strangers()
    return emptied


@cached_setting("SECRET_KEY", "SECRET_KEY_FALLBACKS")  # once in a process
def _warn_of_strangers() -> None:
    """Logs that a page had a placeholder with the signature of another key."""
    logger.warning(
        "A placeholder in a page was removed, because its signature is of no key of this site."
        " If no visitor typed it: after a change of SECRET_KEY the old key belongs into"
        " SECRET_KEY_FALLBACKS, and servers that share a cache need the same keys. A much newer"
        " version of readtrack may also have put it into the cache."
    )


@cached_setting()  # once in a process
def _warn_of_kind(kind: str) -> None:
    """Logs that a page had a placeholder of a kind that this version does not know."""
    logger.warning(
        "A placeholder of the kind %s was removed from a page: a newer version of readtrack put it"
        " into a cache that this version shares.",
        kind,
    )
