"""Counts and dots of a page, filled in together when the page is done: one round trip, however many there are.

A tag leaves a signed placeholder, which says by itself what belongs there; the middleware replaces all of
them at once. So loops, includes and template engines do not matter, and a fragment out of a cache shows the
live count and the present reader's dots. A visitor who types a placeholder into a comment cannot sign it.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from secrets import compare_digest
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async
from django.db.models import Model
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.translation import ngettext

from readtrack import categories, numerals, readers, reports, subjects, visitors
from readtrack.conf import conf
from readtrack.digests import digest
from readtrack.models import Tracked
from readtrack.readers import Reader

COUNT, EXACT, WORDS = "count", "exact", "words"
DOT, NEWS, IF, ELSE, END = "dot", "news", "if", "else", "end"
FOR_READERS = {DOT, NEWS, IF}
MARK = b"!rt!"
READER_MARK = re.compile(rb"!rt!(dot|news|if)!")
PATTERN = re.compile(rb"!rt!((?:count|exact|words|dot|news|if|else|end)![^!\s]{1,4000}!\d{1,19})!([\w-]{16})!")

FindReader = Callable[[], Reader | None]


class Placeholder(NamedTuple):
    """What belongs somewhere in a page: a count (with SQL's number, the fall-back), a dot, or the rest of a
    page up to the next `else` or `end`, if the category is unread."""

    kind: str
    token: str
    stored: int = 0

    @classmethod
    def of(cls, kind: str, obj: Model) -> "Placeholder":
        """What SQL stores rides along, if it was loaded: with Redis gone it is shown without a query."""
        return cls(kind, subjects.token(obj), obj.__dict__.get("view_count", 0))

    def __str__(self) -> str:
        body = f"{self.kind}!{self.token}!{self.stored}"
        return f"!rt!{body}!{digest('placeholder', body)}!"


def is_shown(kind: str, obj: Any) -> bool:
    """Whether a tag for the object leaves anything. A post that has no read state of its own has no dot."""
    if not isinstance(obj, Model) or obj.pk is None:
        return False
    return kind not in FOR_READERS or not isinstance(obj, Tracked) or categories.has_read_state(type(obj))


def branches(obj: Model, unread: str, read: str) -> str:
    """Both branches of `if_unread`, with the marks between which one is dropped."""
    start, middle, end = (Placeholder.of(kind, obj) for kind in (IF, ELSE, END))
    return f"{start}{unread}{middle}{read}{end}"


def left(content: str, request: Any | None, user: Any | None) -> str:
    """What a tag leaves: its placeholders, or what belongs there where no middleware will put it."""
    if hasattr(request, "readtrack"):
        return content
    return filled(content.encode(), finder(request, user)).decode()


def finder(request: Any | None, user: Any | None) -> FindReader:
    """Finds who reads: the request's user, or without a request the template's."""
    if request is not None:
        return lambda: readers.find(request, visitors.signed_in(request))
    return lambda: readers.or_none(user.pk) if user is not None and user.is_authenticated else None


def needs_user(response: Any) -> bool:
    """Whether a dot waits to be filled in; of a page that is streamed nobody knows yet."""
    if response.streaming:
        return "html" in response.get("Content-Type", "")
    return _is_text(response) and bool(READER_MARK.search(response.content))


def fill(response: Any, find_reader: FindReader) -> None:
    """Puts counts and dots where the response has placeholders, in one round trip."""
    if not _is_text(response):
        return
    if response.streaming:
        _fill_stream(response, find_reader)
        return
    if MARK not in response.content:
        return
    response.content = filled(response.content, find_reader, is_json="json" in response.get("Content-Type", ""))
    if response.has_header("Content-Length"):
        response["Content-Length"] = str(len(response.content))


def filled(
    content: bytes, find_reader: FindReader, *, is_json: bool = False, branches: list[bool] | None = None
) -> bytes:
    """The content with every placeholder of ours replaced; what is not signed stays as it is.

    `branches` are those of `if_unread` that a stream's earlier parts left open, and whether each is shown.
    """
    waiting = dict(_found(content))
    if not waiting and not branches:
        return content
    counts = {entry.token for entry in waiting.values() if entry.kind in {COUNT, EXACT, WORDS}}
    dots = {entry.token for entry in waiting.values() if entry.kind in FOR_READERS}
    reader = find_reader() if dots else None
    glance = reports.glance(counts=list(counts), dots=list(dots), reader=reader)
    html = {raw: render(entry, glance) for raw, entry in waiting.items()}
    if is_json:
        html = {raw: json.dumps(text)[1:-1] for raw, text in html.items()}
    return b"".join(_shown(content, waiting, html, glance, [] if branches is None else branches))


def _shown(
    content: bytes, waiting: dict[bytes, Placeholder], html: dict[bytes, str], glance: reports.Glance, open_: list[bool]
) -> Iterator[bytes]:
    """The parts of the content that are not in a branch of `if_unread` which does not apply."""
    end = 0
    for match in PATTERN.finditer(content):
        entry = waiting.get(match[0])
        if entry is None:
            continue
        if all(open_):
            yield content[end : match.start()] + html[match[0]].encode()
        end = match.end()
        if entry.kind == IF:
            open_.append(entry.token in glance.unread and glance.unread[entry.token] > 0)
        elif entry.kind == ELSE:
            open_[-1:] = [not is_shown for is_shown in open_[-1:]]
        elif entry.kind == END:
            del open_[-1:]
    if all(open_):
        yield content[end:]


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


def _fill_stream(response: Any, find_reader: FindReader) -> None:
    branches: list[bool] = []
    fill_in = partial(filled, find_reader=find_reader, branches=branches)
    if response.is_async:
        response.streaming_content = _afilled(response.streaming_content, fill_in, branches)
        return
    response.streaming_content = (fill_in(chunk) for chunk in response.streaming_content)


async def _afilled(
    chunks: AsyncIterator[bytes], fill_in: Callable[[bytes], bytes], branches: list[bool]
) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        has_ours = MARK in chunk or branches
        yield await sync_to_async(fill_in, thread_sensitive=False)(chunk) if has_ours else chunk


def render(placeholder: Placeholder, glance: reports.Glance) -> str:
    """The HTML of one count or dot; of the marks of `if_unread` there is none."""
    if placeholder.kind in {IF, ELSE, END}:
        return ""
    if placeholder.kind == DOT:
        return dot(is_unread=bool(glance.unread.get(placeholder.token)))
    if placeholder.kind == NEWS:
        return unread_count(glance.unread.get(placeholder.token, 0))
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


def unread_count(items: int) -> str:
    """How much is new as HTML, or nothing. A bitmap knows only that something is: a dot."""
    if not items or conf.READ_STATE == "bitmap":
        return dot(is_unread=bool(items))
    words = {"items": items, "exact": numerals.exact(items), "short": numerals.short(items)}
    return render_to_string("readtrack/unread_count.html", words).strip()
