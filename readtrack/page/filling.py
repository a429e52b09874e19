"""Counts and dots of a page: tags leave placeholders, and the finished page is filled in, in one
round trip.

A placeholder is signed text that names its object, so loops, includes, template engines and cached
fragments all work. Visitors cannot sign one, so a comment that contains one stays text.
"""

import json
import re
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextvars import copy_context
from functools import cache, partial
from secrets import compare_digest
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connections
from django.db.models import Model
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import compress_string
from django.utils.translation import ngettext

from readtrack import numerals, subjects
from readtrack.conf import cached_setting, logger
from readtrack.hits import readers, reading, visitors
from readtrack.hits.visitors import digest
from readtrack.page.shown import ANSWER, LONGEST_NAME, VERSIONS, name_of, token_of
from readtrack.reports.page_state import PageState, loaded, page_state
from readtrack.reports.reads import reads
from readtrack.store import keys, scripts
from readtrack.store.read_state import strategy_of

FindReader = Callable[[], readers.Reader | None]
Run = Callable[..., list[Any]]  # makes the round trip, as `scripts.run_all` does
Result = TypeVar("Result")

GZIP = b"\x1f\x8b"  # the first bytes
# Bytes of a packed page that are unpacked. A megabyte may hold a gigabyte, and a page is held in
# memory twice while it is filled in.
LONGEST_TEXT = 10 * 2**20
MEMBERS = 16  # parts of gzip's data, each of which copies the data behind it

COUNT, EXACT, WORDS = "count", "exact", "words"
DOT, UNREAD, IF, ELSE, END = "dot", "unread", "if", "else", "end"
PAGE, TEXT, PANEL = "page", "text", "panel"
OF_COUNTS = {COUNT, EXACT, WORDS}
OF_ELEMENTS = {COUNT, WORDS, DOT, UNREAD}  # the script replaces these
MARK, PAGE_MARK, TEXT_MARK, PANEL_MARK = b"!rt!", b"!rt!page!", b"!rt!text!", b"!rt!panel!"
READER_MARK = re.compile(rb"!rt!(dot|unread|if|panel)!")
# A lookahead, because the text that a visitor types must not swallow the first byte of our
# placeholder behind it.
PATTERN = re.compile(rb"!rt(?=(!([a-z]{2,6}![^!\s]{1,4000}!\d{0,19})!([\w-]{16})!))")
# May query: a count of an object that does not carry SQL's, or a panel.
MAY_QUERY = re.compile(rb"!rt!(?:(?:count|exact|words)![^!\s]{1,4000}!!|panel!)")
ELEMENT = re.compile(r"\A<[\w-]+")
KEY = slice(
    -17, -9
)  # half of the signature in a placeholder's text, by which the page's script finds the element
# The beginning of a placeholder whose rest is in the next part of a stream.
BEGUN = re.compile(
    rb"!(?:r(?:t(?:!(?:[a-z]{1,6}(?:![^!\s]{0,4000}(?:!\d{0,19}(?:![\w-]{0,16})?)?)?)?)?)?)?\Z"
)


class Placeholder(NamedTuple):
    """The place of a count or a dot, or the start of a branch of `if_unread` that reaches to the
    next ELSE or END.
    """

    kind: str
    subject: str
    # SQL's count, if the object carries it: shown without a query while Redis is down. Of a text
    # its number of words.
    stored: int | None = None

    @classmethod
    def of(cls, kind: str, obj: Any, *, words: int = 0) -> "Placeholder | None":
        """Returns the object's placeholder; None for an object without counts, never unread, or not
        saved.
        """
        is_saved = isinstance(obj, Model) and obj.pk is not None
        is_dot = kind not in OF_COUNTS and kind not in {TEXT, PANEL}
        if is_dot and is_saved and subjects.can_be_unread(obj):
            return cls(kind, subjects.subject_of(obj))
        if not is_dot and is_saved and subjects.is_counted(obj.__class__):
            author = f"|{quote(subjects.author_of(obj, of_counts=True))}" if kind == PANEL else ""
            return cls(
                kind,
                f"{subjects.subject_of(obj)}{author}",
                words if kind == TEXT else loaded(obj),
            )
        if settings.DEBUG:
            _explain(obj.__class__, is_dot)
        return None

    def __str__(self) -> str:
        body = f"{self.kind}!{self.subject}!{'' if self.stored is None else self.stored}"
        return f"!rt!{body}!{digest(keys.salt('placeholder'), body)}!"


