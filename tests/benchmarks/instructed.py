"""The process whose instructions `bench_instructions` counts: valgrind runs it.

python instructed.py SITE FEW MANY [KIND …]

It prepares a site once. Then it serves FEW and MANY requests of each kind, each time in a process
that it forks, for which valgrind writes a file of its own. It prints the name, the number and the
process id of each.

It runs beside the readtrack of any checkout, also of one that has no parts yet, so it imports
nothing of the tests.
"""

import gc
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import count
from math import inf
from pathlib import Path
from time import time
from typing import Any, NamedTuple

import django
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler

import readtrack

OBJECTS = 50  # counts, and dots, of a page that shows many
POSTS = 200
WARMING = 25  # requests of each kind before the first fork
BODY = b"<!doctype html><title>Post</title>"
# A page that one proxy passes on from Chrome.
BROWSER = {
    "REMOTE_ADDR": "127.0.0.1",
    "HTTP_HOST": "news.example",
    "HTTP_X_FORWARDED_PROTO": "https",
    "HTTP_SEC_CH_UA": '"Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"',
    "HTTP_SEC_CH_UA_MOBILE": "?0",
    "HTTP_SEC_CH_UA_PLATFORM": '"Windows"',
    "HTTP_UPGRADE_INSECURE_REQUESTS": "1",
    "HTTP_USER_AGENT": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36"
    " (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "HTTP_ACCEPT": "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8",
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
    "HTTP_ACCEPT": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "HTTP_ACCEPT_ENCODING": "gzip, deflate, br",
}
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TRACKING = "readtrack.middleware.ReadTrackMiddleware"
# The site of a name: what it installs. A checkout without parts has all of them in its core.
SITES = {
    "core": ["readtrack"],
    "everything": getattr(readtrack, "EVERYTHING", ["readtrack"]),
}

Environ = dict[str, Any]


def configure(site: str) -> None:
    """Sets up Django with the site, whose settings are the defaults but for one proxy."""
    templates = {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    [("django.template.loaders.locmem.Loader", TEMPLATES)],
                )
            ],
            "libraries": {"readtrack": "readtrack.templatetags.readtrack"},
        },
    }
    cache = {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": os.environ["READTRACK_TEST_REDIS_URL"],
    }
    settings.configure(
        ALLOWED_HOSTS=["*"],
        SECRET_KEY="instructions",
        USE_TZ=True,
        ROOT_URLCONF=__name__,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=[
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.messages",
            "django.contrib.sessions",
            *SITES[site],
        ],
        MIDDLEWARE=MIDDLEWARE,
        TEMPLATES=[templates],
        CACHES={"default": cache},
        READTRACK={
            # Under valgrind everything is slow, the server's answers to it are not.
            "TIMEOUT": 10.0,
            "PROXIES": 1,
            "MODELS": {"auth.Group": {"read_state": True}},
        },
    )
    django.setup()


LOOP = "{% for post, board in rows %}<li>{{ post.pk }}: COUNT{{ board.pk }} DOT</li>{% endfor %}"
COUNT, DOT = "{% view_count post %}", "{% unread_dot board %}"
TEMPLATES = {
    "bare.html": LOOP.replace("COUNT", "").replace("DOT", ""),
    "many.html": "{% load readtrack %}" + LOOP.replace("COUNT", COUNT).replace("DOT", DOT),
}

_numbers = count()
_posts = count()
# What `main` prepares.
POST_ROWS: list[Any]
ROWS: list[tuple[Any, Any]]
USER: Any
CLIENT: Any
BODIES: list[bytes]
HANDLERS: dict[Any, Any]
urlpatterns: list[Any]


def next_post() -> Any:
    """Returns a post, the next one each time."""
    return POST_ROWS[next(_posts) % POSTS]


def plain(request: Any) -> Any:
    """An empty page without a subject."""
    from django.http import HttpResponse

    # As CommonMiddleware adds the length.
    return HttpResponse(BODY, headers={"Content-Length": str(len(BODY))})


def post(request: Any) -> Any:
    """An empty page of a post."""
    shown = next_post()
    if hasattr(request, "readtrack"):
        request.readtrack.view(shown)
    return plain(request)


