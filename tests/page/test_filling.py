"""Finished pages are filled in: counts and dots together, for this reader, and only in our
placeholders.
"""

import gzip
import json
import tempfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from io import BytesIO
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.files.base import ContentFile
from django.db.backends.signals import connection_created
from django.http import FileResponse, HttpResponse, StreamingHttpResponse
from django.template import engines
from django.test import AsyncClient
from django.urls import path
from django.utils.html import escapejs
from django.utils.translation import override
from django.views.decorators.cache import cache_page
from django.views.decorators.gzip import gzip_page
from redis import Redis

from readtrack import tracker
from readtrack.hits.stages import READS
from readtrack.hits.visitors import Visitor
from readtrack.middleware import ReadTrackMiddleware
from readtrack.page import contents, filling
from readtrack.page.placeholders import COUNT, DOT, Placeholder
from readtrack.subjects import subject_of
from tests.site.models import Category, Post
from tests.site.urls import urlpatterns
from tests.support import factories
from tests.support.wire import Wire

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]
NUMBERS = pytest.mark.needs_parts("numbers")


def template(source: str, request: Any, **context: Any) -> str:
    return str(
        engines["django"]
        .from_string("{% load readtrack cache %}" + source)
        .render(context, request)
    )


def comment(request: Any) -> HttpResponse:
    return HttpResponse(template("{{ text }}", request, text=request.GET["text"]))


def fragment(request: Any) -> HttpResponse:
    source = "{% cache 60 list %}{% for p in posts %}{% view_count p exact %}{% endfor %}{% unread_dot c %}{% endcache %}"
    return HttpResponse(
        template(source, request, posts=Post.objects.all(), c=Category.objects.first())
    )


def sized(request: Any) -> HttpResponse:
    response = HttpResponse(
        template("{% view_count post exact %}", request, post=Post.objects.get())
    )
    response["Content-Length"] = str(len(response.content))
    return response


def download(request: Any) -> FileResponse:
    """A file that a template made: in memory, in parts, or on the disk."""
    text = template("{% view_count post exact %} views", request, post=Post.objects.get()).encode()
    if request.GET["of"] == "disk":
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the response closes it
        file.write(text)
        file.seek(0)
        return FileResponse(file, content_type="text/plain")
    content: Any = {
        "memory": BytesIO(text),
        "memory, from its middle": BytesIO(b"head" + text),
        "content file": ContentFile(text),
        "parts": [text[:5], text[5:]],
    }[request.GET["of"]]
    if "middle" in request.GET["of"]:
        content.seek(4)
    return FileResponse(content, content_type=request.GET.get("type", "application/octet-stream"))


def typed(request: Any) -> HttpResponse:
    """A text of any type, in its charset."""
    response = HttpResponse(content_type=request.GET["type"])
    text = template("a{% view_count post exact %}b", request, post=Post.objects.get())
    response.content = text.encode(response.charset)
    return response


def packed_by(request: Any) -> HttpResponse:
    """A page as a site's own decorator packs it."""
    text = template("a{% view_count post exact %}b", request, post=Post.objects.get())
    how = request.GET["how"]
    return HttpResponse(
        PACKERS[how](text.encode()), headers={"Content-Encoding": how.partition(" ")[0]}
    )


@gzip_page
def packed_stream(request: Any) -> StreamingHttpResponse:
    text = template("a{% view_count post exact %}b", request, post=Post.objects.get())
    return StreamingHttpResponse([text[:9], text[9:]])


def raw_deflate(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(text) + packer.flush()


def by_package(name: str, text: bytes) -> bytes:
    package = pytest.importorskip(name)
    packed: bytes = (
        package.compress(text) if name == "brotli" else package.ZstdCompressor().compress(text)
    )
    return packed


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "gzip in two parts": lambda text: gzip.compress(text[:5]) + gzip.compress(text[5:]),
    "deflate": zlib.compress,
    "deflate without a head": raw_deflate,
    "br": partial(by_package, "brotli"),
    "zstd": partial(by_package, "zstandard"),
}