@cache  # once for each class
def _explain(kind: type[Any], is_dot: bool) -> None:  # noqa: FBT001 - a keyword would slow the cache
    if not is_dot:
        problem = subjects.why_not_counted(kind) or f"this {kind.__name__} is not saved."
        logger.warning("view_count shows nothing: %s", problem)
    elif problem := subjects.why_no_read_state(kind):  # others have nothing new
        logger.warning("A dot is never shown: %s", problem)


def found(content: bytes, salt: str = "") -> dict[bytes, Placeholder]:
    """Returns the placeholders in the content by their text. Text with a wrong signature is none.

    `salt` is that of the page's tenant where the running thread may know another tenant.
    """
    ours = {}
    salt = salt or keys.salt("placeholder")
    for match in PATTERN.finditer(content):
        text, bare, signature = match.groups()
        body = bare.decode("utf-8", "replace")
        # The signature comes first, because the body may be anything that a visitor typed.
        if compare_digest(digest(salt, body).encode(), signature):
            kind, subject, stored = body.split("!")
            ours[b"!rt" + text] = Placeholder(kind, subject, int(stored) if stored else None)
    return ours


def rendered(waiting: Mapping[bytes, Placeholder], state: PageState) -> dict[bytes, str]:
    """Returns the HTML of each placeholder; "" for the marks of `if_unread`. A template is rendered
    once a page.
    """
    page = next((text for text, entry in waiting.items() if entry.kind == PAGE), None)
    html, cached = {}, cache(new_items)
    for text, entry in waiting.items():
        shown = ""
        if entry.kind in OF_COUNTS:
            views = state.views[entry.subject]
            shown = short = str(views)
            if (
                views >= 1000
            ):  # numbers below need no formatting, which takes longer than all else here
                shown, short = numerals.exact(views), numerals.short(views)
            if entry.kind != EXACT:  # the exact number is the title
                words = in_words(views) if entry.kind == WORDS else short
                shown = format_html(
                    '<span class="readtrack-count" title="{}">{}</span>', shown, words
                )
        elif entry.kind == TEXT:
            shown = str(reading.least_seconds(entry.stored or 0))
        elif entry.kind in {DOT, UNREAD} and (items := state.unread.get(entry.subject, 0)):
            # Without numbers it is a dot.
            has_number = entry.kind == UNREAD and strategy_of(entry.subject).has_numbers
            shown = cached(items if has_number else 0)
        if page is not None and entry.kind in OF_ELEMENTS:
            name = f' data-rt="{text[KEY].decode()}"'
            named, is_element = ELEMENT.subn(rf"\g<0>{name}", shown)
            shown = (
                named if is_element else f"<span{name}{'' if shown else ' hidden'}>{shown}</span>"
            )
        html[text] = shown
    if page is not None and waiting[page].subject != ANSWER:
        places = [entry for entry in waiting.values() if entry.kind in OF_ELEMENTS]
        texts = [(entry.subject, entry.stored) for entry in waiting.values() if entry.kind == TEXT]
        token = token_of(waiting[page].subject, places, texts[0] if texts else ())
        html[page] = (
            f'{VERSIONS[bool(texts)]}" data-page="{token}'  # goes on from one attribute to the next
        )
    return html


def in_words(views: int) -> str:
    """Returns a count as text: `1 view`, `1.2k views`."""
    return ngettext("%(views)s view", "%(views)s views", views) % {"views": numerals.short(views)}


def new_items(items: int) -> str:
    """Returns the number of new items as HTML; without a number (0) it is a dot."""
    if not items:
        return render_to_string("readtrack/dot.html").strip()
    words = {"items": items, "exact": numerals.exact(items), "short": numerals.short(items)}
    return render_to_string("readtrack/unread_count.html", words).strip()


def left(placed: Placeholder | str | None, context: Any) -> SafeString:
    """Returns the placeholders that a tag leaves; filled in if the request does not come through
    the middleware.
    """
    content = str(placed or "")
    request = getattr(context, "request", None) or context.get("request")
    if not hasattr(request, "readtrack"):
        content = filled(content.encode(), partial(reader_of, context)).decode()
    return mark_safe(content)  # noqa: S308 - signed placeholders, or rendered by tags


def text(context: Any, content: str, obj: Any, selector: str = "") -> SafeString:
    """`{% readtrack_text post %}…{% endreadtrack_text %}` marks the text of the post: the script
    tells who read it.

    Belongs around the text inside of its element, once in a page that has `{% readtrack_script %}`.
    With `selector="article .body"` it may stand around more, and the end of that element is the end
    of the text.
    """
    place = Placeholder.of(TEXT, obj, words=reading.words(content))
    element = format_html(' data-text="{}"', escape(selector)) if selector else ""
    return left(
        f'{content}<span data-read="{place}"{element}></span>' if place else content, context
    )


