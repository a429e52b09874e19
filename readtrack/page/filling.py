"""Filling in: replaces the placeholders of a finished page with live counts and dots, in one round trip."""

import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextvars import copy_context
from functools import cache, partial
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.urls import NoReverseMatch, reverse
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import compress_string

from readtrack.hits import readers, reading, visitors
from readtrack.hits.readers import Reader
from readtrack.page import placeholders
from readtrack.page.placeholders import ELSE, END, IF, MARK, OF_COUNTS, OF_READERS, PAGE, PANEL, TEXT, Placeholder
from readtrack.page.shown import LONGEST_PATH, VERSIONS, Shown
from readtrack.reports import live
from readtrack.request import Recorder

FindReader = Callable[[], Reader | None]
Run = Callable[..., list[Any]]  # runs calls, as `scripts.run_all` does

GZIP = b"\x1f\x8b"  # the first bytes
SCRIPT_HINT = SafeString("<!-- readtrack_script: include readtrack.urls in the URLconf -->")
PADDING = 100  # random bytes at most, as Django's GZipMiddleware adds against BREACH


def left(placed: Placeholder | str | None, context: Any) -> SafeString:
    """Returns the placeholders that a tag leaves; filled in if the request does not come through the middleware."""
    content = str(placed or "")
    request = getattr(context, "request", None) or context.get("request")
    if not hasattr(request, "readtrack"):
        content = filled(content.encode(), partial(reader_of, context)).decode()
    return mark_safe(content)  # noqa: S308 - signed placeholders, or rendered by tags


def text(obj: Any, content: str, context: Any, *, selector: str = "") -> SafeString:
    """Returns the content and the mark of its end; with a selector the end is that of the element which it finds."""
    place = Placeholder.of(TEXT, obj, words=reading.words(content))
    element = format_html(' data-text="{}"', escape(selector)) if selector else ""
    return left(f'{content}<span data-read="{place}"{element}></span>' if place else content, context)


def panel(obj: Any, context: Any) -> SafeString:
    """Returns the placeholder of the object's panel; nothing in a page that is the same for everybody."""
    request = getattr(context, "request", None) or context.get("request")
    seen = getattr(request, "readtrack", None)
    return left(Placeholder.of(PANEL, obj) if seen and not seen.is_shared else None, context)


def branches(obj: Any, context: Any, *, unread: Callable[[], str], read: Callable[[], str]) -> SafeString:
    """Returns both branches of `if_unread` between placeholders, or only `read` for an object without read state."""
    start = Placeholder.of(IF, obj)
    if start is None:
        return left(read(), context)
    return left(f"{start}{unread()}{start._replace(kind=ELSE)}{read()}{start._replace(kind=END)}", context)


def reader_of(context: Any) -> Reader | None:
    """Returns the reader of a template: the request's, or without a request the context's user."""
    request = getattr(context, "request", None) or context.get("request")
    if request is None:
        user = context.get("user")
        return readers.or_none(user.pk) if user is not None and user.is_authenticated else None
    # The session's middleware then adds Vary: Cookie, for anonymous visitors too.
    if hasattr(request, "session"):
        request.session.accessed = True
    return visitors.reader(request, visitors.signed_in(request))


def text_of(response: Any) -> bytes | None:
    """Returns the response's bytes if a template may have left placeholders in it, b"" for a stream, else None."""
    if getattr(response, "file_to_stream", None) is not None:  # the server may send the file by itself
        return None
    kind = response.get("Content-Type", "")
    if not ("text/" in kind or "json" in kind or "xml" in kind):
        return None
    if response.streaming:
        return b""
    content: bytes = response.content
    if content.startswith(GZIP) and response.get("Content-Encoding") == "gzip":  # by Django's gzip_page decorator
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):  # the header is wrong
            return None
    return content if MARK in content else None


def script(context: Any) -> str:
    """Returns the element of the page's script; "" for a page that does not come through the middleware."""
    request = getattr(context, "request", None) or context.get("request")
    seen = getattr(request, "readtrack", None)
    if request is None or seen is None:
        return ""
    try:
        url = reverse("readtrack:page")
    except NoReverseMatch:
        return SCRIPT_HINT if settings.DEBUG else ""
    seen.see(context)
    seen.has_script = True
    shown = Shown.by(seen, path=request.path)
    place = Placeholder(PAGE, shown.name, shown.as_of) if shown.name else SafeString(f'{VERSIONS[0]}" data-page="')
    # Django 6's, or django-csp's; a nonce would make each copy of a shared page another one.
    nonce = "" if seen.is_shared else context.get("csp_nonce", getattr(request, "csp_nonce", ""))
    attribute = format_html(' nonce="{}"', str(nonce)) if str(nonce) else ""
    return format_html('<script src="{}?{}"{} defer></script>', url, place, attribute)


def recall(content: bytes, recorder: Recorder, *, path: str) -> bool:
    """Tells the recorder what a page out of `cache_page` shows, whose view did not run. Returns True for a hit."""
    pages = [entry for entry in placeholders.found(content).values() if entry.kind == PAGE]
    for shown in (Shown.named(page.subject, page.stored) for page in pages):
        if shown.path == path[:LONGEST_PATH]:  # otherwise a fragment was cached with the script of another page in it
            shown.tell(recorder)
            recorder.has_script = True
    return recorder.has_seen