@cache_page(600, cache="pages")
def kept(request: Any) -> HttpResponse:
    return HttpResponse(template("{% unread_dot c %}", request, c=Category.objects.get()))


@gzip_page
def packed(request: Any) -> HttpResponse:
    source = (
        "{% unread_dot c %}{% view_count post exact %}" + "." * 500
    )  # shorter pages are not worth packing
    return HttpResponse(
        template(source, request, post=Post.objects.get(), c=Category.objects.get())
    )


def mistaken(request: Any) -> HttpResponse:
    return HttpResponse(
        request.GET["begins"].encode("latin-1") + b"as it is", headers={"Content-Encoding": "gzip"}
    )


def dots(request: Any) -> StreamingHttpResponse:
    def parts() -> Iterator[str]:
        yield template("{% unread_dot c %}", request, c=Category.objects.get())

    return StreamingHttpResponse(parts())


async def astream(request: Any) -> StreamingHttpResponse:
    text = template("{% view_count post exact %}", request, post=await Post.objects.aget())

    async def parts() -> AsyncIterator[str]:
        yield "views: "
        yield text

    return StreamingHttpResponse(parts())


def counted_json(request: Any) -> HttpResponse:
    html = template("{% view_count post %}", request, post=Post.objects.get())
    return HttpResponse(json.dumps({"html": html}), content_type="application/vnd.api+json")


def named(request: Any) -> HttpResponse:
    return HttpResponse(
        template("{% unread_dot c as is_new %}{{ is_new }}", request, c=Category.objects.get())
    )


urlpatterns = [
    *urlpatterns,
    *(
        path(f"{page.__name__}/", page)
        for page in (
            comment,
            fragment,
            typed,
            packed_by,
            packed_stream,
            named,
            sized,
            download,
            kept,
            packed,
            mistaken,
            dots,
            astream,
            counted_json,
        )
    ),
]


@pytest.mark.parametrize("kind", ["count", "exact", "dot", "if", "end", "page", "panel"])
def test_a_placeholder_that_a_visitor_types_is_removed(kind: str) -> None:
    forged = f"a!rt!{kind}!site.post:1!5!AAAAAAAAAAAAAAAA!b"
    assert factories.browser(factories.user()).get("/comment/", {"text": forged}).text == "ab"


@pytest.mark.parametrize(
    "theirs",
    [
        Placeholder(COUNT, "site.post:2", 5),
        Placeholder(COUNT, "site.post:1", 99999),
        Placeholder("exact", "site.post:1", 5),
    ],
)
def test_a_placeholder_of_ours_that_a_visitor_changes_is_removed(theirs: Placeholder) -> None:
    ours = Placeholder(COUNT, "site.post:1", 5)
    signature = str(ours).split("!")[-2]
    changed = str(theirs).replace(str(theirs).split("!")[-2], signature)
    assert factories.browser().get("/comment/", {"text": f"a{changed}b"}).text == "ab"


def test_text_and_placeholders_may_stand_side_by_side() -> None:
    post, forged = factories.post(view_count=3), "!rt!count!site.post:1!5!AAAAAAAAAAAAAAAA!"
    content = f"{forged}{Placeholder(COUNT, f'site.post:{post.pk}', 3)}!rt!é".encode()
    text = filling.filled(content, lambda: None).decode()
    assert text.startswith("<span")
    assert text.endswith("!rt!é")
    assert ">3<" in text


@pytest.mark.parametrize(
    "between",
    ['"><i>', "' x='", '","b":"', "</b>", "a b", "(", "\\", "&amp;", "\n", ";"],
)
def test_what_two_visitors_type_never_joins_into_a_text_that_is_removed(between: str) -> None:
    html = f"!rt!count!{between}!5!AAAAAAAAAAAAAAAA!".encode()
    assert filling.filled(html, lambda: None) == html


