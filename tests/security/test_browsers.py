"""What a page of another site can bring about with its visitors' browsers: no view, no dot that goes
out, no robot. Each way is tried in a real Chromium and a real Firefox, by http and by https.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple, Protocol

import pytest
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import path
from playwright.sync_api import Error as PlaywrightError
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from demo_project import chromium
from readtrack import reports
from readtrack.script.robots import honeypot
from tests.browser.urls import post as post_page
from tests.browser.urls import urlpatterns as site_urls
from tests.security.ways import ADD, FRAMES, OWN, PARTS, VISITS
from tests.support import factories
from tests.support.browsers import real_browser
from tests.support.depth import DEEP, some
from tests.support.firefox import firefox
from tests.support.tls import tls
from tests.support.waiting import comes_true

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls(__name__),
    # Beside other tests of the same process, connections to SQL were found closed after these.
    pytest.mark.skipif(
        not DEEP, reason="runs alone: READTRACK_DEEP=1 test -n 0 tests/security/test_browsers.py"
    ),
]

SITE = "victim.test"
OTHER = "other.test"
SISTER = "sister.victim.test"  # the same site to a browser, but maybe another tenant's
HOSTS = some([OTHER], deep=[SISTER])
TRAP = "/assets/archive/"
QUIET = 1.5  # seconds without a request, after which no more are expected
asked: dict[str, list[dict[str, str]]] = defaultdict(list)  # headers of requests, by path


def noted(request: Any, pk: int) -> HttpResponse:
    asked[request.path].append(dict(request.headers))
    return post_page(request, pk)


def noted_trap(request: Any) -> HttpResponse:
    asked[request.path].append(dict(request.headers))
    return honeypot(request)


def blank(request: Any) -> HttpResponse:
    return HttpResponse('<!doctype html><link rel="icon" href="data:,"><body></body>')


def sign_in(request: Any) -> HttpResponse:
    response = blank(request)
    response.set_cookie("sessionid", request.GET["session"], samesite=None)
    if request.GET["secure"]:
        response.set_cookie("sessionid", request.GET["session"], samesite="None", secure=True)
    return response


def redirect(request: Any) -> HttpResponse:
    return HttpResponseRedirect(request.GET["to"])


urlpatterns = [
    path("post/<int:pk>/", noted),
    path("blank/", blank),
    path("sign-in/", sign_in),
    path("redirect/", redirect),
    path("assets/archive/", noted_trap),
    *site_urls,
]


class Window(Protocol):
    """A browser's window."""

    def goto(self, url: str) -> None: ...

    def run(self, script: str, url: str) -> None: ...


class ChromiumWindow:
    def __init__(self, browser: Any) -> None:
        self._page = browser.new_context(ignore_https_errors=True).new_page()

    def goto(self, url: str) -> None:
        for _ in range(5):
            try:
                self._page.goto(url)
            except PlaywrightError as error:
                # A way may have led this tab to the other site a moment ago.
                if "interrupted by another navigation" not in str(error):
                    raise
            else:
                return

    def run(self, script: str, url: str) -> None:
        try:
            self._page.evaluate(f"url => {{ {script} }}", url)
        except PlaywrightError as error:
            # The script has led this tab away.
            if "Execution context was destroyed" not in str(error):
                raise


class FirefoxWindow:
    def __init__(self, window: Any) -> None:
        self._window = window
        window.begin(140)

    def goto(self, url: str) -> None:
        self._window.goto(url)

    def run(self, script: str, url: str) -> None:
        self._window.run(f"const [url] = arguments; {script}", url)


def chromium_window(stack: ExitStack) -> Window:
    flags = (
        "--host-resolver-rules=MAP *.test 127.0.0.1",
        f"--user-agent={chromium.agent('140')}",
        "--accept-lang=en-US,en",  # a browser without a window says none, unlike any that has one
    )
    return ChromiumWindow(stack.enter_context(real_browser(*flags)))


def firefox_window(stack: ExitStack) -> Window:
    preferences = {
        "network_dns_localDomains": f"{SITE},{OTHER},{SISTER}",
        "dom_disable_open_during_load": False,
    }
    return FirefoxWindow(stack.enter_context(firefox(**preferences)))