def incr(request: Any) -> Any:
    """An empty page that counts by itself."""
    CLIENT.incr("naive")
    return plain(request)


def many(request: Any) -> Any:
    """A page with many counts and dots; without the tags if the middleware is not there."""
    from django.shortcuts import render

    request.user = USER
    template = "many.html" if hasattr(request, "readtrack") else "bare.html"
    return render(request, template, {"rows": ROWS})


def newcomer() -> Environ:
    """Returns the headers of a visitor whom nobody has seen before."""
    number = next(_numbers)
    address = f"93.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    return {**BROWSER, "HTTP_X_FORWARDED_FOR": address}


def regular() -> Environ:
    """Returns the headers of a visitor with a cookie, whose browser sends it for the first time."""
    from django.http import HttpRequest

    from readtrack.hits import visitors

    cookie = visitors.visitor(HttpRequest(), None).new_cookie
    return {**newcomer(), "HTTP_COOKIE": f"theme=dark; anon_id={cookie}"}


def robot() -> Environ:
    """Returns the headers of a robot."""
    return {**ROBOT, "HTTP_X_FORWARDED_FOR": "66.249.66.1"}


class Kind(NamedTuple):
    """A kind of request."""

    page: str
    visitor: Callable[[], Environ]
    is_tracked: bool = True
    base: str = ""  # the kind whose instructions are no part of its own; "" for none
    needs_script: bool = False


KINDS = {
    "environ, new": Kind("", newcomer),
    "environ, cookie": Kind("", regular),
    "untracked, new": Kind("post/", newcomer, is_tracked=False),
    "untracked, cookie": Kind("post/", regular, is_tracked=False),
    "untracked, robot": Kind("post/", robot, is_tracked=False),
    "untracked, plain": Kind("plain/", newcomer, is_tracked=False),
    "untracked, many": Kind("many/", newcomer, is_tracked=False),
    "INCR": Kind("incr/", newcomer, is_tracked=False, base="untracked, new"),
    "new visitor": Kind("post/", newcomer, base="untracked, new"),
    "with cookie": Kind("post/", regular, base="untracked, cookie"),
    "robot": Kind("post/", robot, base="untracked, robot"),
    "no subject": Kind("plain/", newcomer, base="untracked, plain"),
    "50 counts, 50 dots": Kind("many/", newcomer, base="untracked, many"),
    "script's POST, new": Kind("script", newcomer, base="environ, new", needs_script=True),
    "script's POST, cookie": Kind("script", regular, base="environ, cookie", needs_script=True),
    "mounted POST, new": Kind("mounted", newcomer, base="environ, new", needs_script=True),
    "mounted POST, cookie": Kind("mounted", regular, base="environ, cookie", needs_script=True),
}


def module_of(*names: str) -> Any:
    """Returns the first of these modules of readtrack that this checkout has; None without any."""
    # Not by `find_spec`, which finds those of another checkout that is installed.
    folder = Path(readtrack.__file__).parent
    for name in names:
        if folder.joinpath(*name.split(".")).with_suffix(".py").is_file():
            return import_module(f"readtrack.{name}")
    return None


def tokens() -> list[bytes]:
    """Returns the body of the report of each post's page; none on a site without the script."""
    from django.urls import NoReverseMatch, reverse

    try:
        reverse("readtrack:page")
    except NoReverseMatch:
        return []
    shown = module_of("script.shown", "page.shown")
    bodies = []
    for row in POST_ROWS:
        label = row._meta.label_lower
        token = shown.token_of(f"/post/|0|0|{label}:{row.pk}|", ())
        bodies.append(f"{token}\n\n\n900".encode())
    return bodies


def environ(kind: Kind) -> Environ:
    """Returns a WSGI environ of a request of that kind."""
    from io import BytesIO

    made = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": f"/{kind.page}",
        "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(),
        **kind.visitor(),
    }
    if kind.needs_script:
        body = BODIES[next(_posts) % POSTS]
        made |= {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/readtrack/page.js",
            "CONTENT_TYPE": "text/plain;charset=UTF-8",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": BytesIO(body),
            "HTTP_SEC_FETCH_SITE": "same-origin",
            "HTTP_SEC_FETCH_MODE": "cors",
            "HTTP_SEC_FETCH_DEST": "empty",
            "HTTP_ORIGIN": "https://news.example",
            "HTTP_REFERER": "https://news.example/post/",
        }
    return made


