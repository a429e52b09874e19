"""What a tag leaves in a page where a count or a dot belongs: a signed placeholder.

It says by itself what belongs there, so loops, includes and template engines do not matter, and neither does a
fragment out of a cache. A visitor who types a placeholder into a comment cannot sign it.
"""

import re
from secrets import compare_digest
from typing import Any, NamedTuple

from django.db.models import Model

from readtrack.hits.hashing import digest
from readtrack.models import Tracked
from readtrack.subjects import subject_of
from readtrack.unread import categories

COUNT, EXACT, WORDS = "count", "exact", "words"
DOT, NEWS, IF, ELSE, END = "dot", "news", "if", "else", "end"
OF_COUNTS = {COUNT, EXACT, WORDS}
OF_READERS = {DOT, NEWS, IF}
MARK = b"!rt!"
READER_MARK = re.compile(rb"!rt!(dot|news|if)!")
# Looks ahead of its beginning only: what a visitor types must not swallow the first byte of ours behind it.
PATTERN = re.compile(rb"!rt(?=!((?:count|exact|words|dot|news|if|else|end)![^!\s]{1,4000}!\d{1,19})!([\w-]{16})!)")
# What may go on as a placeholder in the next part of a stream.
BEGUN = re.compile(rb"!(?:r(?:t(?:!(?:[a-z]{1,5}(?:![^!\s]{0,4000}(?:!\d{0,19}(?:![\w-]{0,16})?)?)?)?)?)?)?\Z")


class Placeholder(NamedTuple):
    """What belongs somewhere in a page: a count (with SQL's number, the fall-back), a dot, or the rest of a
    page up to the next `else` or `end`, if the category is unread."""

    kind: str
    subject: str
    stored: int = 0

    @classmethod
    def of(cls, kind: str, obj: Model) -> "Placeholder":
        """What SQL stores rides along, if it was loaded: with Redis gone it is shown without a query."""
        stored = obj.__dict__.get("view_count")
        # Code of before may have put an F() expression there.
        return cls(kind, subject_of(obj), stored if isinstance(stored, int) and stored > 0 else 0)

    def __str__(self) -> str:
        body = f"{self.kind}!{self.subject}!{self.stored}"
        return f"!rt!{body}!{digest('placeholder', body)}!"


def is_shown(kind: str, obj: Any) -> bool:
    """Whether a tag for the object leaves anything: what is not tracked has no count, and a post without read state
    of its own no dot."""
    if not isinstance(obj, Model) or obj.pk is None:
        return False
    if kind in OF_COUNTS:
        return isinstance(obj, Tracked)
    return not isinstance(obj, Tracked) or categories.has_read_state(obj.__class__)


def branches(obj: Model, unread: str, read: str) -> str:
    """Both branches of `if_unread`, with the marks between which one is dropped."""
    start, middle, end = (Placeholder.of(kind, obj) for kind in (IF, ELSE, END))
    return f"{start}{unread}{middle}{read}{end}"


def found(content: bytes) -> dict[bytes, Placeholder]:
    """The placeholders of ours in the content, by their text; what is not signed is none."""
    ours = {}
    for match in PATTERN.finditer(content):
        body = match[1].decode(errors="replace")
        # Signed, so it is ours: only then is it worth reading.
        if compare_digest(digest("placeholder", body).encode(), match[2]):
            kind, subject, stored = body.split("!")
            ours[raw(match)] = Placeholder(kind, subject, int(stored))
    return ours


def raw(match: re.Match[bytes]) -> bytes:
    """What PATTERN matched, as it stands in the page."""
    return b"!rt!%b!%b!" % match.groups()


def parted(content: bytes) -> tuple[bytes, bytes]:
    """The content of a stream, and what its end may be the beginning of: a placeholder that a part cut in two."""
    last = content[max(0, content.rfind(MARK)) :]
    begun = None if last in found(last) else BEGUN.search(content)
    return (content[: begun.start()], begun[0]) if begun else (content, b"")
