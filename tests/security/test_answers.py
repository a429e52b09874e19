"""What readtrack does to responses of the site: bounded work, and no cookie for everybody."""

import gzip
import logging
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from functools import cache
from random import Random
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import RequestFactory
from django.urls import path
from pytest_django import Settings

from readtrack.hits import visitors
from readtrack.middleware import ReadTrackMiddleware
from readtrack.page import contents
from readtrack.page.packing import LONGEST_TEXT, MOST_MEMBERS, unpacked
from readtrack.page.placeholders import Placeholder
from tests.site.models import Post
from tests.support import factories
from tests.support.rows import each_row

MIB = 2**20


def packed_page(request: HttpRequest) -> HttpResponse:
    place = Placeholder("exact", "site.post:1", 7)
    content = f"{place}{' ' * (LONGEST_TEXT - int(request.GET['less']))}".encode()
    return HttpResponse(gzip.compress(content), headers={"Content-Encoding": "gzip"})


def cached_page(request: HttpRequest, pk: int) -> HttpResponse:
    request.readtrack.view(Post.objects.get(pk=pk))  # type: ignore[attr-defined]
    name, _, value = request.GET["header"].partition(": ")
    return HttpResponse("page", headers={name: value})


urlpatterns = [path("packed/", packed_page), path("cached/<int:pk>/", cached_page)]


@pytest.fixture(autouse=True)
def _pages(settings: Settings) -> None:
    settings.ROOT_URLCONF = __name__


@cache
def bomb() -> bytes:
    """Returns 97 kB that hold 100 MiB."""
    return gzip.compress(b" " * 100 * MIB)


def of_zeros(size: int) -> bytes:
    return gzip.compress(bytes(size))


def test_a_small_packed_response_that_holds_very_much_allocates_little() -> None:
    response = HttpResponse(bomb(), headers={"Content-Encoding": "gzip"})
    tracemalloc.start()
    try:
        assert not contents.text_of(response)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * LONGEST_TEXT


# Made when they are needed, because to pack them takes seconds.
PACKED: dict[str, Callable[[], bytes]] = {
    "parts": lambda: of_zeros(MIB) * 200,
    "empty parts": lambda: gzip.compress(b"") * 100_000,
    "nested": lambda: gzip.compress(bomb()),
    "no end": lambda: bomb()[:-9],
    "half": lambda: bomb()[:50_000],
    "garbage behind": lambda: bomb() + b"garbage",
    "garbage": lambda: b"\x1f\x8b" + b"\xff" * 1000,
    "begun": lambda: b"\x1f\x8b",
}


@each_row("make", PACKED.values(), ids=PACKED)
def test_whatever_looks_packed_raises_nothing_and_is_looked_at_in_bounds(
    make: Callable[[], bytes],
) -> None:
    content = make()
    response = HttpResponse(content, headers={"Content-Encoding": "gzip"})
    tracemalloc.start()
    try:
        assert not contents.text_of(response)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * LONGEST_TEXT + 3 * len(content)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (gzip.compress(b"!rt!") + gzip.compress(b"more"), b"!rt!more"),
        (gzip.compress(b"!rt!") + bytes(100), b"!rt!"),
        (gzip.compress(b"!rt!") + b"garbage", None),
        (gzip.compress(b"!rt!" * 100)[:-4], None),
    ],
    ids=["two parts", "padded", "garbage behind", "broken off"],
)
def test_data_in_parts_is_unpacked_as_gzip_does_it(content: bytes, text: bytes | None) -> None:
    response = HttpResponse(content, headers={"Content-Encoding": "gzip"})
    assert contents.text_of(response) == text
    assert unpacked(content, "gzip") == text


def brotli_bomb() -> bytes:
    return bytes(pytest.importorskip("brotli").compress(b" " * 100 * MIB))


def zstd_bomb() -> bytes:
    package = pytest.importorskip("zstandard")
    return bytes(package.ZstdCompressor().compress(b" " * 100 * MIB))


BOMBS: dict[str, Callable[[], bytes]] = {
    "deflate": lambda: zlib.compress(b" " * 100 * MIB),
    "br": brotli_bomb,
    "zstd": zstd_bomb,
}


