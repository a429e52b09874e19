"""Placeholders: signed text that tags leave where a count or a dot belongs, and the HTML that replaces it.

A placeholder names its object, so loops, includes, template engines and cached fragments all work. Visitors cannot
sign one, so a comment that contains one stays text.
"""

import logging
import re
from collections.abc import Mapping
from functools import cache
from secrets import compare_digest
from typing import Any, NamedTuple
from urllib.parse import quote

from django.conf import settings
from django.db.models import Model
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.translation import ngettext

from readtrack import numerals
from readtrack.conf import conf
from readtrack.hits.reading import least_seconds
from readtrack.hits.visitors import digest
from readtrack.page.shown import ANSWER, VERSIONS, Shown
from readtrack.reports.live import PageState, loaded
from readtrack.subjects import author_of_counts, can_be_unread, is_counted, subject_of, why_not_counted

logger = logging.getLogger("readtrack")

COUNT, EXACT, WORDS = "count", "exact", "words"
DOT, UNREAD, IF, ELSE, END = "dot", "unread", "if", "else", "end"
PAGE, TEXT, PANEL = "page", "text", "panel"
OF_COUNTS = {COUNT, EXACT, WORDS}
OF_READERS = {DOT, UNREAD, IF}
OF_ELEMENTS = {COUNT, WORDS, DOT, UNREAD}  # the script replaces these
MARK, PAGE_MARK, TEXT_MARK, PANEL_MARK = b"!rt!", b"!rt!page!", b"!rt!text!", b"!rt!panel!"
READER_MARK = re.compile(rb"!rt!(dot|unread|if|panel)!")
# A lookahead, because the text that a visitor types must not swallow the first byte of our placeholder behind it.
PATTERN = re.compile(
    rb"!rt(?=(!((?:count|exact|words|dot|unread|if|else|end|page|text|panel)![^!\s]{1,4000}!\d{0,19})!([\w-]{16})!))"
)
# A count of an object that does not carry SQL's, or a panel.
WITHOUT_COUNT = re.compile(rb"!rt!(?:(?:count|exact|words)![^!\s]{1,4000}!!|panel!)")
ELEMENT = re.compile(r"<[\w-]+")
# The beginning of a placeholder whose rest is in the next part of a stream.
BEGUN = re.compile(rb"!(?:r(?:t(?:!(?:[a-z]{1,6}(?:![^!\s]{0,4000}(?:!\d{0,19}(?:![\w-]{0,16})?)?)?)?)?)?)?\Z")


class Placeholder(NamedTuple):
    """The place of a count or a dot, or the start of a branch of `if_unread` that reaches to the next ELSE or END."""

    kind: str
    subject: str
    # SQL's count, if the object carries it: shown without a query while Redis is down. Of a text its number of words.
    stored: int | None = None

    @classmethod
    def of(cls, kind: str, obj: Any, *, words: int = 0) -> "Placeholder | None":
        """Returns the object's placeholder; None for an object without counts, never unread, or not saved."""
        is_saved = isinstance(obj, Model) and obj.pk is not None
        if kind not in OF_COUNTS and kind not in {TEXT, PANEL}:
            return cls(kind, subject_of(obj)) if is_saved and can_be_unread(obj) else None
        if is_saved and is_counted(obj.__class__):
            author = f"|{quote(author_of_counts(obj))}" if kind == PANEL else ""
            return cls(kind, f"{subject_of(obj)}{author}", words if kind == TEXT else loaded(obj))
        if settings.DEBUG:
            _explain(obj.__class__)
        return None

    def __str__(self) -> str:
        body = f"{self.kind}!{self.subject}!{'' if self.stored is None else self.stored}"
        return f"!rt!{body}!{digest('placeholder', body)}!"

    @property
    def key(self) -> str:
        """The name by which the page's script finds the element: half of the signature."""
        return str(self)[-17:-9]


@cache  # once for each class
def _explain(kind: type[Any]) -> None:
    logger.warning("view_count shows nothing: %s", why_not_counted(kind) or f"this {kind.__name__} is not saved.")


def found(content: bytes) -> dict[bytes, Placeholder]:
    """Returns the placeholders in the content by their text. Text with a wrong signature is none."""
    ours = {}
    for match in PATTERN.finditer(content):
        body = match[2].decode(errors="replace")
        # The signature comes first, because the body may be anything that a visitor typed.
        if compare_digest(digest("placeholder", body).encode(), match[3]):
            kind, subject, stored = body.split("!")
            ours[match[0] + match[1]] = Placeholder(kind, subject, int(stored) if stored else None)
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
        items = state.unread.get(entry.subject, 0)
        if entry.kind in OF_COUNTS:
            html[text] = count(state.views[entry.subject], kind=entry.kind)
        elif entry.kind == TEXT:
            html[text] = str(least_seconds(entry.stored or 0))
        elif entry.kind == UNREAD:
            html[text] = cached_count(items)
        else:
            html[text] = cached_dot(is_unread=items > 0) if entry.kind == DOT else ""
    if page := next(((text, entry) for text, entry in waiting.items() if entry.kind == PAGE), None):
        _connect(waiting, html, *page)
    return html


def _connect(waiting: Mapping[bytes, Placeholder], html: dict[bytes, str], text: bytes, page: Placeholder) -> None:
    """Puts in the token of the page, and names each element for its script."""
    places = {key: entry for key, entry in waiting.items() if entry.kind in OF_ELEMENTS}
    for key, entry in places.items():
        name = f' data-rt="{entry.key}"'
        start = ELEMENT.match(html[key])
        hidden = "" if html[key] else " hidden"
        named = f"{start[0]}{name}{html[key][start.end() :]}" if start else ""
        html[key] = named or f"<span{name}{hidden}>{html[key]}</span>"
    if page.subject != ANSWER:
        texts = [(entry.subject, entry.stored) for entry in waiting.values() if entry.kind == TEXT]
        token = Shown.named(page.subject, page.stored).token(list(places.values()), texts[0] if texts else ())
        html[text] = f'{VERSIONS[bool(texts)]}" data-page="{token}'  # goes on from one attribute to the next


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
