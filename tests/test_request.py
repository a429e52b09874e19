"""Requests become views: who the visitor is, what counts, and which keys it leaves in Redis."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.test import Client, RequestFactory
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.hits import visitors
from readtrack.hits.hit import REASONS, Hit, Outcome
from readtrack.request import MissingRecorder, Recorder
from readtrack.store import day_keys
from readtrack.store.skips import skip_buffer
from tests.site.models import Post
from tests.support import factories
from tests.support.bounds import set_most_bits
from tests.support.factories import BROWSER

# The next one, because a process forgets the keys of days before yesterday.
MIDNIGHT = (datetime.now(timezone.utc) + timedelta(days=1)).replace(
    hour=0, minute=0, second=0, microsecond=0
)
MINUTE = timedelta(minutes=1)

pytestmark = pytest.mark.django_db


def request(**headers: str) -> HttpRequest:
    return RequestFactory(headers={"User-Agent": BROWSER, **headers}).get(
        "/", REMOTE_ADDR="203.0.113.9"
    )


def test_a_request_without_the_middleware_says_what_to_do() -> None:
    plain: Any = request()
    assert not hasattr(plain, "readtrack")
    assert getattr(plain, "readtrack", None) is None
    with pytest.raises(
        AttributeError, match=r"set request.readtrack = readtrack.request.Recorder\(\)"
    ):
        plain.readtrack.view(factories.post())
    plain.readtrack = Recorder()
    post = factories.post()
    plain.readtrack.view(post)
    assert list(plain.readtrack.views) == [f"site.post:{post.pk}"]
    assert isinstance(vars(HttpRequest)["readtrack"], MissingRecorder)
    assert HttpRequest.readtrack is vars(HttpRequest)["readtrack"]  # type: ignore[attr-defined]


@pytest.fixture
def page(settings: Settings) -> str:
    settings.READTRACK = {"DEBUG_HEADER": True}
    return f"/posts/{factories.post().pk}/"


def fetch(client: Client, path: str, method: str = "get", **headers: str) -> Any:
    return getattr(client, method)(path, headers={"User-Agent": BROWSER, **headers})


def test_a_hash_never_sets_a_cookie(settings: Settings, client: Client, page: str) -> None:
    settings.READTRACK = {"ANONYMOUS": "hash", "DEBUG_HEADER": True}
    response = fetch(client, page)
    assert response["X-Readtrack"] == "counted"
    assert not response.cookies
    assert fetch(Client(), page)["X-Readtrack"] == "skipped; reason=repeat"


def of_day(minutes: float, **headers: str) -> visitors.Visitor:
    """Returns the visitor so many minutes after midnight."""
    return day_keys.resolve(
        visitors.visitor(request(**headers), None), at=MIDNIGHT + MINUTE * minutes
    )


def test_a_hash_changes_with_the_day_and_yesterdays_is_honoured_for_a_window(
    settings: Settings,
) -> None:
    settings.READTRACK = {"ANONYMOUS": "hash", "WINDOW": 1800}
    before, after, later, next_day = map(of_day, (-1, 1, 30, 24 * 60 - 1))
    assert after.fallback_id == before.id != after.id
    assert (later.id, later.fallback_id) == (after.id, "")
    assert next_day.id == after.id
    assert {seen.kind for seen in (before, after)} == {"day"}


@pytest.mark.parametrize(("minutes", "views"), [((-5, 5), 1), ((-5, 35), 2), ((5, 20), 1)])
def test_a_visit_over_midnight_is_one_visitor(
    settings: Settings, redis: Redis, minutes: tuple[int, int], views: int
) -> None:
    settings.READTRACK = {"ANONYMOUS": "hash", "WINDOW": 1800}
    for minute in minutes:
        at = MIDNIGHT + MINUTE * minute
        tracker.record(Hit(visitors.visitor(request(), None), at, views=("site.post:1",)))
    assert redis.get("views:total:site.post:1") == str(views)
    assert redis.pfcount("views:hll:site.post:1") == views


@pytest.mark.needs_parts("numbers")
def test_a_funnel_goes_on_over_midnight(settings: Settings) -> None:
    settings.READTRACK = {"ANONYMOUS": "hash", "NUMBERS": {"funnels": True}}
    of_day(-5)
    at = MIDNIGHT + MINUTE * 5
    tracker.record(
        Hit(
            visitors.visitor(request(), None),
            at,
            views=("site.post:1",),
            steps=(("site.post:1", "click"),),
        )
    )
    of_day(5)
    assert tracker.step(Post(pk=1), "convert", visitor=visitors.visitor(request(), None))


def test_with_anonymous_none_no_anonymous_visitor_counts(
    settings: Settings, client: Client, page: str
) -> None:
    settings.READTRACK = {"ANONYMOUS": "none", "DEBUG_HEADER": True}
    response = fetch(client, page)
    assert response["X-Readtrack"] == "skipped; reason=anonymous"
    assert not response.cookies
    client.force_login(factories.user())
    assert fetch(client, page)["X-Readtrack"] == "counted"


@pytest.mark.parametrize("header", ["Sec-GPC", "DNT"])
def test_a_visitor_who_opts_out_gets_no_cookie_and_a_hash_of_the_day(
    settings: Settings, client: Client, page: str, header: str
) -> None:
    response = fetch(client, page, **{header: "1"})
    assert response["X-Readtrack"] == "counted"
    assert not response.cookies
    seen = visitors.visitor(request(**{header: "1"}), None)
    assert (seen.kind, seen.opted_out) == ("hash", True)
    assert of_day(0, **{header: "1"}).opted_out
    settings.READTRACK = {"HONOUR_OPT_OUT": False}
    assert not visitors.visitor(request(**{header: "1"}), None).opted_out
    assert fetch(Client(REMOTE_ADDR="203.0.113.1"), page, **{header: "1"}).cookies


def test_spaces_around_an_opt_out_do_not_matter() -> None:
    assert visitors.visitor(request(DNT=" 1 "), None).opted_out


@pytest.mark.parametrize("value", ["0", "", "null", "2"])
def test_only_a_clear_word_is_an_opt_out(value: str) -> None:
    assert not visitors.visitor(request(DNT=value), None).opted_out


def test_a_cookie_of_before_is_not_read_once_the_visitor_opted_out(
    client: Client, page: str
) -> None:
    fetch(client, page)
    assert "anon_id" in client.cookies
    with_cookie = RequestFactory(headers={"User-Agent": BROWSER, "DNT": "1"}).get("/")
    with_cookie.COOKIES.update({name: morsel.value for name, morsel in client.cookies.items()})
    without = RequestFactory(headers={"User-Agent": BROWSER, "DNT": "1"}).get("/")
    assert visitors.visitor(with_cookie, None) == visitors.visitor(without, None)


def may_set_cookie(request: HttpRequest) -> Any:
    answers = {"yes": True, "no": False, "truthy": "no"}
    return answers[request.headers["X-Consent"]]


def test_without_consent_a_visitor_is_hashed_and_gets_no_cookie(
    settings: Settings, page: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings.READTRACK = {
        "COOKIE": {"consent": "tests.test_request.may_set_cookie"},
        "DEBUG_HEADER": True,
    }
    for number, answer in enumerate(("no", "truthy", "fails", "fails", "yes")):
        response = fetch(Client(REMOTE_ADDR=f"203.0.113.{number}"), page, **{"X-Consent": answer})
        assert response["X-Readtrack"] == "counted"
        assert ("anon_id" in response.cookies) == (answer == "yes")
        assert visitors.visitor(request(**{"X-Consent": answer}), None).kind == (
            "cookie" if answer == "yes" else "hash"
        )
    assert len(caplog.records) == 1
    assert "tests.test_request.may_set_cookie failed; no cookie is set." in caplog.text


def test_a_cookie_of_before_is_not_read_once_consent_is_withdrawn(
    settings: Settings, page: str
) -> None:
    settings.READTRACK = {
        "COOKIE": {"consent": "tests.test_request.may_set_cookie"},
        "DEBUG_HEADER": True,
        "WINDOW": 1,
    }
    browser = Client()
    fetch(browser, page, **{"X-Consent": "yes"})
    asked = request(**{"X-Consent": "no"})
    asked.COOKIES.update({name: morsel.value for name, morsel in browser.cookies.items()})
    assert visitors.visitor(asked, None) == visitors.visitor(request(**{"X-Consent": "no"}), None)


def test_a_user_who_opted_out_is_known_as_such(django_user_model: type[User]) -> None:
    user = factories.user()
    known = visitors.Visitor(visitors.user_id(user.pk), kind="user", opted_out=True)
    assert visitors.visitor(request(DNT="1"), user) == known


def test_an_address_forged_by_a_client_of_the_site_itself_makes_no_new_visitor(
    settings: Settings, page: str
) -> None:
    settings.READTRACK = {"ANONYMOUS": "hash", "DEBUG_HEADER": True}
    forged = [{"X-Forwarded-For": f"198.51.100.{n}"} for n in range(3)]
    answers = [
        fetch(Client(REMOTE_ADDR="203.0.113.9"), page, **headers)["X-Readtrack"]
        for headers in forged
    ]
    assert answers == ["counted", "skipped; reason=repeat", "skipped; reason=repeat"]


def test_a_mapped_address_is_the_same_visitor() -> None:
    plain, mapped = (
        visitors.visitor(RequestFactory().get("/", REMOTE_ADDR=address), None)
        for address in ("203.0.113.9", "::ffff:203.0.113.9")
    )
    assert plain.fallback_id == mapped.fallback_id


@pytest.mark.parametrize(
    ("method", "path", "headers", "said"),
    [
        ("head", "", {}, "skipped; reason=method"),
        ("get", "status/404/", {}, "skipped; reason=status"),
        ("get", "", {"Sec-Purpose": "prefetch;anonymous-client-ip"}, "skipped; reason=prefetch"),
        ("get", "", {"Sec-Purpose": "prefetch;prerender"}, "skipped; reason=prefetch"),
        ("get", "", {"Purpose": "prefetch"}, "skipped; reason=prefetch"),
        ("get", "", {"X-Purpose": "preview"}, "skipped; reason=prefetch"),
        ("get", "", {"X-Moz": "prefetch"}, "skipped; reason=prefetch"),
        ("get", "", {"Sec-Fetch-Dest": "image"}, "skipped; reason=embed"),
        ("get", "", {"User-Agent": "curl/8.5"}, "skipped; reason=bot"),
        ("get", "", {}, "counted"),
    ],
)
def test_the_header_says_what_became_of_a_hit(
    client: Client, page: str, method: str, path: str, headers: dict[str, str], said: str
) -> None:
    assert fetch(client, page + path, method, **headers)["X-Readtrack"] == said


def test_the_header_is_for_developers(settings: Settings, client: Client, page: str) -> None:
    settings.READTRACK = {}
    assert "X-Readtrack" not in fetch(client, page)
    settings.DEBUG = True
    assert fetch(client, page)["X-Readtrack"] == "skipped; reason=repeat"
    assert "X-Readtrack" not in fetch(client, "/list/")


def test_the_header_sums_up_several_subjects() -> None:
    outcome = Outcome(
        counted=("a", "b"), skipped={"c": "repeat", "d": "rate", "e": "repeat"}, read=("f",)
    )
    assert (
        str(outcome)
        == "counted; subjects=2, skipped; reason=repeat; subjects=2, skipped; reason=rate, read"
    )


@pytest.mark.needs_parts("script")
def test_every_skip_has_its_reason(settings: Settings, client: Client, page: str) -> None:
    settings.READTRACK = {"DEBUG_HEADER": True, "RATE": (2, 10)}
    for headers in (
        {},
        {},
        {},
        {"User-Agent": "curl/8"},
        {"Signature-Agent": '"https://chatgpt.com"'},
        {"Purpose": "prefetch"},
        {"Sec-Fetch-Dest": "font"},
    ):
        fetch(client, page, **headers)
    fetch(client, page, "head")
    fetch(client, page + "status/404/")
    trapped = Client(REMOTE_ADDR="203.0.113.1")
    fetch(trapped, factories.honeypot(), Referer="http://testserver/")
    fetch(trapped, page)
    for options in ({"ANONYMOUS": "none"}, {"EXCLUDE": {"paths": ["."]}}):
        settings.READTRACK = options
        fetch(client, page)
    # The last second's stay in the process until the next portion is due.
    settle()
    skips = reports.skips()
    assert list(skips) == list(REASONS)
    # The cookie changes what the rate is counted by, so of three hits the third is the second of
    # its own.
    assert skips == {**dict.fromkeys(REASONS, 1), "repeat": 2, "rate": 0, "busy": 0, "error": 0}


def settle() -> None:
    skip_buffer.send()


@pytest.mark.usefixtures("new_redis")
def test_a_page_without_a_subject_is_no_hit(client: Client, redis: Redis) -> None:
    fetch(client, "/list/", **{"User-Agent": "curl/8"})
    settle()
    assert redis.keys("*") == []


def test_a_site_without_hits_has_no_skips() -> None:
    assert reports.skips() == dict.fromkeys(REASONS, 0)


@pytest.mark.needs_parts("dashboard")
def test_the_dashboard_shows_why_hits_did_not_count(admin_client: Client, page: str) -> None:
    dashboard = "/admin/readtrack/dashboard/?tab=refused"
    assert "No refused hit is known of this period" in admin_client.get(dashboard).content.decode()
    fetch(Client(), page, **{"User-Agent": "curl/8"})
    content = admin_client.get(dashboard).content.decode()
    assert "robot, by its name" in content
    assert "100%" in content


def everything(url: str) -> str:
    """Returns all keys and values of Redis as one text."""
    raw: Any = Redis.from_url(url)
    read = {
        b"string": raw.get,
        b"hash": raw.hgetall,
        b"set": raw.smembers,
        b"zset": lambda key: raw.zrange(key, 0, -1, withscores=True),
    }
    found = "\n".join(f"{key!r} {read[raw.type(key)](key)!r}" for key in raw.scan_iter("*"))
    raw.close()
    return found


@pytest.mark.parametrize("anonymous", ["cookie", "hash"])
def test_nothing_personal_is_stored(settings: Settings, redis_url: str, anonymous: str) -> None:
    settings.READTRACK = {"ANONYMOUS": anonymous, "PROXIES": 1}
    post, category = factories.post(), factories.category()
    user = factories.user(pk=987_654_321, username="hieronymus", email="hieronymus@example.org")
    set_most_bits(10_000)
    secrets = {
        "hieronymus",
        "987654321",
        "user:987654321",
        "Firefox",
        "Mozilla",
        "curl/8",
        "PostmanRuntime/7",
    }
    for address in ("203.0.113.9", "2001:db8:aaaa:bbbb:cccc::1", "::ffff:198.51.100.77"):
        secrets |= {address, address.removeprefix("::ffff:"), "2001:db8:aaaa:bbbb"}
        for agent in (BROWSER, "curl/8.5", "PostmanRuntime/7"):
            for headers in ({}, {"DNT": "1"}, {"Purpose": "prefetch"}):
                client = Client(REMOTE_ADDR="10.0.0.1")
                headers = {"User-Agent": agent, "X-Forwarded-For": address, **headers}
                for path in (
                    f"/posts/{post.pk}/",
                    f"/categories/{category.pk}/",
                    "/readtrack/archive/",
                ):
                    client.get(path, headers=headers)
                client.force_login(user)
                client.get(f"/posts/{post.pk}/", headers=headers)
                client.get(f"/categories/{category.pk}/", headers=headers)
                secrets |= {morsel.value for morsel in client.cookies.values()}
    secrets |= {value.partition(":")[0] for value in secrets if len(value) > 40}
    settle()
    stored = everything(redis_url)
    assert f"views:total:site.post:{post.pk}" in stored
    assert [secret for secret in sorted(secrets) if secret in stored] == []