@pytest.mark.parametrize("encoding", BOMBS)
def test_other_packed_data_is_unpacked_in_bounds_too(encoding: str) -> None:
    bomb = BOMBS[encoding]()
    tracemalloc.start()
    try:
        assert unpacked(bomb, encoding) is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * LONGEST_TEXT
    for content in (b"", b"garbage", bomb[: len(bomb) // 2] if encoding == "deflate" else b"\xff"):
        response = HttpResponse(content, headers={"Content-Encoding": encoding})
        assert contents.text_of(response) is None


PLACE = f"{Placeholder('exact', 'site.post:1', 7)}".encode()


def cut(content: bytes, size: int) -> list[bytes]:
    return [content[start : start + size] for start in range(0, len(content), size)]


def streamed(chunks: list[bytes], *, encoding: str = "gzip", is_async: bool = False) -> bytes:
    """Returns what the middleware sends of a packed stream. It may take three texts of memory."""

    async def achunks() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    def page(request: HttpRequest) -> StreamingHttpResponse:
        content: Any = achunks() if is_async else chunks
        return StreamingHttpResponse(content, headers={"Content-Encoding": encoding})

    async def collected(response: Any) -> list[bytes]:
        return [chunk async for chunk in response]

    tracemalloc.start()
    try:
        request: Any = RequestFactory().get("/")
        response: Any = ReadTrackMiddleware(page)(request)
        sent = async_to_sync(collected)(response) if is_async else [*response]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * LONGEST_TEXT + 3 * sum(map(len, chunks))
    return b"".join(sent)


BEYOND: dict[str, list[bytes]] = {
    "one chunk": [of_zeros(50 * MIB)],
    "small chunks": cut(gzip.compress(PLACE + bytes(50 * MIB)), 4096),
    "many members": [gzip.compress(b"x") * 1000],
    "many members in chunks": cut(gzip.compress(b"x") * 1000, 100_000),
    "no end": [of_zeros(50 * MIB)[:40_000]],
    "a head without an end": [b"\x1f\x8b\x08\x08" + b"x" * MIB] * 11,
    "no data of gzip": [b"text ", PLACE.replace(b"!", b"?")],
}


@pytest.mark.django_db
@each_row("name", [*BEYOND])
def test_a_packed_stream_beyond_the_limits_is_passed_on_as_it_is(name: str) -> None:
    assert streamed(BEYOND[name]) == b"".join(BEYOND[name])


@pytest.mark.django_db
def test_a_packed_stream_of_an_asynchronous_view_is_passed_on_as_it_is() -> None:
    chunks = BEYOND["small chunks"]
    assert streamed(chunks, is_async=True) == b"".join(chunks)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "end",
    [
        lambda page: gzip.compress(page + PLACE + b" " * 15 * MIB),
        lambda page: gzip.compress(page) + gzip.compress(PLACE) * 100,
        lambda page: gzip.compress(page) + of_zeros(15 * MIB) + gzip.compress(b"more"),
    ],
    ids=["in the same member", "many members", "another member"],
)
def test_a_stream_that_has_begun_ends_as_it_is_beyond_the_limits(
    end: Callable[[bytes], bytes],
) -> None:
    page = PLACE + Random(1).randbytes(100_000)
    content = end(page)
    text = gzip.decompress(streamed(cut(content, 4096)))
    assert text.startswith(b"7")
    # What comes in the chunk that reaches the limits is filled in or not.
    assert text.replace(PLACE, b"7") == gzip.decompress(content).replace(PLACE, b"7")


@pytest.mark.django_db
def test_a_stream_of_many_parts_is_filled_in_within_the_limits() -> None:
    parts = b"".join(gzip.compress(b"<%s>" % PLACE) + bytes(7) for _ in range(MOST_MEMBERS))
    for size in (7, 100, len(parts)):
        assert gzip.decompress(streamed(cut(parts, size))) == b"<7>" * MOST_MEMBERS
    repetitive = gzip.compress(PLACE + b" " * 1_000_000)  # waits, as a bomb would
    assert gzip.decompress(streamed(cut(repetitive, 100))) == b"7" + b" " * 1_000_000


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "x-own", "gzip, br"])
def test_a_stream_that_is_packed_in_another_way_is_not_looked_at(encoding: str) -> None:
    chunks = [b"\0!r", PLACE, b"!", b"!rt!count!site.post:1!5!AAAAAAAAAAAAAAAA!"]
    assert streamed(chunks, encoding=encoding) == b"".join(chunks)
    response = StreamingHttpResponse(
        chunks, headers={"Content-Encoding": encoding, "Content-Length": "9"}
    )
    assert contents.text_of(response) is None


@pytest.mark.django_db
def test_a_page_that_is_too_long_stays_as_it_is_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture, settings: Settings
) -> None:
    settings.READTRACK = {}  # forgets that the log said it
    browser = factories.browser()
    short = gzip.decompress(browser.get("/packed/", {"less": 1000}).content)
    assert short.startswith(b"7 ")
    for _ in range(2):
        long = gzip.decompress(browser.get("/packed/", {"less": 0}).content)
        assert long.startswith(b"!rt!exact!site.post:1!7!")
    records = [one for one in caplog.records if one.name == "readtrack"]
    assert [one.levelno for one in records] == [logging.WARNING]
    assert "10,485,760 bytes" in records[0].getMessage()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("header", "has_cookie"),
    [
        ("CDN-Cache-Control: max-age=60", False),
        ("cdn-cache-control: public", False),
        ("Cloudflare-CDN-Cache-Control: max-age=60", False),
        ("Vercel-CDN-Cache-Control: s-maxage=60", False),
        ("Surrogate-Control: max-age=60", False),
        ("Cache-Control: public, max-age=60", False),
        ("CDN-Cache-Control: private", True),
        ("Surrogate-Control: no-store", True),
        ("CDN-Cache-Control: ", True),
        ("Cache-Control: max-age=60", True),
        ("X-Cache: hit", True),
    ],
)
def test_a_page_that_a_cdn_may_keep_sets_no_cookie(header: str, has_cookie: bool) -> None:
    response = factories.browser().get(f"/cached/{factories.post().pk}/", {"header": header})
    assert ("anon_id" in response.cookies) is has_cookie


def test_headers_for_cdns_are_found_without_djangos_own_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visitors, "HEADERS_ATTRIBUTE", "another name")
    response = HttpResponse(headers={"Netlify-CDN-Cache-Control": "max-age=60"})
    assert visitors.may_be_shared(response)
    assert not visitors.may_be_shared(HttpResponse(headers={"Vary": "Cookie"}))


def test_a_readers_page_says_nothing_to_the_cdn_of_any_vendor(rf: RequestFactory) -> None:
    names = ["CDN-Cache-Control", "Cloudflare-CDN-Cache-Control", "Surrogate-Control", "X-Own"]
    response = HttpResponse("page", headers=dict.fromkeys(names, "max-age=60"))
    contents.keep_apart(response, is_personal=True)
    assert [name for name in names if name in response] == ["X-Own"]


def test_packed_data_that_is_no_text_stays_as_it_is() -> None:
    packed = HttpResponse(gzip.compress(b"!rt!"), content_type="application/zip")
    assert contents.text_of(packed) is None
