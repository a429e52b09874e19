"""Who is taken for a robot: by user agent, by the settings, by the honeypot."""

import pytest
from django.core import checks
from django.template import Context, Template
from django.test import Client, override_settings
from pytest_django import Settings
from redis import Redis

from readtrack.hits import bots
from tests.support import factories
from tests.support.factories import BROWSER

ROBOTS = [
    "",
    "   ",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.4; +https://openai.com/gptbot)",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/121.0 Safari/537.36",
    "curl/8.5.0",
    "python-requests/2.32",
    "kube-probe/1.30",
    "docker/27.0 go/go1.22 os/linux arch/amd64 UpstreamClient(Docker-Client/27.0 (linux))",
    "Mozilla/5.0 (compatible; evc-batch/2.0)",
]
PEOPLE = [
    BROWSER,
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 "
    "Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 15; CUBOT KINGKONG) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile "
    "Safari/537.36",
    "Opera/9.80 (Android; Opera Mini/36.2/119.132; U; id) Presto/2.12.423 Version/12.16",
    "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0)",
]


def refuses_firefox(user_agent: str) -> bool:
    return "Firefox" in user_agent


@pytest.mark.parametrize("user_agent", ROBOTS)
def test_robots_are_known(user_agent: str) -> None:
    assert bots.is_bot(user_agent)


@pytest.mark.parametrize("user_agent", PEOPLE)
def test_people_are_known(user_agent: str) -> None:
    assert not bots.is_bot(user_agent)


def test_a_site_adds_and_exempts_patterns(settings: Settings) -> None:
    settings.READTRACK = {"BOTS": ["firefox/14.", "(?i)acme"], "NOT_BOTS": [r"^curl/8\."]}
    assert bots.is_bot(BROWSER)
    assert bots.is_bot("Mozilla/5.0 ACME Chrome/142.0")
    assert not bots.is_bot("curl/8.5.0")
    assert bots.is_bot("curl/7.1")
    settings.READTRACK = {}
    assert not bots.is_bot(BROWSER)


def test_a_site_gives_its_own_judge(settings: Settings) -> None:
    settings.READTRACK = {"IS_BOT": "tests.hits.test_bots.refuses_firefox"}
    assert bots.is_bot(BROWSER)
    assert not bots.is_bot("curl/8.5.0")
    assert bots.is_bot("")


def fails_on_short(user_agent: str) -> bool:
    return not user_agent[3]


def test_a_judge_that_fails_breaks_no_page(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    settings.READTRACK = {"IS_BOT": "tests.hits.test_bots.fails_on_short"}
    assert not bots.is_bot("Mozilla/5.0 CFNetwork")
    assert caplog.text == ""
    assert bots.is_bot("abc")
    assert "IndexError" in caplog.text


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"BOTS": ["(", "fine"]}, "readtrack.E020"),
        ({"NOT_BOTS": ["*", "fine"]}, "readtrack.E020"),
        ({"IS_BOT": "tests.nowhere.judge"}, "readtrack.E021"),
        ({"IS_BOT": "tests.hits.test_bots.ROBOTS"}, "readtrack.E021"),
        ({"TRUSTED_PROXIES": ["nonsense"]}, "readtrack.E022"),
        ({"COOKIE": ""}, "readtrack.E023"),
        ({"COOKIE": "two words"}, "readtrack.E023"),
        ({"ANONYMOUS": "maybe"}, "readtrack.E002"),
    ],
)
@pytest.mark.django_db
def test_a_bad_setting_is_a_system_check_and_no_error_of_a_page(
    settings: Settings, client: Client, options: dict[str, object], problem: str
) -> None:
    settings.READTRACK = options
    assert [check.id for check in checks.run_checks() if check.id == problem]
    if options.get("COOKIE") != "two words":
        page = client.get(f"/posts/{factories.post().pk}/", headers={"User-Agent": BROWSER})
        assert page.status_code == 200