def start(status: str, headers: object, *_: object) -> Any:
    """Takes the status of a response."""
    if status != "200 OK":
        raise RuntimeError(f"The page answered {status}.")


def serve(kind: Kind, number: int) -> None:
    """Serves so many requests of that kind."""
    handler = HANDLERS[kind.page if kind.page == "mounted" else kind.is_tracked]
    for _ in range(number):
        one = environ(kind)
        if not kind.page:
            continue
        response = handler(one, start)
        b"".join(response)
        if hasattr(response, "close"):
            response.close()


def forked(kind: Kind, number: int, *, first: int) -> int:
    """Serves so many requests of that kind in a new process. Returns its id.

    `first` is the number of its first visitor.
    """
    process = os.fork()
    if process:
        _, status = os.waitpid(process, 0)
        if status:
            raise RuntimeError("The process that serves requests has failed.")
        return process
    global _numbers
    _numbers = count(first)
    try:
        serve(kind, number)
    except BaseException as error:  # shown, because the process ends without Python's own end
        print(repr(error), file=sys.stderr)
        os._exit(1)
    os._exit(0)


def prepared(site: str, *names: str) -> dict[str, Kind]:
    """Prepares the site, and serves the first requests of each kind. Returns these kinds: those that
    are named, or all, as far as the site has them.
    """
    configure(site)
    global POST_ROWS, ROWS, USER, CLIENT, BODIES, HANDLERS, urlpatterns
    from django.contrib.auth.models import Group, User
    from django.urls import include, path
    from redis import Redis

    from readtrack.models import Tracked

    class Post(Tracked):
        class Meta:
            app_label = "sessions"  # any app that is installed

    def saved(model: type[Any], pk: int) -> Any:
        row = model(pk=pk)
        row._state.adding = False
        return row

    POST_ROWS = [saved(Post, number + 1) for number in range(POSTS)]
    boards = [saved(Group, number + 1) for number in range(OBJECTS)]
    ROWS = list(zip(POST_ROWS, boards, strict=False))
    USER = saved(User, 7)
    CLIENT = Redis.from_url(os.environ["READTRACK_TEST_REDIS_URL"])
    urlpatterns = [
        path("plain/", plain),
        path("post/", post),
        path("incr/", incr),
        path("many/", globals()["many"]),
        path("readtrack/", include("readtrack.urls")),
    ]
    BODIES = tokens()
    HANDLERS = {False: WSGIHandler()}
    # Not by Django's tools for tests: where they are loaded, each hit asks whether tests run.
    settings.MIDDLEWARE = [*MIDDLEWARE, TRACKING]
    HANDLERS[True] = WSGIHandler()
    mounting = module_of("script.wsgi")
    if mounting is not None:
        HANDLERS["mounted"] = mounting.with_reports(HANDLERS[True])
    kinds = {}
    for name, kind in KINDS.items():
        is_here = BODIES or not kind.needs_script
        if is_here and (kind.page != "mounted" or mounting) and (not names or name in names):
            kinds[name] = kind
    for kind in kinds.values():
        serve(kind, WARMING)
    # What a process does once a second, or once a minute, is left out: valgrind is so slow that few
    # requests would share it.
    module_of("store.skips").INTERVAL = inf
    clock = module_of("store.clock")
    clock.due = inf
    clock.time = partial(float, time())  # because the first views of each minute make its keys
    # Otherwise a collection of all objects of Django, at a request that chance chooses, is part of
    # what is measured.
    gc.collect()
    gc.freeze()
    return kinds


def main(site: str, few: str, many: str, *names: str) -> None:
    """Prints, as JSON, the process ids by kind and number of requests."""
    kinds = prepared(site, *names)
    processes = []
    forks = count(1)
    for name, kind in kinds.items():
        for number in (few, many):
            process = forked(kind, int(number), first=next(forks) * 10_000)
            processes.append((name, int(number), process))
    print(json.dumps(processes))


if __name__ == "__main__":
    main(*sys.argv[1:])
