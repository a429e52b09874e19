"""Processor time that the middleware adds to a request, as multiples of what the cheapest redis-py
INCR in the view adds.

The cheapest is that of one client which the process keeps, on a connection that it never gives
back to a pool and that has no time-outs, on the core where the server runs.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import count, cycle
from statistics import median
from time import process_time, sleep, thread_time
from typing import Any, NamedTuple

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory, override_settings
from django.urls import include, path
from django.utils.cache import patch_cache_control
from redis import Redis

from readtrack import buckets
from readtrack.conf import conf
from readtrack.hits import visitors
from readtrack.hits.hit import Hit, refusal
from readtrack.page import contents
from readtrack.script import views as script
from readtrack.script.shown import token_of
from readtrack.store import scripts
from readtrack.store.connection import connect
from readtrack.store.counting import count_views
from tests.benchmarks.measuring import table
from tests.benchmarks.serving import BUFFER, REST, SECONDS, requests_a_second
from tests.site.models import Post
from tests.support import caches

EACH = 400  # requests of a kind in a round
ROUNDS = 13
BUFFERED_ROUNDS = 9
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

REDIS = caches.redis_url(settings.CACHES["default"]["LOCATION"])

_numbers = count()
_posts = count()
_pooled = Redis.from_url(REDIS)


@cache
def _single() -> Redis:
    """Returns a client for one thread, which connects at once."""
    return Redis.from_url(REDIS, single_connection_client=True, socket_timeout=None)


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
    """An empty page that counts by itself, as all threads of a server can."""
    _pooled.incr("naive")
    return plain(request)


def cheapest(request: HttpRequest) -> HttpResponse:
    """An empty page that counts by itself, as cheaply as one thread can."""
    _single().incr("naive")
    return plain(request)


def processor_time(request: HttpRequest) -> HttpResponse:
    """The CPU seconds that this process took until now."""
    return HttpResponse(str(process_time()))


urlpatterns = [
    path("plain/", plain),
    path("post/", post),
    path("naive/", naive),
    path("cheapest/", cheapest),
    path("script/", script.page),
    path("processor-time/", processor_time),
    path("readtrack/", include("readtrack.urls")),
]

Environ = dict[str, Any]


class Kind(NamedTuple):
    """A kind of request."""

    page: str
    visitor: Callable[[], Environ]  # returns the headers
    most: str = ""  # the budget
    is_tracked: bool = True


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


def robot() -> Environ:
    """Returns the headers of a robot."""
    return {**ROBOT, "HTTP_X_FORWARDED_FOR": "66.249.66.1"}


CHEAPEST = "one INCR by redis-py, one connection"
KINDS = {
    CHEAPEST: Kind("cheapest", newcomer, is_tracked=False),
    "one INCR by redis-py, from its pool": Kind("naive", newcomer, is_tracked=False),
    "counted view, new visitor": Kind("post", newcomer, most="2.5 ×"),
    "counted view, cookie": Kind("post", regular, most="2.0 ×"),
    "skipped robot": Kind("post", robot, most="0.35 ×"),
    "page without a subject": Kind("plain", newcomer, most="0.12 ×"),
    "script of a page that counted": Kind("script", regular),
}
BUFFERED_KINDS = {
    CHEAPEST: Kind("cheapest", newcomer, is_tracked=False),
    "counted view, new visitor": Kind("post", newcomer),
    "counted view, cookie": Kind("post", regular),
    "skipped robot": Kind("post", robot),
}


def main() -> None:
    """Prints four tables: requests in this process, the same with `BUFFER`, what their parts cost,
    and requests a second of a server.
    """
    connect().flushdb()
    with on_one_core():
        print_measured(
            "Processor time of a request, beyond the same page without the middleware",
            KINDS,
            measured(KINDS, rounds=ROUNDS),
        )
        with override_settings(READTRACK={**settings.READTRACK, "BUFFER": {"seconds": BUFFER}}):
            print_measured(
                "The same with BUFFER, and with the time of the thread that sends",
                BUFFERED_KINDS,
                measured(BUFFERED_KINDS, rounds=BUFFERED_ROUNDS, rest=REST),
            )
        table("Parts of it, each in a loop of its own", [("", "median"), *parts()])
    print_served()


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keeps this thread and the server on one core, where the system lets it.

    On two cores the system must wake a core that sleeps, which costs as much as the INCR. Both the
    INCR and a counted view pay it once, and so it would make their ratio look better.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    server = connect().info()["process_id"]
    cores = os.sched_getaffinity(0)
    one = {min(cores)}
    try:
        os.sched_setaffinity(0, one)
        os.sched_setaffinity(server, one)
        yield
    finally:
        os.sched_setaffinity(0, cores)
        os.sched_setaffinity(server, cores)


def print_measured(
    title: str, kinds: Mapping[str, Kind], found: Mapping[str, tuple[float, float]]
) -> None:
    """Prints a table of what `measured` returned."""
    rows = [("", "median", "ratio", "at most")]
    for name, (time, ratio) in found.items():
        rows.append((name, f"{time:.1f} µs", f"{ratio:.2f} ×", kinds[name].most))
    table(title, rows)


def print_served() -> None:
    """Prints the table of requests a second."""
    cookies = [cookie().encode() for _ in range(20_000)]
    head = ("", "requests a second", "share", "at least", "processor time", "share by it")
    rows = (
        (
            row.name,
            f"{row.speed:,.0f}",
            f"{row.share:.2f}",
            row.least,
            f"{row.spent:.0f} µs",
            f"{row.share_by_spent:.2f}",
        )
        for row in requests_a_second(cycle(cookies))
    )
    table(f"Granian with one worker, an empty page ({SECONDS} s a run)", [head, *rows])


def measured(
    kinds: Mapping[str, Kind], *, rounds: int, rest: float = 0
) -> dict[str, tuple[float, float]]:
    """Returns the CPU time (µs) that each kind of request adds, and its ratio to that of the
    cheapest INCR; medians.

    After the requests of each kind, `rest` seconds are left to the thread that sends what they
    buffered, and its time is theirs.
    """
    times: dict[str, list[float]] = {name: [] for name in kinds}
    with override_settings(ROOT_URLCONF=__name__):
        with override_settings(MIDDLEWARE=UNTRACKED):
            untracked = WSGIHandler()
        tracked = get_wsgi_application()
        for _ in range(rounds):
            for name, kind in kinds.items():
                bare_page = "post" if kind.page == "post" else "plain"
                bare = spent(untracked, bare_page, kind.visitor)
                if kind.is_tracked:
                    own = spent(tracked, kind.page, kind.visitor, rest=rest)
                else:
                    own = spent(untracked, kind.page, kind.visitor)
                times[name].append(own - bare)
    for measures in times.values():
        del measures[0]  # the first round only warms up
    base = times[CHEAPEST]
    found = {}
    for name, measures in times.items():
        ratios = [own / incr for own, incr in zip(measures, base, strict=True)]
        found[name] = (median(measures), median(ratios))
    return found


def spent(
    handler: WSGIHandler, page: str, visitor: Callable[[], Environ], *, rest: float = 0
) -> float:
    """Returns the CPU time (µs) of one request, in all threads of this process."""
    environs = [environ(page, visitor()) for _ in range(EACH)]
    start = process_time()
    for one in environs:
        response = handler(one, _start)
        b"".join(response)
        response.close()
    sleep(rest)
    return (process_time() - start) / EACH * 1_000_000


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
        CHEAPEST: (lambda request: _single().incr("naive"), new),
        "one INCR by redis-py, from its pool": (lambda request: _pooled.incr("naive"), new),
        "judging": (lambda request: refusal(request.method, page.status_code, request.META), new),
        "the visitor, new": (lambda request: visitors.visitor(request, None), new),
        "the visitor, by a cookie": (lambda request: visitors.visitor(request, None), known),
        "the command": (count_views, hits),
        "the command and its round trip": (
            lambda hit: scripts.run(count_views(hit)),
            hits,
        ),
        "a response without a cookie": (lambda request: headers_of(HttpResponse()), new),
        "a response with our cookie": (lambda request: with_our_cookie(request, signed), new),
        "a response with a cookie by Django": (with_cookie_by_django, new),
        "finding nothing to fill in": (lambda request: contents.text_of(page), new),
    }
    for name, (work, items) in works.items():
        times = []
        for _ in range(ROUNDS):
            start = thread_time()
            for item in items:
                work(item)
            times.append((thread_time() - start) / EACH * 1_000_000)
        yield name, f"{median(times):.1f} µs"


def with_our_cookie(request: HttpRequest, visitor: visitors.Visitor) -> list[str]:
    """Returns the cookies of a response that has the visitor's."""
    response = HttpResponse()
    visitors.set_cookie(request, response, visitor)
    return headers_of(response)


def with_cookie_by_django(request: HttpRequest) -> list[str]:
    """Returns the cookies of a response that has such a cookie by `response.set_cookie`."""
    response = HttpResponse()
    response.set_cookie(
        conf.COOKIE.name,
        "visitor-00000000000000",
        max_age=conf.COOKIE.age,
        secure=request.is_secure(),
        httponly=True,
        samesite="Lax",
    )
    patch_cache_control(response, private=True)
    return headers_of(response)


def headers_of(response: HttpResponse) -> list[str]:
    """Returns the cookies of the response, as Django's handler writes them."""
    return [morsel.OutputString() for morsel in response.cookies.values()]
