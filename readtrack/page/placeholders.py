"""Placeholders: signed text that tags leave where a count or a dot belongs, and the HTML that replaces it.

A placeholder names its object, so loops, includes, template engines and cached fragments all work. Visitors cannot
sign one, so a comment that contains one stays text.
"""

import re
from collections.abc import Mapping
from functools import cache
from secrets import compare_digest
from typing import Any, NamedTuple

from django.db.models import Model
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.translation import ngettext

from readtrack import numerals
from readtrack.conf import conf
from readtrack.hits.visitors import digest
from readtrack.models import Tracked
from readtrack.reports.live import PageState, shown_views
from readtrack.subjects import can_be_unread, subject_of

COUNT, EXACT, WORDS = "count", "exact", "words"
DOT, UNREAD, IF, ELSE, END = "dot", "unread", "if", "else", "end"
OF_COUNTS = {COUNT, EXACT, WORDS}
OF_READERS = {DOT, UNREAD, IF}
MARK = b"!rt!"
READER_MARK = re.compile(rb"!rt!(dot|unread|if)!")
# A lookahead, because the text that a visitor types must not swallow the first byte of our placeholder behind it.
PATTERN = re.compile(rb"!rt(?=(!((?:count|exact|words|dot|unread|if|else|end)![^!\s]{1,4000}!\d{1,19})!([\w-]{16})!))")
# The beginning of a placeholder whose rest is in the next part of a stream.
BEGUN = re.compile(rb"!(?:r(?:t(?:!(?:[a-z]{1,6}(?:![^!\s]{0,4000}(?:!\d{0,19}(?:![\w-]{0,16})?)?)?)?)?)?)?\Z")


class Placeholder(NamedTuple):
    """The place of a count or a dot, or the start of a branch of `if_unread` that reaches to the next ELSE or END."""

    kind: str
    subject: str
    stored: int = 0  # SQL's count, if it was loaded: shown without a query while Redis is down

    @classmethod
    def of(cls, kind: str, obj: Any) -> "Placeholder | None":
        """Returns the object's placeholder; None for an object without counts, never unread, or not saved."""
        if not isinstance(obj, Model) or obj.pk is None:
            return None
        if not (isinstance(obj, Tracked) if kind in OF_COUNTS else can_be_unread(obj)):
            return None
        stored = obj.__dict__.get("view_count")
        # The view may have put an F() expression there.
        return cls(kind, subject_of(obj), stored if isinstance(stored, int) and stored > 0 else 0)

    def __str__(self) -> str:
        body = f"{self.kind}!{self.subject}!{self.stored}"
        return f"!rt!{body}!{digest('placeholder', body)}!"


def found(content: bytes) -> dict[bytes, Placeholder]:
    """Returns the placeholders in the content by their text. Text with a wrong signature is none."""
    ours = {}
    for match in PATTERN.finditer(content):
        body = match[2].decode(errors="replace")
        # The signature comes first, because the body may be anything that a visitor typed.
        if compare_digest(digest("placeholder", body).encode(), match[3]):
            kind, subject, stored = body.split("!")
            ours[match[0] + match[1]] = Placeholder(kind, subject, int(stored))
    return ours


def parted(content: bytes) -> tuple[bytes, bytes]:
    """Splits off the end of a stream's part that may be the beginning of a placeholder."""
    last = content[max(0, content.rfind(MARK)) :]
    begun = None if last in found(last) else BEGUN.search(content)
    return (content[: begun.start()], begun[0]) if begun else (content, b"")


def rendered(waiting: Mapping[bytes, Placeholder], state: PageState) -> dict[bytes, str]:
    """Returns the HTML of each placeholder; "" for the marks of `if_unread`. A template is rendered once a page."""
    html, cached_dot, cached_count = {}, cache(dot), cache(unread_count)
    for text, entry in waiting.items():
        if entry.kind in OF_COUNTS:
            html[text] = count(shown_views(state.totals.get(entry.subject), stored=entry.stored), kind=entry.kind)
            continue
        items = state.unread.get(entry.subject, 0)
        html[text] = cached_dot(is_unread=items > 0) if entry.kind == DOT else ""
        if entry.kind == UNREAD:
            html[text] = cached_count(items)
    return html


def count(views: int, *, kind: str) -> str:
    """Returns a count as HTML: EXACT is the number alone, COUNT and WORDS have the exact number as their title."""
    # Numbers below a thousand need no formatting, which takes longer than all else here.
    is_plain = views < numerals.THOUSAND
    exact = str(views) if is_plain else numerals.exact(views)
    if kind == EXACT:
        return exact
    short = exact if is_plain else numerals.short(views)
    shown = in_words(views) if kind == WORDS else short
    return format_html('<span class="readtrack-count" title="{}">{}</span>', exact, shown)


def in_words(views: int) -> str:
    """Returns a count as text: `1 view`, `1.2k views`."""
    return ngettext("%(views)s view", "%(views)s views", views) % {"views": numerals.short(views)}


def dot(*, is_unread: bool) -> str:
    """Returns a dot as HTML, or ""."""
    return render_to_string("readtrack/dot.html").strip() if is_unread else ""


def unread_count(items: int) -> str:
    """Returns the number of new items as HTML, or "". With bitmaps it is a dot, because a bit has no number."""
    if not items or conf.READ_STATE == "bitmap":
        return dot(is_unread=bool(items))
    words = {"items": items, "exact": numerals.exact(items), "short": numerals.short(items)}
    return render_to_string("readtrack/unread_count.html", words).strip()
