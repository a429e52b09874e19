"""The honeypot: a link that only robots follow."""

import pytest
from django.http import HttpResponse
from django.template import Context, Template
from django.test import Client, RequestFactory, override_settings
from pytest_django import Settings
from redis import Redis

from readtrack import buckets
from readtrack.hits import visitors
from readtrack.script import robots
from readtrack.store import day_keys, keys
from tests.support import factories
from tests.support.factories import BROWSER


def view(client: Client, pk: int, user_agent: str = BROWSER) -> str:
    with override_settings(READTRACK={"DEBUG_HEADER": True}):
        return str(client.get(f"/posts/{pk}/", headers={"User-Agent": user_agent})["X-Readtrack"])


def follow(client: Client, **headers: str) -> HttpResponse:
    """Follows the link of a page, as a robot does that says it is a browser."""
    headers = {"User-Agent": BROWSER, "Referer": "http://testserver/posts/1/", **headers}
    return client.get(factories.honeypot(), headers=headers)  # type: ignore[return-value]


@pytest.mark.django_db
def test_a_visitor_who_follows_the_honeypot_is_a_robot_for_a_day(
    client: Client, redis: Redis
) -> None:
    post = factories.post()
    assert follow(client).status_code == 204
    assert view(client, post.pk) == "skipped; reason=honeypot"
    assert view(client, post.pk) == "skipped; reason=honeypot"
    assert view(client, post.pk, BROWSER + " other") == "counted"
    [key] = [key for key in redis.scan_iter("rate:*") if int(redis.get(key) or 0) > 10**14]
    assert 86_000 < redis.ttl(key) <= 86_400


@pytest.mark.django_db
def test_a_mark_holds_for_those_who_bring_no_cookie_from_before(client: Client) -> None:
    post, other, neighbour = factories.post(), factories.post(), Client()
    view(neighbour, post.pk)
    follow(client)
    assert view(client, other.pk) == "skipped; reason=honeypot"
    assert not client.cookies  # with which it would leave the honeypot
    # A neighbour with a cookie of its own is spared, and who signs in is no robot.
    assert view(neighbour, other.pk) == "counted"
    client.force_login(factories.user())
    assert view(client, other.pk) == "counted"


@pytest.mark.django_db
@pytest.mark.parametrize(("options", "headers"), [({"ANONYMOUS": "hash"}, {}), ({}, {"DNT": "1"})])
def test_no_hash_that_lasts_is_stored_of_a_visitor_without_cookies(
    settings: Settings,
    client: Client,
    redis: Redis,
    rf: RequestFactory,
    options: dict[str, object],
    headers: dict[str, str],
) -> None:
    settings.READTRACK = {
        **options,
        "WINDOW": 1,
    }  # second of a day in which the hash of the day before counts, too
    headers = {"User-Agent": BROWSER, **headers}
    follow(client, **headers)
    assert len(redis.keys("rate:*")) == 2  # today and tomorrow
    assert not redis.exists(f"rate:{visitors.address_id(rf.get('/', headers=headers))}")


@pytest.mark.parametrize("agent", ["curl/8.5.0", "Googlebot/2.1", ""])
@pytest.mark.usefixtures("new_redis")
def test_a_robot_that_is_known_by_its_agent_needs_no_mark(
    client: Client, redis: Redis, agent: str
) -> None:
    assert follow(client, **{"User-Agent": agent}).status_code == 204
    assert redis.keys("*") == []


@pytest.mark.one_server("with partitions, each has a part of the marks")
def test_marks_are_bounded_and_those_there_are_renewed(
    client: Client, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robots, "ROBOTS", 3)
    for number in (1, 1, 1, 2, 3, 4, 5):
        follow(client, **{"User-Agent": f"{BROWSER} {number}"})
    marks = redis.keys("rate:*")
    assert len(marks) == 3
    assert 3_500 < redis.ttl("robots") <= 3_600
    for mark in marks:
        redis.expire(mark, 10)
    follow(client, **{"User-Agent": f"{BROWSER} 1"})
    assert sorted(redis.ttl(mark) > 10 for mark in marks) == [False, False, True]
    redis.delete("robots")
    follow(client, **{"User-Agent": f"{BROWSER} 5"})
    assert len(redis.keys("rate:*")) == 4


