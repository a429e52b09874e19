"""Counts and dots of a page, filled in together when the page is done: one round trip, however many there are.

A tag leaves a signed placeholder, which says by itself what belongs there; the middleware replaces all of
them at once. So loops, includes and template engines do not matter, and a fragment out of a cache shows the
live count and the present reader's dots. A visitor who types a placeholder into a comment cannot sign it.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator
from secrets import compare_digest
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.translation import ngettext

from readtrack import numerals, readers, reports
from readtrack.digests import digest

COUNT, EXACT, WORDS, DOT = "count", "exact", "words", "dot"
MARK = b"!rt!"
DOT_MARK = b"!rt!dot!"
PATTERN = re.compile(rb"!rt!((?:count|exact|words|dot)![^!\s]{1,4000}!\d{1,19})!([\w-]{16})!")


class Placeholder(NamedTuple):
    """What belongs somewhere in a page: a count (with SQL's number, the fall-back) or a dot."""

    kind: str
    token: str
    stored: int = 0

    def __str__(self) -> str:
        body = f"{self.kind}!{self.token}!{self.stored}"
        return f"!rt!{body}!{digest('placeholder', body)}!"


def needs_user(response: Any) -> bool:
    """Whether a dot waits to be filled in; of a page that is streamed nobody knows yet."""
    if response.streaming:
        return "html" in response.get("Content-Type", "")
    return _is_text(response) and DOT_MARK in response.content


def fill(response: Any, user: Any | None) -> None:
    """Puts counts and dots where the response has placeholders, in one round trip."""
    if not _is_text(response):
        return
    if response.streaming:
        _fill_stream(response, user)
        return
    if MARK not in response.content:
        return
    response.content = filled(response.content, user, is_json="json" in response.get("Content-Type", ""))
    if response.has_header("Content-Length"):
        response["Content-Length"] = str(len(response.content))


def filled(content: bytes, user: Any | None, *, is_json: bool = False) -> bytes:
    """The content with every placeholder of ours replaced; what is not signed stays as it is."""
    waiting = dict(_found(content))
    if not waiting:
        return content
    counts = {entry.token for entry in waiting.values() if entry.kind != DOT}
    dots = {entry.token for entry in waiting.values() if entry.kind == DOT}
    reader = readers.number_or_none(user)
    glance = reports.glance(counts=list(counts), dots=list(dots) if reader is not None else [], reader=reader)
    html = {raw: render(entry, glance) for raw, entry in waiting.items()}
    if is_json:
        html = {raw: json.dumps(text)[1:-1] for raw, text in html.items()}
    return PATTERN.sub(lambda match: html[match[0]].encode() if match[0] in html else match[0], content)


def _is_text(response: Any) -> bool:
    """Whether a template may have written it; nobody searches a picture or a download."""
    return any(kind in response.get("Content-Type", "") for kind in ("text/", "json", "xml"))


def _found(content: bytes) -> Iterator[tuple[bytes, Placeholder]]:
    for match in PATTERN.finditer(content):
        body = match[1].decode(errors="replace")
        # Signed, so it is ours: only then is it worth reading.
        if compare_digest(digest("placeholder", body).encode(), match[2]):
            kind, token, stored = body.split("!")
            yield match[0], Placeholder(kind, token, int(stored))


def _fill_stream(response: Any, user: Any | None) -> None:
    if response.is_async:
        response.streaming_content = _afilled(response.streaming_content, user)
        return
    response.streaming_content = (filled(chunk, user) for chunk in response.streaming_content)


async def _afilled(chunks: AsyncIterator[bytes], user: Any | None) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        yield await sync_to_async(filled, thread_sensitive=False)(chunk, user) if MARK in chunk else chunk


def render(placeholder: Placeholder, glance: reports.Glance) -> str:
    """The HTML of one count or dot."""
    if placeholder.kind == DOT:
        return dot(is_unread=not glance.read.get(placeholder.token, True))
    return count(reports.live(glance.totals.get(placeholder.token), stored=placeholder.stored), kind=placeholder.kind)


def count(views: int, *, kind: str) -> str:
    """A count as HTML: short with the exact number as its title, also in words, or the exact number alone."""
    exact, short = numerals.exact(views), numerals.short(views)
    if kind == EXACT:
        return exact
    text = ngettext("%(views)s view", "%(views)s views", views) % {"views": short} if kind == WORDS else short
    return format_html('<span class="readtrack-count" title="{}">{}</span>', exact, text)


def dot(*, is_unread: bool) -> str:
    """A dot as HTML, or nothing."""
    return render_to_string("readtrack/dot.html").strip() if is_unread else ""