def view(client: Client, pk: int, user_agent: str = BROWSER) -> str:
    with override_settings(READTRACK={"DEBUG_HEADER": True}):
        return str(client.get(f"/posts/{pk}/", headers={"User-Agent": user_agent})["X-Readtrack"])


@pytest.mark.django_db
def test_whoever_follows_the_honeypot_is_a_robot_for_a_day(client: Client, redis: Redis) -> None:
    post = factories.post()
    assert client.get("/readtrack/archive/", headers={"User-Agent": BROWSER}).status_code == 204
    assert view(client, post.pk) == "skipped; reason=honeypot"
    assert view(client, post.pk) == "skipped; reason=honeypot"
    assert view(client, post.pk, BROWSER + " other") == "counted"
    [key] = [key for key in redis.scan_iter("rate:*") if int(redis.get(key) or 0) > 10**14]
    assert 86_000 < redis.ttl(key) <= 86_400


@pytest.mark.django_db
def test_the_honeypot_knows_a_cookie_and_spares_its_neighbours(client: Client) -> None:
    post, other = factories.post(), factories.post()
    assert view(client, post.pk) == "counted"
    client.get("/readtrack/archive/", headers={"User-Agent": BROWSER})
    assert view(client, other.pk) == "skipped; reason=honeypot"
    assert view(Client(), other.pk) == "counted"


@pytest.mark.django_db
def test_the_honeypot_works_without_a_rate_limit(settings: Settings, client: Client) -> None:
    post = factories.post()
    settings.READTRACK = {"RATE_LIMIT": 0, "WINDOW": 1, "DEBUG_HEADER": True}
    pages = [client.get(f"/posts/{post.pk}/", headers={"User-Agent": BROWSER, "X": str(n)}) for n in range(9)]
    assert "skipped; reason=rate" not in {page["X-Readtrack"] for page in pages}
    client.get("/readtrack/archive/", headers={"User-Agent": BROWSER})
    page = client.get(f"/posts/{post.pk}/", headers={"User-Agent": BROWSER})
    assert page["X-Readtrack"] == "skipped; reason=honeypot"


@pytest.mark.django_db
def test_the_honeypot_outlasts_midnight_where_hashes_change(settings: Settings, redis: Redis) -> None:
    settings.READTRACK = {"ANONYMOUS": "hash", "WINDOW": 1}
    Client().get("/readtrack/archive/", headers={"User-Agent": BROWSER})
    assert len(redis.keys("rate:*")) >= 2


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
def test_a_stray_click_of_a_user_and_what_a_browser_fetches_ahead_mark_nobody(
    client: Client, redis: Redis, headers: dict[str, str]
) -> None:
    if not headers:
        client.force_login(factories.user())
    client.get("/readtrack/archive/", headers={"User-Agent": BROWSER, **headers})
    assert redis.keys("*") == []


@pytest.mark.django_db
@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_a_robot_in_a_real_browser_falls_into_the_honeypot(client: Client, redis: Redis, site: str) -> None:
    headers = {"User-Agent": BROWSER, "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": site}
    client.get("/readtrack/archive/", headers=headers)
    assert len(redis.keys("rate:*")) == 1


def test_the_honeypot_takes_no_forms(client: Client) -> None:
    assert client.post("/readtrack/archive/").status_code == 405


def test_the_link_is_in_nobodys_way() -> None:
    page = Template("{% load readtrack %}{% readtrack_honeypot %}")
    assert page.render(Context()) == (
        '<a href="/readtrack/archive/" rel="nofollow" aria-hidden="true" tabindex="-1"></a>'
    )


def test_the_tag_says_what_is_missing_while_debugging(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.site.no_urls"
    page = Template("{% load readtrack %}{% readtrack_honeypot %}")
    assert page.render(Context()) == ""
    settings.DEBUG = True
    assert "include readtrack.urls" in page.render(Context())