@pytest.mark.django_db
def test_the_honeypot_works_without_a_rate_limit(settings: Settings, client: Client) -> None:
    post = factories.post()
    settings.READTRACK = {"RATE": (0, 10), "WINDOW": 1, "DEBUG_HEADER": True}
    pages = [
        client.get(f"/posts/{post.pk}/", headers={"User-Agent": BROWSER, "X": str(n)})
        for n in range(9)
    ]
    assert "skipped; reason=rate" not in {page["X-Readtrack"] for page in pages}
    client.cookies.clear()
    follow(client)
    page = client.get(f"/posts/{post.pk}/", headers={"User-Agent": BROWSER})
    assert page["X-Readtrack"] == "skipped; reason=honeypot"


@pytest.mark.django_db
def test_the_honeypot_outlasts_midnight_where_hashes_change(
    settings: Settings, redis: Redis
) -> None:
    settings.READTRACK = {"ANONYMOUS": "hash", "WINDOW": 1}
    follow(Client())
    assert len(redis.keys("rate:*")) >= 2


@pytest.mark.django_db
def test_after_midnight_a_robot_is_marked_by_its_hash_of_the_day_before_too(
    settings: Settings, redis: Redis, rf: RequestFactory
) -> None:
    settings.READTRACK = {"ANONYMOUS": "hash", "WINDOW": keys.DAY}  # it is midnight all day long
    visitor = visitors.visitor(rf.get("/", headers={"User-Agent": BROWSER}), None)
    of_yesterday = day_keys.resolve(visitor, at=buckets.now() - buckets.DAY)
    follow(Client())
    assert redis.exists(keys.rate(of_yesterday.id))


@pytest.mark.django_db
@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Purpose": "prefetch;prerender"},
        {"Sec-Fetch-Dest": "image", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "cross-site"},
        {},
    ],
)
@pytest.mark.usefixtures("new_redis")
def test_a_stray_click_of_a_user_and_a_prefetch_of_a_browser_mark_no_robot(
    client: Client, redis: Redis, headers: dict[str, str]
) -> None:
    if not headers:
        client.force_login(factories.user())
    follow(client, **headers)
    assert redis.keys("*") == []


@pytest.mark.django_db
@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_a_robot_in_a_real_browser_falls_into_the_honeypot(
    client: Client, redis: Redis, site: str
) -> None:
    headers = {"User-Agent": BROWSER, "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": site}
    follow(client, **headers)
    assert len(redis.keys("rate:*")) == 1


def test_a_host_that_django_refuses_marks_nobody_and_is_no_error(
    client: Client, caplog: pytest.LogCaptureFixture, redis: Redis
) -> None:
    host = {"Host": "other.example", "Referer": "http://other.example/"}
    assert follow(client, **host).status_code == 204
    assert caplog.records == []
    assert not redis.keys("robots*")


def test_the_honeypot_takes_no_forms(client: Client) -> None:
    assert client.post(factories.honeypot()).status_code == 405


def test_the_link_is_hidden_from_people_and_screen_readers() -> None:
    page = Template("{% load readtrack %}{% readtrack_honeypot %}")
    assert page.render(Context()) == (
        f'<a href="{factories.honeypot()}" rel="nofollow" aria-hidden="true" tabindex="-1"></a>'
    )


def test_the_tag_says_what_is_missing_while_debugging(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.site.no_urls"
    page = Template("{% load readtrack %}{% readtrack_honeypot %}")
    assert page.render(Context()) == ""
    settings.DEBUG = True
    assert "include readtrack.urls" in page.render(Context())
