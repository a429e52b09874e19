"""Processor time that the middleware adds to a request, as multiples of what one redis-py INCR in
the view adds.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import count, cycle
from statistics import median
from time import thread_time
from typing import Any

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory, override_settings
from django.urls import path
from redis import Redis

from readtrack import buckets, views
from readtrack.hits import visitors
from readtrack.hits.hit import Hit, refusal
from readtrack.page import filling
from readtrack.page.shown import token_of
from readtrack.store import scripts
from readtrack.store.connection import connect
from readtrack.store.counting import count_views
from tests.benchmarks.measuring import table
from tests.benchmarks.serving import SECONDS, requests_a_second
from tests.site.models import Post

EACH = 60  # requests of a kind in a round
ROUNDS = 61
BODY = b"<!doctype html><title>Post</title>"
POSTS = [Post(pk=pk) for pk in range(1, 1001)]
# A page that nginx passes on from Chrome.
BROWSER = {
    "REMOTE_ADDR": "127.0.0.1",
    "HTTP_HOST": "news.example",
    "HTTP_X_FORWARDED_PROTO": "https",
    "HTTP_SEC_CH_UA": '"Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"',
    "HTTP_SEC_CH_UA_MOBILE": "?0",
    "HTTP_SEC_CH_UA_PLATFORM": '"Windows"',
    "HTTP_UPGRADE_INSECURE_REQUESTS": "1",
    "HTTP_USER_AGENT": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/142.0.0.0 Safari/537.36",
    "HTTP_ACCEPT": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "HTTP_SEC_FETCH_SITE": "none",
    "HTTP_SEC_FETCH_MODE": "navigate",
    "HTTP_SEC_FETCH_USER": "?1",
    "HTTP_SEC_FETCH_DEST": "document",
    "HTTP_ACCEPT_ENCODING": "gzip, deflate, br, zstd",
    "HTTP_ACCEPT_LANGUAGE": "de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7",
}
ROBOT = {
    "REMOTE_ADDR": "127.0.0.1",
    "HTTP_HOST": "news.example",
    "HTTP_USER_AGENT": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "HTTP_ACCEPT": "text/html,application/xhtml+xml,application/signed-exchange;v=b3,application/xml;q=0.9,*/*;q=0.8",
    "HTTP_ACCEPT_ENCODING": "gzip, deflate, br",
}
UNTRACKED = [name for name in settings.MIDDLEWARE if not name.startswith("readtrack.")]

_numbers = count()
_posts = count()
_naive = Redis.from_url(str(settings.CACHES["default"]["LOCATION"]))


def plain(request: HttpRequest) -> HttpResponse:
    """An empty page."""
    return HttpResponse(
        BODY, headers={"Content-Length": str(len(BODY))}
    )  # as CommonMiddleware adds it


def post(request: Any) -> HttpResponse:
    """An empty page of a post."""
    shown = POSTS[next(_posts) % len(POSTS)]
    if hasattr(request, "readtrack"):
        request.readtrack.view(shown)
    return plain(request)


def naive(request: HttpRequest) -> HttpResponse:
    """An empty page that counts by itself."""
    _naive.incr("naive")
    return plain(request)


urlpatterns = [
    path("plain/", plain),
    path("post/", post),
    path("naive/", naive),
    path("script/", views.page),
]

Environ = dict[str, Any]


def main() -> None:
    """Prints three tables: requests in this process, what their parts cost, and requests a second
    of a server.
    """
    connect().flushdb()
    rows = [("", "median", "ratio", "at most")]
    for (name, (spent, ratio)), most in zip(
        measured().items(), ("", "2.5 ×", "2.0 ×", "0.35 ×", "0.12 ×", ""), strict=True
    ):
        rows.append((name, f"{spent:.1f} µs", f"{ratio:.2f} ×", most))
    table("Processor time of a request, beyond the same page without the middleware", rows)
    table("Parts of it, each in a loop of its own", [("", "median"), *parts()])
    rows = [("", "requests a second", "ratio", "at least")]
    for name, speed, ratio, least in requests_a_second(
        cycle([cookie().encode() for _ in range(20_000)])
    ):
        rows.append((name, f"{speed:,.0f}", f"{ratio:.2f}", least))
    table(f"Granian with one worker, an empty page ({SECONDS} s a run)", rows)


def measured() -> dict[str, tuple[float, float]]:
    """Returns the CPU time (µs) that each kind of request adds, and its ratio to that of the INCR;
    medians.
    """
    with override_settings(ROOT_URLCONF=__name__):
        with override_settings(MIDDLEWARE=UNTRACKED):
            untracked = WSGIHandler()
        tracked = get_wsgi_application()
        kinds: dict[str, tuple[WSGIHandler, str, Callable[[], Environ]]] = {
            "one INCR by redis-py": (untracked, "naive", newcomer),
            "counted view, new visitor": (tracked, "post", newcomer),
            "counted view, cookie": (tracked, "post", regular),
            "skipped robot": (
                tracked,
                "post",
                lambda: {**ROBOT, "HTTP_X_FORWARDED_FOR": "66.249.66.1"},
            ),
            "page without a subject": (tracked, "plain", newcomer),
            "script of a page that counted": (tracked, "script", regular),
        }
        times: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(ROUNDS):
            for name, (handler, page, visitor) in kinds.items():
                bare = spent(untracked, "plain" if page in {"naive", "script"} else page, visitor)
                times[name].append(spent(handler, page, visitor) - bare)
    base = times["one INCR by redis-py"][1:]  # the first round only warms up
    return {
        name: (
            median(each[1:]),
            median(one / other for one, other in zip(each[1:], base, strict=True)),
        )
        for name, each in times.items()
    }


def spent(handler: WSGIHandler, page: str, visitor: Callable[[], Environ]) -> float:
    """Returns the CPU time (µs) of one request."""
    environs = [environ(page, visitor()) for _ in range(EACH)]
    start = thread_time()
    for one in environs:
        response = handler(one, _start)
        b"".join(response)
        response.close()
    return (thread_time() - start) / EACH * 1_000_000


def _start(status: str, headers: object, *_: object) -> Any:
    if status != "200 OK":
        raise RuntimeError(f"The page answered {status}.")


def environ(page: str, visitor: Environ) -> Environ:
    """Returns a WSGI environ of the page, or of what its script tells after the page itself
    counted.
    """
    if page == "script":
        list(get_wsgi_application()(environ("post", visitor), _start))
        shown = POSTS[(next(_posts) - 1) % len(POSTS)]
        token = token_of(f"/post/|0|0|site.post:{shown.pk}|", ())
        told = RequestFactory().post("/script/", f"{token}\n", content_type="text/plain").environ
        return {**told, **visitor, "HTTP_SEC_FETCH_SITE": "same-origin"}
    return {**RequestFactory().get(f"/{page}/").environ, **visitor}


def newcomer() -> Environ:
    """Returns the headers of a visitor whom nobody has seen before."""
    number = next(_numbers)
    return {
        **BROWSER,
        "HTTP_X_FORWARDED_FOR": f"93.{number >> 16}.{number >> 8 & 255}.{number & 255}",
    }


def regular() -> Environ:
    """Returns the headers of a visitor with a cookie, whom this process has not seen yet."""
    return {**newcomer(), "HTTP_COOKIE": f"theme=dark; {cookie()}"}


def cookie() -> str:
    """Returns the cookie of a visitor."""
    return f"anon_id={visitors.visitor(HttpRequest(), None).new_cookie}"


def parts() -> Iterable[tuple[str, str]]:
    """Yields the name of each part and the CPU time (µs) that one of it takes."""
    requests = [
        RequestFactory().get("/", **visitor())
        for visitor in (newcomer, regular)
        for _ in range(EACH)
    ]
    new, known = requests[:EACH], requests[EACH:]
    page = plain(new[0])
    hits = [
        Hit(visitors.Visitor(f"v{n:015}"), buckets.now(), views=("site.post:1",))
        for n in range(EACH)
    ]
    signed = visitors.Visitor("", new_cookie="visitor-00000000000000")
    works: Mapping[str, tuple[Callable[[Any], object], list[Any]]] = {
        "one INCR by redis-py": (lambda request: _naive.incr("naive"), new),
        "judging": (lambda request: refusal(request.method, page.status_code, request.META), new),
        "the visitor, new": (lambda request: visitors.visitor(request, None), new),
        "the visitor, by a cookie": (lambda request: visitors.visitor(request, None), known),
        "the command": (count_views, hits),
        "the command and its round trip": (
            lambda hit: scripts.run(count_views(hit)),
            hits,
        ),
        "a cookie": (lambda request: visitors.set_cookie(request, HttpResponse(), signed), new),
        "finding nothing to fill in": (lambda request: filling.text_of(page), new),
    }
    for name, (work, items) in works.items():
        times = []
        for _ in range(ROUNDS):
            start = thread_time()
            for item in items:
                work(item)
            times.append((thread_time() - start) / EACH * 1_000_000)
        yield name, f"{median(times):.1f} µs"