WINDOWS: dict[str, Callable[[ExitStack], Window]] = {
    "Chromium": chromium_window,
    "Firefox": firefox_window,
}
BROWSERS = some(["Chromium"], deep=["Firefox"])


class Place(NamedTuple):
    """A browser, and the addresses of the site and of another one."""

    window: Window
    scheme: str
    port: int

    def url(self, path: str, *, host: str = SITE) -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"


@pytest.fixture(scope="module")
def windows(django_db_setup: None) -> Iterator[Callable[[str], Window]]:
    started: dict[str, Window] = {}
    with ExitStack() as stack:

        def window(browser: str) -> Window:
            if browser not in started:
                started[browser] = WINDOWS[browser](stack)
            return started[browser]

        yield window


@pytest.fixture(params=["http", "https"])
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=BROWSERS)
def place(
    request: pytest.FixtureRequest,
    windows: Callable[[str], Window],
    scheme: str,
    live_server: LiveServer,
    settings: Settings,
) -> Iterator[Place]:
    settings.ALLOWED_HOSTS = ["*"]
    settings.READTRACK = {**settings.READTRACK, "RATE": (0, 10)}
    asked.clear()
    window = windows(request.param)
    window.goto("about:blank")
    with ExitStack() as stack:
        is_secure = scheme == "https"
        port = stack.enter_context(tls(live_server.url)) if is_secure else live_server.thread.port
        yield Place(window, scheme, port)
        window.goto("about:blank")


class Result(NamedTuple):
    """What one way has brought about."""

    requests: int
    views: int
    dots_out: int
    headers: dict[str, str]


SHOWN = ("Sec-Fetch-", "Sec-Purpose", "Origin", "Referer", "Upgrade-", "Accept")


class Results(dict[str, Result]):
    """Results by way. As text they are the table that a deep run with `-s` prints."""

    def __str__(self) -> str:
        lines = [f"{'way':32} asked views dots headers"]
        for way, result in self.items():
            headers = {
                name.removeprefix("Sec-Fetch-"): value[:24]
                for name, value in result.headers.items()
                if name.startswith(SHOWN)
            }
            numbers = f"{result.requests:5} {result.views:5} {result.dots_out:4}"
            lines.append(f"{way:32} {numbers} {headers}")
        return "\n".join(lines)

    @property
    def effective(self) -> set[str]:
        """The ways that counted a view or put a dot out."""
        return {way for way, result in self.items() if result.views or result.dots_out}

    @property
    def sent(self) -> set[str]:
        """The ways by which the browser asked for the post."""
        return {way for way, result in self.items() if result.requests}


def tried(
    place: Place,
    ways: dict[str, str],
    *,
    host: str,
    user: Any = None,
    counting: Collection[str] = (),
) -> Results:
    """Tries each way on a post of its own, from one page of the host. Those that ought to count are
    given the time that they need.
    """
    posts = {way: factories.post(category=factories.category()) for way in ways}
    paths = {way: f"/post/{post.pk}/" for way, post in posts.items()}
    try_all(place, ways, paths, host=host)
    if counting:
        # A browser may drop a navigation that a script begins while another one ends.
        if not comes_true(lambda: all(map(asked.get, paths.values())), within=20):
            try_all(place, ways, paths, host=host)
        viewed = [posts[way] for way in counting]
        comes_true(lambda: all(reports.views(viewed).values()))
    if len(counting) < len(ways):
        wait_until_quiet()
    results = Results()
    for way, post in posts.items():
        requests = asked[paths[way]]
        assert post.category
        is_out = user is not None and not reports.unread(user, [post.category])
        headers = requests[0] if requests else {}
        views = reports.views([post])[post]
        results[way] = Result(len(requests), views, int(is_out), headers)
    return results


def try_all(place: Place, ways: dict[str, str], paths: dict[str, str], *, host: str) -> None:
    place.window.goto(place.url("/blank/", host=host))
    for way, code in ways.items():
        # Where a browser lacks a way, the others go on.
        place.window.run(f"try {{ {ADD} {code} }} catch {{}}", place.url(paths[way]))