def needs_user(response: Any, content: bytes) -> bool:
    """Returns True if the response, with the content by `text_of`, may have dots; a stream of HTML always may."""
    if response.streaming:
        return "html" in response.get("Content-Type", "")
    return bool(placeholders.READER_MARK.search(content))


def may_query(content: bytes) -> bool:
    """Returns True if filling in may need SQL's counts."""
    return bool(placeholders.WITHOUT_COUNT.search(content))


def fill(response: Any, content: bytes, find_reader: FindReader | None, *, run: Run | None = None) -> None:
    """Replaces the placeholders of the response, whose content is by `text_of`, in one round trip, by `run`.

    Those of a stream are replaced part by part. A shared page has no reader: its dots are left to the script.
    """
    is_shared = find_reader is None
    find_reader = find_reader or (lambda: None)
    if response.streaming:
        stream = Stream(find_reader)
        replace = stream.afilled if response.is_async else stream.filled
        response.streaming_content = replace(response.streaming_content)
        return
    reader = cache(find_reader)
    kind = response.get("Content-Type", "")
    # Of other charsets the letters that all have in common, and numbers in place of the others.
    charset = "utf-8" if kind.endswith("utf-8") or response.charset.lower() == "utf-8" else "ascii"
    content = filled(content, reader, is_json="json" in kind, charset=charset, run=run)
    if response.get("Content-Encoding", "") == "gzip":
        content = compress_string(content, max_random_bytes=PADDING)
    response.content = content
    if response.has_header("Content-Length"):
        response["Content-Length"] = str(len(response.content))
    if reader.cache_info().currsize and not is_shared:  # the page has dots
        keep_apart(response, is_personal=reader() is not None)


def keep_apart(response: Any, *, is_personal: bool) -> None:
    """Tells caches that each reader gets another page, and drops the view's validators, which know no dots."""
    patch_vary_headers(response, ["Cookie"])
    if is_personal:
        # The view may let browsers keep the page, as cache_page does, and then they would keep its dots lit as long.
        patch_cache_control(response, private=True, max_age=0)
        for name in ("Expires", "CDN-Cache-Control", "Surrogate-Control"):  # a CDN obeys the last two before the others
            del response[name]
    for name in ("ETag", "Last-Modified"):
        del response[name]


def filled(
    content: bytes,
    find_reader: FindReader,
    *,
    is_json: bool = False,
    charset: str = "utf-8",
    branches: list[bool] | None = None,
    run: Run | None = None,
) -> bytes:
    """Returns the content with all placeholders replaced. `branches` are those open since earlier parts of a stream."""
    waiting = placeholders.found(content)
    if not waiting and not branches:
        return content
    counts: dict[str, int | None] = {}
    for entry in waiting.values():
        if entry.kind in OF_COUNTS:
            before = counts.get(entry.subject)
            counts[entry.subject] = entry.stored if before is None else max(before, entry.stored or 0)
    dots = {entry.subject for entry in waiting.values() if entry.kind in OF_READERS}
    reader = find_reader() if dots else None
    state = live.page_state(counts=counts, dots=list(dots), reader=reader, run=run)
    html = {
        text: (json.dumps(shown)[1:-1] if is_json else shown).encode(charset, "xmlcharrefreplace")
        for text, shown in placeholders.rendered(waiting, state).items()
    }
    return b"".join(_shown(content, waiting, html, state, [] if branches is None else branches))


def _shown(
    content: bytes,
    waiting: dict[bytes, Placeholder],
    html: dict[bytes, bytes],
    state: live.PageState,
    open_: list[bool],
) -> Iterator[bytes]:
    """Yields the parts of the content that are not in a hidden branch of `if_unread`."""
    end = 0
    for match in placeholders.PATTERN.finditer(content):
        text = match[0] + match[1]
        entry = waiting.get(text)
        if entry is None or match.start() < end:
            continue
        if all(open_):
            yield content[end : match.start()] + html[text]
        end = match.start() + len(text)
        if entry.kind == IF:
            open_.append(state.unread.get(entry.subject, 0) > 0)
        elif entry.kind == ELSE:
            open_[-1:] = [not is_shown for is_shown in open_[-1:]]
        elif entry.kind == END:
            del open_[-1:]
    if all(open_):
        yield content[end:]


class Stream:
    """A streamed response, filled in part by part. The beginning of a placeholder waits for the next part."""

    def __init__(self, find_reader: FindReader) -> None:
        self._begun = b""
        self._branches: list[bool] = []
        # In the page's context, so that it still waits for Redis no longer than the page has left.
        fill_in = partial(filled, find_reader=find_reader, branches=self._branches)
        self._fill_in = partial(copy_context().run, fill_in)

    def filled(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            if whole := self._whole(part):
                yield self._fill_in(whole)
        if self._begun:
            yield self._fill_in(self._begun)

    async def afilled(self, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for part in parts:
            if whole := self._whole(part):
                yield await self._afill_in(whole)
        if self._begun:
            yield await self._afill_in(self._begun)

    async def _afill_in(self, content: bytes) -> bytes:
        if MARK in content or self._branches:
            # Connections to the database belong to Django's own thread, which closes them.
            return await sync_to_async(self._fill_in, thread_sensitive=may_query(content))(content)
        return content

    def _whole(self, part: bytes) -> bytes:
        whole, self._begun = placeholders.parted(self._begun + part)
        return whole