def test_a_text_that_escapejs_has_changed_is_removed() -> None:
    changed = escapejs("!rt!count!site.post:1!5!AAAA-AAAAAA-AAAA!")
    assert changed != "!rt!count!site.post:1!5!AAAA-AAAAAA-AAAA!"
    assert filling.filled(f"a{changed}b".encode(), lambda: None) == b"ab"


@pytest.mark.parametrize(
    "typed", ["!rt!count!a!1!AAAAAAAAAAAAAAAA", "!rt!if!a!0!AAAAAAAAAAAAAAAA", "!rt", "!"]
)
def test_text_of_a_visitor_right_before_a_placeholder_does_not_damage_it(typed: str) -> None:
    ours = str(Placeholder("exact", "site.post:1", 3))
    assert (
        filling.filled(f"{typed}{ours}{ours[1:]}".encode(), lambda: None).decode()
        == f"{typed}3{ours[1:]}"
    )
    assert filling.filled(f"{typed}{ours}{ours}".encode(), lambda: None).decode() == f"{typed}33"


def test_a_fragment_out_of_a_cache_shows_the_live_count_and_this_readers_dot(redis: Redis) -> None:
    post, category = factories.post(), factories.category()
    reader, other = factories.user(), factories.user()
    assert factories.browser(reader).get("/fragment/").text.startswith("0<span")
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    tracker.mark_read(other, [category])
    assert factories.browser(other).get("/fragment/").text == "1"
    assert factories.browser(reader).get("/fragment/").text.startswith("1<span")
    assert factories.browser().get("/fragment/").text == "1"


@pytest.mark.needs_parts("script")
@pytest.mark.parametrize(
    "tag",
    [
        pytest.param("{% read_count post %}", marks=NUMBERS),
        "{% visitor_count post %}",
        pytest.param("{% views_in post days=1 %}", marks=NUMBERS),
        "{% view_count post as views %}{{ views }}",
    ],
)
def test_a_tag_that_asks_at_once_keeps_its_value_in_a_fragment(
    rf: Any, redis: Redis, tag: str
) -> None:
    from readtrack.script.reading import Reading

    post, visitor = factories.post(), Visitor("a")
    cached = f"{{% cache 60 once tag %}}{tag}{{% endcache %}}"
    assert template(cached, rf.get("/"), tag=tag, post=post) == "0"
    subject = f"site.post:{post.pk}"
    tracker.record(factories.hit(subject, visitor=visitor))
    tracker.record(factories.hit(visitor=visitor, part_record=Reading(subject, 5, 60, stage=READS)))
    assert template(tag, rf.get("/"), post=post) == "1"
    assert template(cached, rf.get("/"), tag=tag, post=post) == "0"


def test_the_caches_of_a_whole_site_store_counts_but_no_readers_dots(settings: Any) -> None:
    settings.CACHES = {
        **settings.CACHES,
        "site": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    }
    settings.CACHE_MIDDLEWARE_ALIAS = "site"
    settings.MIDDLEWARE = [
        "django.middleware.cache.UpdateCacheMiddleware",
        *settings.MIDDLEWARE,
        "django.middleware.cache.FetchFromCacheMiddleware",
    ]
    post, category, user = factories.post(), factories.category(), factories.user()
    for reader in (user, None):
        factories.browser(reader).get("/fragment/")
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    assert factories.browser(user).get("/fragment/").text.startswith("1<span")
    tracker.mark_read(user, [category])
    assert factories.browser(user).get("/fragment/").text == "1"
    assert factories.browser().get("/fragment/").text == "0"


def test_json_stays_valid(redis: Redis) -> None:
    post = factories.post()
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    html = '<span class="readtrack-count" title="1">1</span>'
    assert [text.strip() for text in factories.browser().get("/json/").json()["posts"]] == [html]
    assert json.loads(factories.browser().get("/counted_json/").content) == {"html": html}


def test_a_page_that_its_view_packed_is_filled_in(redis: Redis) -> None:
    post, category, user = factories.post(), factories.category(), factories.user()
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    tracker.mark_unread([category])
    response = factories.browser(user).get("/packed/", headers={"Accept-Encoding": "gzip"})
    text = gzip.decompress(response.content).decode()
    assert text.startswith("<span")
    assert text.endswith("</span>1" + "." * 500)
    assert response["Content-Length"] == str(len(response.content))