def panel(context: Any, obj: Any) -> SafeString:
    """`{% readtrack_panel post %}` shows the numbers of the post to those who may see them, and
    nothing to others.

    Once in a page, which comes through the middleware and is no shared page.
    """
    seen = getattr(getattr(context, "request", None) or context.get("request"), "readtrack", None)
    return left(Placeholder.of(PANEL, obj) if seen and not seen.is_shared else None, context)


def read_count(obj: Any) -> int | str:
    """`{% read_count post %}` shows how often the text was really read. Each asks Redis for itself."""
    return reads(obj) if Placeholder.of(COUNT, obj) else ""


def branches(
    obj: Any, context: Any, *, unread: Callable[[], str], read: Callable[[], str]
) -> SafeString:
    """Returns both branches of `if_unread` between placeholders, or only `read` for an object
    without read state.
    """
    start = Placeholder.of(IF, obj)
    both = (
        start and f"{start}{unread()}{start._replace(kind=ELSE)}{read()}{start._replace(kind=END)}"
    )
    return left(both or read(), context)


def reader_of(context: Any) -> readers.Reader | None:
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
    """Returns the response's bytes if a template may have left placeholders in it, b"" for a
    stream, else None.
    """
    is_stream, content = response.streaming, b""
    if not is_stream:
        content = response.content
        # Before the header, because to look that up takes longer than to look through a page.
        if MARK not in content and not content.startswith(GZIP):
            return None
    elif (
        getattr(response, "file_to_stream", None) is not None
    ):  # the server may send the file by itself
        return None
    kind = response.headers.get("Content-Type", "")
    if not ("text/" in kind or "json" in kind or "xml" in kind):
        return None
    if (
        content.startswith(GZIP) and response.get("Content-Encoding") == "gzip"
    ):  # by Django's gzip_page decorator
        content = unpacked(content)
    return content if is_stream or MARK in content else None


def unpacked(content: bytes) -> bytes:
    """Returns the text of gzip's data; b"" for a text above LONGEST_TEXT, and for other data."""
    text = b""
    for _ in range(MEMBERS):  # not by the module gzip, which unpacks without a limit
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            text += member.decompress(content, LONGEST_TEXT + 1 - len(text))
        except zlib.error:  # the header is wrong
            return b""
        if len(text) > LONGEST_TEXT:
            _warn_of_length()
            return b""
        content = member.unused_data.lstrip(b"\0")  # files may be padded
        if not content:
            return text if member.eof else b""
    return b""


@cached_setting()  # once in a process
def _warn_of_length() -> None:
    logger.warning(
        "A page of more than %s bytes that the site packed by gzip stays as it is, with the"
        " placeholders of its counts and dots: pack it behind readtrack's middleware.",
        f"{LONGEST_TEXT:,}",
    )


def script(context: Any) -> str:
    """`{% readtrack_script %}` counts pages that the server does not see, and keeps counts and dots
    up to date.

    Belongs at the end of `<body>`. Needs `readtrack.urls` in the site's URLconf.
    """
    request = getattr(context, "request", None) or context.get("request")
    seen = getattr(request, "readtrack", None)
    if seen is None:
        return ""
    try:
        url = reverse("readtrack:page")
    except NoReverseMatch:
        return (
            SafeString("<!-- readtrack_script: include readtrack.urls in the URLconf -->")
            if settings.DEBUG
            else ""
        )
    seen.see(context)
    seen.has_script = True
    name = name_of(seen, path=request.path)
    place = (
        Placeholder(PAGE, name)
        if len(name) <= LONGEST_NAME
        else SafeString(f'{VERSIONS[0]}" data-page="')
    )
    # Django 6's, or django-csp's; a nonce would make each copy of a shared page another one.
    nonce = "" if seen.is_shared else context.get("csp_nonce", getattr(request, "csp_nonce", ""))
    attribute = format_html(' nonce="{}"', str(nonce)) if str(nonce) else ""
    return format_html('<script src="{}?{}"{} defer></script>', url, place, attribute)


def fill(
    response: Any, content: bytes, find_reader: FindReader | None, *, run: Run = scripts.run_all
) -> None:
    """Replaces the placeholders of the content, which is by `text_of`, in one round trip; of a
    stream part by part.
    """
    reader = cache(
        find_reader or (lambda: None)
    )  # a shared page has none: its dots are left to the script
    if response.streaming:
        stream = Stream(reader)
        replace = stream.afilled if response.is_async else stream.filled
        response.streaming_content = replace(response.streaming_content)
        return
    kind = response.get("Content-Type", "")
    # Of other charsets the letters that all have in common, and numbers in place of the others.
    charset = "utf-8" if kind.endswith("utf-8") or response.charset.lower() == "utf-8" else "ascii"
    content = filled(content, reader, is_json="json" in kind, charset=charset, run=run)
    if response.get("Content-Encoding", "") == "gzip":
        content = compress_string(
            content, max_random_bytes=100
        )  # as Django's GZipMiddleware does against BREACH
    response.content = content
    if response.has_header("Content-Length"):
        response["Content-Length"] = str(len(response.content))
    if reader.cache_info().currsize and find_reader:  # the page has dots
        keep_apart(response, is_personal=reader() is not None)


