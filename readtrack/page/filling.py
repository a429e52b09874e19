"""Counts and dots of a page, filled in together when the page is done: one round trip, however many there are.

Tags leave placeholders; the middleware replaces all of them at once. So a fragment out of a cache shows the live
count and the present reader's dots.
"""

import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.text import compress_string

from readtrack.hits import readers, visitors
from readtrack.hits.readers import Reader
from readtrack.page import markup, placeholders
from readtrack.page.placeholders import ELSE, END, IF, MARK, OF_COUNTS, OF_READERS, PATTERN, READER_MARK, Placeholder
from readtrack.reports import live

FindReader = Callable[[], Reader | None]

PADDING = 100  # bytes at random, at most, as Django's GZipMiddleware adds against BREACH


def left(content: str, request: Any | None, user: Any | None) -> str:
    """What a tag leaves: its placeholders, or what belongs there where no middleware will put it."""
    if hasattr(request, "readtrack"):
        return content
    return filled(content.encode(), finder(request, user)).decode()


def finder(request: Any | None, user: Any | None) -> FindReader:
    """Finds who reads: the request's user, or without a request the template's."""
    if request is not None:
        # The session's middleware then says Vary: Cookie, to anonymous visitors too.
        if hasattr(request, "session"):
            request.session.accessed = True
        return lambda: readers.find(request, visitors.signed_in(request))
    return lambda: readers.or_none(user.pk) if user is not None and user.is_authenticated else None


def needs_user(response: Any) -> bool:
    """Whether a dot waits to be filled in; of a page that is streamed nobody knows yet."""
    if not _is_text(response):
        return False
    if response.streaming:
        return "html" in response.get("Content-Type", "")
    return bool(READER_MARK.search(_utf8(response)))


def fill(response: Any, find_reader: FindReader) -> None:
    """Puts counts and dots where the response has placeholders, in one round trip."""
    if not _is_text(response):
        return
    if response.streaming:
        _fill_stream(response, find_reader)
        return
    content = _utf8(response)
    if MARK not in content:
        return
    found: list[Reader | None] = []

    def find() -> Reader | None:
        found.append(find_reader())
        return found[0]

    content = filled(content, find, is_json="json" in response.get("Content-Type", ""))
    content = _recoded(content, "utf-8", response.charset)
    response.content = compress_string(content, max_random_bytes=PADDING) if _is_packed(response) else content
    if response.has_header("Content-Length"):
        response["Content-Length"] = str(len(response.content))
    if found:
        _keep_apart(response, is_personal=found[0] is not None)


def _keep_apart(response: Any, *, is_personal: bool) -> None:
    """Tells caches that each reader's page is another, and that what the view said of its age is not of the dots."""
    patch_vary_headers(response, ["Cookie"])
    if is_personal:
        patch_cache_control(response, private=True)
    for name in ("ETag", "Last-Modified"):
        del response[name]


def _is_packed(response: Any) -> bool:
    """Whether the view's own decorator, gzip_page, was there before us."""
    return bool(response.get("Content-Encoding", "") == "gzip")


def _utf8(response: Any) -> bytes:
    content = _unpacked(response.content) if _is_packed(response) else response.content
    return _recoded(content, response.charset, "utf-8")


def _unpacked(content: bytes) -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error):  # it says so, but is no such thing
        return b""


def _recoded(content: bytes, source: str, target: str) -> bytes:
    if source.lower() == target.lower():
        return content
    try:
        return content.decode(source).encode(target, "xmlcharrefreplace")
    except (LookupError, UnicodeError):  # a charset that there is not, or that the content is not in
        return content


def filled(
    content: bytes, find_reader: FindReader, *, is_json: bool = False, branches: list[bool] | None = None
) -> bytes:
    """The content with every placeholder of ours replaced; what is not signed stays as it is.

    `branches` are those of `if_unread` that a stream's earlier parts left open, and whether each is shown.
    """
    waiting = placeholders.found(content)
    if not waiting and not branches:
        return content
    counts = {entry.subject for entry in waiting.values() if entry.kind in OF_COUNTS}
    dots = {entry.subject for entry in waiting.values() if entry.kind in OF_READERS}
    reader = find_reader() if dots else None
    glance = live.page_state(counts=list(counts), dots=list(dots), reader=reader)
    html = markup.render(waiting, glance)
    if is_json:
        html = {raw: json.dumps(text)[1:-1] for raw, text in html.items()}
    return b"".join(_shown(content, waiting, html, glance, [] if branches is None else branches))


def _shown(
    content: bytes, waiting: dict[bytes, Placeholder], html: dict[bytes, str], glance: live.PageState, open_: list[bool]
) -> Iterator[bytes]:
    """The parts of the content that are not in a branch of `if_unread` which does not apply."""
    end = 0
    for match in PATTERN.finditer(content):
        raw = placeholders.raw(match)
        entry = waiting.get(raw)
        if entry is None or match.start() < end:
            continue
        if all(open_):
            yield content[end : match.start()] + html[raw].encode()
        end = match.start() + len(raw)
        if entry.kind == IF:
            open_.append(entry.subject in glance.unread and glance.unread[entry.subject] > 0)
        elif entry.kind == ELSE:
            open_[-1:] = [not is_shown for is_shown in open_[-1:]]
        elif entry.kind == END:
            del open_[-1:]
    if all(open_):
        yield content[end:]


def _is_text(response: Any) -> bool:
    """Whether a template may have written it; nobody searches a picture or a download."""
    if getattr(response, "file_to_stream", None) is not None:  # the server may send it by itself
        return False
    return any(kind in response.get("Content-Type", "") for kind in ("text/", "json", "xml"))


def _fill_stream(response: Any, find_reader: FindReader) -> None:
    parts = Parts(find_reader)
    fill_in = parts.aeach if response.is_async else parts.each
    response.streaming_content = fill_in(response.streaming_content)


class Parts:
    """A stream's parts, filled in one by one; what may be a placeholder's beginning waits for its rest."""

    def __init__(self, find_reader: FindReader) -> None:
        self._begun = b""
        self._branches: list[bool] = []
        self._fill_in = partial(filled, find_reader=find_reader, branches=self._branches)

    def each(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            if whole := self._whole(chunk):
                yield self._fill_in(whole)
        if self._begun:
            yield self._fill_in(self._begun)

    async def aeach(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            if whole := self._whole(chunk):
                yield await self._afill_in(whole)
        if self._begun:
            yield await self._afill_in(self._begun)

    async def _afill_in(self, content: bytes) -> bytes:
        if MARK in content or self._branches:
            return await sync_to_async(self._fill_in, thread_sensitive=False)(content)
        return content

    def _whole(self, chunk: bytes) -> bytes:
        whole, self._begun = placeholders.parted(self._begun + chunk)
        return whole