@pytest.mark.parametrize("begins", ["", "\x1f\x8b"])
def test_a_response_with_a_wrong_content_encoding_stays_as_it_is(begins: str) -> None:
    response = factories.browser(factories.user()).get("/mistaken/", {"begins": begins})
    assert response.content == begins.encode("latin-1") + b"as it is"


def test_a_response_with_a_content_length_gets_the_new_length() -> None:
    factories.post(view_count=1234)
    response = factories.browser().get("/sized/")
    assert response.text == "1,234"
    assert response["Content-Length"] == "5"


def test_a_streamed_page_is_filled_in_part_by_part() -> None:
    for count in (1, 2, 3):
        factories.post(view_count=count)
    text = factories.browser().get("/stream/").getvalue().decode()
    assert [f">{count}<" in text for count in (1, 2, 3)] == [True] * 3
    assert "!rt!" not in text


def test_a_streamed_page_has_this_readers_dots() -> None:
    category, user = factories.category(), factories.user()
    assert b"readtrack-dot" not in factories.browser().get("/dots/").getvalue()
    assert b"readtrack-dot" in factories.browser(user).get("/dots/").getvalue()
    tracker.mark_read(user, [category])
    assert b"readtrack-dot" not in factories.browser(user).get("/dots/").getvalue()


def test_an_async_stream_is_filled_in_too() -> None:
    factories.post(view_count=1234)
    response = factories.fetch_async(AsyncClient(), "/astream/")

    async def read() -> bytes:
        return b"".join([part async for part in response.streaming_content])

    assert async_to_sync(read)() == b"views: 1,234"


@pytest.mark.parametrize("page", ["/posts/{}/async/", "/astream/"])
def test_no_thread_of_an_async_page_keeps_a_connection_to_sql(page: str) -> None:
    post, made = factories.post(view_count=5), list[Any]()
    tracker.record(
        factories.hit(subject_of(post))
    )  # SQL tells whether its count is part of this total

    async def fetch() -> list[bool]:
        response: Any = await AsyncClient().get(page.format(post.pk))
        shown = (
            b"".join([part async for part in response]) if response.streaming else response.content
        )
        assert b"6" in shown
        return [one.connection is None for one in made]  # while the threads live

    def note(*, connection: Any, **kwargs: Any) -> None:
        made.append(connection)

    connection_created.connect(note)
    try:
        assert async_to_sync(fetch)() == [True]
    finally:
        connection_created.disconnect(note)


@pytest.mark.parametrize(
    ("charset", "separator"), [("iso-8859-1", "&#160;"), ("UTF-8", "\xa0"), ("ascii", "&#160;")]
)
def test_a_page_in_another_charset_is_filled_in_too(charset: str, separator: str, rf: Any) -> None:
    text = f"a{Placeholder('exact', 'site.post:1', 1234)}"

    def page(request: Any) -> HttpResponse:
        return HttpResponse(text, content_type=f"text/html; charset={charset}")

    with override("fr"):
        response: Any = ReadTrackMiddleware(page)(rf.get("/"))
    assert response.content.decode(charset) == f"a1{separator}234"


def test_a_page_in_an_unknown_charset_keeps_every_byte_outside_our_placeholders(rf: Any) -> None:
    def page(request: Any) -> HttpResponse:
        content = f"é{Placeholder('exact', 'site.post:1', 5)}".encode()
        return HttpResponse(content, content_type="text/html; charset=klingon")

    response: Any = ReadTrackMiddleware(page)(rf.get("/"))
    assert response.content == "é5".encode()


@pytest.mark.parametrize("content_type", ["text/csv", "text/html"])
def test_a_file_is_left_for_the_server_to_send(content_type: str, rf: Any) -> None:
    def page(request: Any) -> FileResponse:
        return FileResponse(BytesIO(b"a,b"), content_type=content_type)

    response: Any = ReadTrackMiddleware(page)(rf.get("/"))
    assert response.file_to_stream is not None
    assert contents.text_of(response) is None
    response.close()