def wait_until_quiet() -> None:
    """Waits until no request came for a while."""
    number = -1
    while number != (now := sum(map(len, asked.values()))):
        number = now
        time.sleep(QUIET)


def sign_in_at(place: Place) -> Any:
    """Signs a new user in. By https the cookie goes along with requests of other sites."""
    user = factories.user()
    session = factories.browser(user).cookies["sessionid"].value
    secure = "1" if place.scheme == "https" else ""
    place.window.goto(place.url(f"/sign-in/?session={session}&secure={secure}"))
    return user


def show(results: Results, *titles: str) -> None:
    if DEEP:
        print("\n" + " ".join(titles), results, sep="\n")  # noqa: T201


# The visitor is signed in. By http a request of another site brings no session along, as nobody's does.
@pytest.mark.parametrize("host", HOSTS)
def test_a_page_of_another_origin_counts_nothing_and_puts_no_dot_out(
    place: Place, host: str
) -> None:
    user = sign_in_at(place)
    results = tried(place, {**PARTS, **FRAMES}, host=host, user=user)
    show(results, place.scheme, host)
    # On plain http a frame's request is the same as a tab's; only the script knows.
    exceptions = set(FRAMES) if place.scheme == "http" else set()
    assert results.effective <= exceptions, results
    assert len(results.sent) > len(results) - 12, results  # no browser knows all of them


@pytest.mark.parametrize("host", HOSTS)
def test_the_script_is_silent_in_a_frame_of_another_origin(
    place: Place, settings: Settings, host: str
) -> None:
    settings.READTRACK = {**settings.READTRACK, "SCRIPT": {"count_by": "script"}}
    user = sign_in_at(place)
    results = tried(place, FRAMES, host=host, user=user)
    assert results.effective == set(), results
    results = tried(place, {"frame": FRAMES["frame"]}, host=SITE, user=user, counting=["frame"])
    assert results.effective == {"frame"}, results


@pytest.mark.parametrize("host", HOSTS)
def test_a_page_of_another_origin_makes_nobody_a_robot(place: Place, host: str) -> None:
    ways = {**PARTS, **FRAMES} if place.scheme == "https" else PARTS
    paths = dict.fromkeys(ways, TRAP)
    place.window.goto(place.url("/blank/"))
    try_all(place, ways, paths, host=host)
    wait_until_quiet()
    assert len(asked[TRAP]) > len(ways) / 2
    assert visited(place)


def visited(place: Place) -> bool:
    """Returns True if a visit of the site by its address counts."""
    post = factories.post(category=factories.category())
    place.window.goto(place.url(f"/post/{post.pk}/"))
    return comes_true(lambda: reports.views([post])[post] == 1)


def test_whoever_comes_from_another_site_counts(place: Place) -> None:
    user = sign_in_at(place)
    results = Results()
    for way, code in VISITS.items():
        results |= tried(place, {way: code}, host=OTHER, user=user, counting=[way])
    show(results, place.scheme)
    assert {way for way, result in results.items() if result.views} == set(VISITS), results
    assert visited(place)


def test_what_the_sites_own_pages_show_counts_and_a_fetch_is_left_to_the_script(
    place: Place,
) -> None:
    # On plain http browsers do not say what a page is for.
    left = {"fetch", "fetch by Unpoly", "XMLHttpRequest"} if place.scheme == "https" else set()
    counting = OWN.keys() - left
    results = tried(place, OWN, host=SITE, user=sign_in_at(place), counting=counting)
    show(results, place.scheme)
    assert results.effective == counting, results


def test_a_front_end_on_a_trusted_origin_counts(place: Place, settings: Settings) -> None:
    settings.CSRF_TRUSTED_ORIGINS = [place.url("", host=OTHER)]
    ways = {way: PARTS[way] for way in ("fetch", "XMLHttpRequest", "fetch, no-cors")}
    results = tried(place, ways, host=OTHER)
    assert results.effective == {"fetch", "XMLHttpRequest"}, results
    results = tried(place, ways, host=SISTER)
    assert results.effective == set(), results
