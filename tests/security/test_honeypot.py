"""Nobody marks another person as a robot, and one address does not use up the marks of the site."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.http import HttpResponse
from django.template import Context, Template, engines
from django.test import Client
from pytest_django import Settings
from redis import Redis

from readtrack import buckets
from readtrack.script import robots
from tests.support import factories
from tests.support.factories import BROWSER

OWN = {"Referer": "http://testserver/posts/1/"}
NAVIGATION = {
    "Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
    "Sec-Fetch-Dest": "document",
    "Sec-Fetch-Mode": "navigate",
}
MIDNIGHT = datetime(2026, 11, 21, tzinfo=timezone.utc)


def marks(redis: Redis) -> int:
    """Returns the number of visitors that are marked."""
    return len([key for key in redis.scan_iter("rate:*") if int(redis.get(key) or 0) > 10**14])


def address_in(html: str) -> str:
    [address] = re.findall(r'href="([^"]*archive[^"]*)"', html)
    return str(address)


def link() -> str:
    return address_in(Template("{% load readtrack %}{% readtrack_honeypot %}").render(Context()))


def visit(browser: Client, address: str = "", **headers: str) -> Any:
    return browser.get(address or link(), headers={"User-Agent": BROWSER, **headers})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[datetime], None]:
    """Returns a function that sets the time of the honeypot."""
    return lambda at: monkeypatch.setattr(buckets, "now", lambda: at)


@pytest.mark.parametrize(
    "headers",
    [
        {"Accept": "image/avif,image/webp,*/*", **OWN},  # <img> on plain http
        {"Accept": "image/webp,*/*"},
        {"Accept": "*/*"},
        {"Referer": "http://evil.example/testserver/"},
        {"Referer": "http://testserver.evil.example/"},
        {"Referer": "http://[", "Accept": "text/html"},
        {"Referer": "testserver"},
        {"Sec-Fetch-Dest": "image", **OWN},
        {"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "same-origin", **OWN},
        {**NAVIGATION, "Sec-Fetch-Site": "cross-site", **OWN},
        {**NAVIGATION, "Sec-Fetch-Site": "same-site", **OWN},
        # A click on a link that somebody wrote into a comment.
        {**NAVIGATION, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-User": "?1", **OWN},
    ],
    ids=str,
)
@pytest.mark.django_db
@pytest.mark.usefixtures("new_redis")
def test_what_other_people_can_make_a_browser_do_marks_nobody(
    redis: Redis, headers: dict[str, str]
) -> None:
    assert visit(factories.browser(), **headers).status_code == 204
    assert redis.keys("*") == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Accept": "*/*", **OWN},  # Scrapy
        {"Accept": "text/html", **OWN},
        {**NAVIGATION, "Sec-Fetch-Site": "same-origin", **OWN},  # a click by JavaScript
        {**NAVIGATION, "Sec-Fetch-Site": "none", "Sec-Fetch-User": "?1"},  # Puppeteer's goto
    ],
    ids=str,
)
@pytest.mark.django_db
def test_a_robot_without_cookies_that_follows_the_link_is_marked(
    redis: Redis, headers: dict[str, str]
) -> None:
    assert visit(factories.browser(), **headers).status_code == 204
    assert marks(redis) == 1


@pytest.mark.django_db
def test_a_visitor_whose_cookie_came_back_is_not_marked(redis: Redis) -> None:
    post, browser = factories.post(), factories.browser()
    browser.get(post.get_absolute_url())
    assert browser.cookies["anon_id"].value
    visit(browser, **OWN)
    assert marks(redis) == 0
    browser.cookies["anon_id"] = "made:up:cookie"
    visit(browser, **OWN)
    assert marks(redis) == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change",
    [
        lambda address: "/readtrack/archive/",
        lambda address: address[:-2] + "x/",
        lambda address: "/readtrack/archive/%FF%F0/",
        lambda address: "/readtrack/archive/" + "a" * 2000 + "/",
    ],
    ids=["without", "other", "bytes", "long"],
)
def test_an_address_that_is_not_ours_answers_the_same_and_marks_nobody(
    redis: Redis, change: Callable[[str], str]
) -> None:
    ours, theirs = (visit(factories.browser(), one, **OWN) for one in (link(), change(link())))
    assert (ours.status_code, dict(ours.headers)) == (theirs.status_code, dict(theirs.headers))
    assert marks(redis) == 1
    redis.flushdb()
    visit(factories.browser(), change(link()), **OWN)
    assert redis.keys("*") == []


@pytest.mark.django_db
def test_an_address_holds_for_its_day_and_the_next(
    redis: Redis, clock: Callable[[datetime], None]
) -> None:
    clock(MIDNIGHT - timedelta(seconds=1))
    address = link()
    found = []
    for hours in (0, 1, 24, 25, 48):
        clock(MIDNIGHT + timedelta(hours=hours))
        redis.flushdb()
        visit(factories.browser(), address, **OWN)
        found.append(marks(redis))
    assert found == [1, 1, 0, 0, 0]
    assert link() != address


@pytest.mark.django_db
@pytest.mark.usefixtures("new_redis")
def test_an_address_of_one_tenant_marks_nobody_at_another(redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {"PREFIX": "red:"}
    address = link()
    settings.READTRACK = {"PREFIX": "blue:"}
    visit(factories.browser(), address, **OWN)
    assert redis.keys("*") == []


def test_all_pages_of_a_day_have_the_same_link_so_that_they_can_be_cached() -> None:
    jinja = engines["jinja2"].from_string("{{ readtrack_honeypot() }}").render()
    assert address_in(jinja) == link() == link()


@pytest.mark.django_db
@pytest.mark.one_server("counts keys of one server")
@pytest.mark.parametrize("options", [{}, {"ANONYMOUS": "hash", "WINDOW": 1}])
@pytest.mark.usefixtures("new_redis")
def test_one_address_does_not_use_up_the_marks_of_the_site(
    redis: Redis, settings: Settings, options: dict[str, Any]
) -> None:
    settings.READTRACK = options
    for number in range(60):
        visit(Client(), **{"User-Agent": f"{BROWSER} {number}", **OWN})
    each = 2 if options else 1  # today's and tomorrow's
    assert marks(redis) == robots.VISITS_OF_ADDRESS * each
    other: Any = Client(REMOTE_ADDR="192.0.2.7")
    visit(other, **OWN)
    assert marks(redis) == (robots.VISITS_OF_ADDRESS + 1) * each
    assert all(redis.ttl(key) > 0 for key in redis.scan_iter("*"))


@pytest.mark.django_db
def test_a_page_that_was_cached_yesterday_still_catches_a_robot(
    redis: Redis, clock: Callable[[datetime], None]
) -> None:
    clock(MIDNIGHT)
    page = HttpResponse(Template("{% load readtrack %}{% readtrack_honeypot %}").render(Context()))
    clock(MIDNIGHT + timedelta(hours=47, minutes=59))
    visit(factories.browser(), address_in(page.text), **OWN)
    assert marks(redis) == 1


def test_a_page_from_before_a_change_of_the_secret_key_still_catches_a_robot(
    redis: Redis, settings: Settings
) -> None:
    address = link()
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "new"
    assert address != link()
    visit(Client(), address, **OWN)
    assert marks(redis) > 0