def test_a_page_with_dots_may_not_be_cached_for_all_readers_nor_kept_by_a_browser(rf: Any) -> None:
    factories.category()
    headers = {
        "Cache-Control": "public, max-age=60",
        "Expires": "Fri, 20 Nov 2036 12:00:00 GMT",
        "CDN-Cache-Control": "max-age=600",
        "Surrogate-Control": "max-age=600",
        "ETag": '"1"',
        "Last-Modified": "Fri, 20 Nov 2026 12:00:00 GMT",
    }

    def page(request: Any) -> HttpResponse:
        return HttpResponse(
            template("{% unread_dot c %}", request, c=Category.objects.get()), headers=headers
        )

    request = rf.get("/")
    anonymous: Any = ReadTrackMiddleware(page)(request)
    assert (anonymous["Vary"], anonymous["Cache-Control"]) == ("Cookie", "public, max-age=60")
    assert "ETag" not in anonymous
    request.user = factories.user()
    response: Any = ReadTrackMiddleware(page)(request)
    assert response["Vary"] == "Cookie"
    assert set(response["Cache-Control"].split(", ")) == {"private", "max-age=0"}
    assert set(response.headers) == {"Content-Type", "Vary", "Cache-Control"}


def test_a_view_with_cache_page_keeps_dots_live_in_the_browser(settings: Any) -> None:
    settings.CACHES = {
        **settings.CACHES,
        "pages": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    }
    category, user = factories.category(), factories.user()
    browser = factories.browser(user)
    for _ in range(2):
        response = browser.get("/kept/")
        assert "readtrack-dot" in response.text
        assert "max-age=0" in response["Cache-Control"]
        assert "Expires" not in response
    tracker.mark_read(user, [category])
    assert "readtrack-dot" not in browser.get("/kept/").text
    assert "max-age=600" in factories.browser().get("/kept/")["Cache-Control"]


def test_a_dot_under_a_name_is_each_readers_own_too() -> None:
    factories.category()
    response = factories.browser().get("/named/")
    assert (response.text, response["Vary"]) == ("False", "Cookie")


def test_counts_alone_leave_caches_alone(rf: Any) -> None:
    headers = {"Cache-Control": "public, max-age=60", "ETag": '"1"'}

    def page(request: Any) -> HttpResponse:
        return HttpResponse(f"{Placeholder('exact', 'site.post:1', 5)} !rt!dot!", headers=headers)

    response: Any = ReadTrackMiddleware(page)(rf.get("/"))
    assert response.text == "5 !rt!dot!"
    assert {name: response[name] for name in headers} == headers
    assert "Vary" not in response


@pytest.mark.parametrize("of", ["memory", "memory, from its middle", "content file", "parts"])
@pytest.mark.parametrize("content_type", ["text/html", "application/octet-stream"])
def test_a_file_that_a_template_made_is_filled_in(of: str, content_type: str) -> None:
    factories.post(view_count=1234)
    response = factories.browser().get("/download/", {"of": of, "type": content_type})
    assert response.getvalue() == b"1,234 views"
    assert response.get("Content-Length", "11") == "11"


def test_a_file_on_the_disk_is_none_of_ours() -> None:
    factories.post()
    response = factories.browser().get("/download/", {"of": "disk"})
    assert response.getvalue().startswith(b"!rt!exact!")


@pytest.mark.parametrize(
    "content_type",
    [
        "application/javascript",
        "application/yaml",
        "application/x-tex",
        "application/rtf",
        "text/csv",
        "image/svg+xml",
        "multipart/mixed; boundary=b",
        "text/html; charset=utf-16",
        "text/plain; charset=UTF-16-BE",
        "text/html; charset=utf-32-le",
    ],
)
def test_a_page_of_any_type_is_filled_in(content_type: str) -> None:
    factories.post(view_count=1234)
    response = factories.browser().get("/typed/", {"type": content_type})
    assert response.content.decode(response.charset) == "a1,234b"