def keep_apart(response: Any, *, is_personal: bool) -> None:
    """Tells caches that each reader gets another page, and drops the view's validators, which know
    no dots.
    """
    patch_vary_headers(response, ["Cookie"])
    others = ["ETag", "Last-Modified"]
    if is_personal:
        # The view may let browsers keep the page, as cache_page does, and then they would keep its
        # dots lit as long.
        patch_cache_control(response, private=True, max_age=0)
        others += ["Expires", *visitors.headers_for_cdns(response)]
    for name in others:
        del response[name]


def filled(
    content: bytes,
    find_reader: FindReader,
    *,
    is_json: bool = False,
    charset: str = "utf-8",
    branches: list[bool] | None = None,
    salt: str = "",
    run: Run = scripts.run_all,
) -> bytes:
    """Returns the content with all placeholders replaced. `branches` are those open since earlier
    parts of a stream, and `salt` is as in `found`.
    """
    waiting, open_ = found(content, salt), [] if branches is None else branches
    if not waiting and not open_:
        return content
    counts: dict[str, int | None] = {}
    for entry in (one for one in waiting.values() if one.kind in OF_COUNTS):
        before = counts.get(entry.subject)
        counts[entry.subject] = entry.stored if before is None else max(before, entry.stored or 0)
    dots = {entry.subject for entry in waiting.values() if entry.kind in {DOT, UNREAD, IF}}
    reader = find_reader() if dots else None
    state = page_state(counts=counts, dots=list(dots), reader=reader, run=run)
    html, parts, end = rendered(waiting, state), list[bytes](), 0
    for match in PATTERN.finditer(content):
        text = match[0] + match[1]
        place = waiting.get(text)
        if place is None or match.start() < end:
            continue
        if all(open_):  # no hidden branch of `if_unread`
            shown = json.dumps(html[text])[1:-1] if is_json else html[text]
            parts += (content[end : match.start()], shown.encode(charset, "xmlcharrefreplace"))
        end = match.start() + len(text)
        if place.kind == IF:
            open_.append(state.unread.get(place.subject, 0) > 0)
        elif place.kind == ELSE:
            open_[-1:] = [not is_shown for is_shown in open_[-1:]]
        elif place.kind == END:
            del open_[-1:]
    return b"".join([*parts, content[end:]] if all(open_) else parts)


async def in_thread(work: Callable[..., Result], *args: Any, is_sensitive: bool) -> Result:
    """Returns the result of the work in Django's own thread, which closes its connections to SQL,
    or in any other.
    """

    def run() -> Result:
        try:
            return work(*args)
        finally:
            if not is_sensitive:
                connections.close_all()

    return await sync_to_async(run, thread_sensitive=is_sensitive)()


class Stream:
    """A streamed response, filled in part by part. The beginning of a placeholder waits for the
    next part.
    """

    def __init__(self, find_reader: FindReader) -> None:
        self._begun, self._branches = b"", list[bool]()
        # Parts of an asynchronous stream are looked through in a thread that knows no tenant.
        self._salt = keys.salt("placeholder")
        # In the page's context, so that it still waits for Redis no longer than the page has left.
        fill_in = partial(filled, find_reader=find_reader, branches=self._branches, salt=self._salt)
        self._fill_in = partial(copy_context().run, fill_in)

    def filled(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            if whole := self._whole(part):
                yield self._fill_in(whole)
        if self._begun:
            yield self._fill_in(self._begun)

    async def afilled(self, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for part in parts:
            whole = self._whole(part)
            if MARK in whole or (whole and self._branches):
                # A tenant is that of the connection to SQL of Django's own thread.
                is_sensitive = bool(keys.tenant_function() or MAY_QUERY.search(whole))
                whole = await in_thread(self._fill_in, whole, is_sensitive=is_sensitive)
            if whole:
                yield whole
        if self._begun:  # no placeholder, so nobody is asked
            yield self._fill_in(self._begun)

    def _whole(self, part: bytes) -> bytes:
        content = self._begun + part
        last = content[max(0, content.rfind(MARK)) :]
        begun = None if last in found(last, self._salt) else BEGUN.search(content)
        self._begun = begun[0] if begun else b""
        return content.removesuffix(self._begun)