def test_a_file_whose_bytes_begin_like_a_wide_charset_stays_as_it_is(rf: Any) -> None:
    icon = b"\0\0\1\0" + "!rt!".encode("utf-16-le")

    def page(request: Any) -> HttpResponse:
        return HttpResponse(icon, content_type=request.GET["type"])

    for content_type in ("image/x-icon", "text/html; charset=utf-16-le", "text/html; charset=x"):
        response: Any = ReadTrackMiddleware(page)(rf.get("/", {"type": content_type}))
        assert response.content == icon


@pytest.mark.parametrize("how", PACKERS)
@pytest.mark.parametrize("accepted", ["br", "gzip, deflate, br, zstd"])
def test_a_page_that_a_decorator_packed_is_filled_in(how: str, accepted: str) -> None:
    factories.post(view_count=1234)
    headers = {"Accept-Encoding": accepted}
    response = factories.browser().get("/packed_by/", {"how": how}, headers=headers)
    content = response.content
    if response.has_header("Content-Encoding"):
        assert response["Content-Encoding"] == "gzip"
        assert "gzip" in accepted or how.startswith("gzip")
        content = gzip.decompress(content)
    assert content == b"a1,234b"


def test_a_stream_that_a_decorator_packed_is_filled_in() -> None:
    factories.post(view_count=1234)
    response = factories.browser().get("/packed_stream/", headers={"Accept-Encoding": "gzip"})
    assert response["Content-Encoding"] == "gzip"
    assert gzip.decompress(response.getvalue()) == b"a1,234b"


@pytest.mark.parametrize("begins", [b"", b"\x1f\x8b"])
def test_a_stream_with_a_wrong_content_encoding_is_no_error(begins: bytes, rf: Any) -> None:
    def page(request: Any) -> StreamingHttpResponse:
        parts = [begins, b"as it is"]
        return StreamingHttpResponse(parts, headers={"Content-Encoding": "gzip"})

    response: Any = ReadTrackMiddleware(page)(rf.get("/"))
    assert response.getvalue().endswith(b"as it is")


def test_a_page_that_cannot_be_filled_in_says_so_with_debug(
    rf: Any, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    post = factories.post()

    def page(request: Any) -> HttpResponse:
        text = template("{% view_count post exact %}", request, post=post)
        if "mail" in request.GET:
            return HttpResponse("sent")
        if "truncated" in request.GET:
            return HttpResponse(text[:20])
        return HttpResponse(text[::-1], headers={"Content-Encoding": "x-own"})

    for query in ("", "?mail", "?truncated"):
        caplog.clear()
        assert "X-Readtrack" not in ReadTrackMiddleware(page)(rf.get(f"/{query}"))  # type: ignore[operator]
        settings.DEBUG = True
        response: Any = ReadTrackMiddleware(page)(rf.get(f"/{query}"))
        assert response["X-Readtrack"] == "not filled in"
        assert "rendered with the request" in caplog.text
        settings.DEBUG = False


def test_a_page_without_placeholders_does_not_ask_redis(wire: Wire) -> None:
    with wire.counted() as trips:
        assert filling.filled(b"nothing !rt! here", lambda: None) == b"nothing !rt! here"
    assert trips == [0]


def test_a_page_with_thousands_of_counts_and_dots_is_one_exchange(wire: Wire) -> None:
    user = factories.user()
    content = "".join(
        f"{Placeholder(kind, f'site.x:{n}')}\n" for n in range(1, 2501) for kind in (COUNT, DOT)
    )
    filling.filled(content.encode(), lambda: user.pk)  # the server learns the scripts
    with wire.counted() as trips:
        filled = filling.filled(content.encode(), lambda: user.pk)
    # It is sent at once, but so much of it that the first answers may come before its end has gone.
    assert trips[0] < 25
    assert filled.count(b"readtrack-count") == filled.count(b"readtrack-dot__text") == 2500
