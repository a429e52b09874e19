"""Robots are recognised by their user agent and by the settings."""

import re

import pytest
from django.core import checks
from django.test import Client
from pytest_django import Settings

from readtrack.hits import bots
from readtrack.hits.hit import refusal
from tests.support import factories
from tests.support.factories import BROWSER

ROBOTS = [
    "",
    "   ",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.4; +https://openai.com/gptbot)",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/121.0 Safari/537.36",
    "curl/8.5.0",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0)",
    "python-requests/2.32",
    "kube-probe/1.30",
    "docker/27.0 go/go1.22 os/linux arch/amd64 UpstreamClient(Docker-Client/27.0 (linux))",
    "Mozilla/5.0 (compatible; evc-batch/2.0)",
    "Mozilla/4.0 (compatible; ms-office; MSOffice 16)",
    "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 10.0; Trident/7.0; Microsoft Outlook 16.0.4266; ms-office)",
    "Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.10325; Pro)",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36 Screenshot/1.0",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; claude-web/1.0; +info@example.com)",
    "Mozilla/5.0 (pc-x86_64-linux-gnu) Siege/3.0.8",
    "Mozilla/5.0 (linux) AppleWebKit/537.36 (KHTML, like Gecko) jsdom/20.0.0",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/117.0.0.0 Safari/537.36 GTmetrix",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/78.0 Safari/537.36 SeoSiteCheckup "
    "(https://seositecheckup.com)",
    # A phone's name does not hide a robot's.
    "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0 "
    "Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (Linux; Android 8.0; Pixel 2 Build/OPD3; Storebot-Google/1.0) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/81.0 Mobile Safari/537.36",
    # Neither does a television's.
    "Mozilla/5.0 (SMART-TV; Linux; Tizen 6.0) AppleWebKit/537.36 (compatible; Googlebot/2.1) Safari/537.36",
    "Mozilla/5.0 (Web0S; Linux/SmartTV) HeadlessChrome/94.0 Safari/537.36",
    "smarttv_AFTKA (+https://example.com/crawler)",
    "citizen-aftermath/1.0 python",
    "Mozilla/5.0 (Linux; Android 9; compatible; SomeSpider) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/81.0",
]
PEOPLE = [
    BROWSER,
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 "
    "Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 15; CUBOT KINGKONG) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile "
    "Safari/537.36",
    "Mozilla/5.0 (Linux; Android 10; CUBOT X30) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/125.0.0.0 Mobile Safari/537.36",
    "Opera/9.80 (Android; Opera Mini/36.2/119.132; U; id) Presto/2.12.423 Version/12.16",
    "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0)",
    "Mozilla/5.0 (Linux; Android 13; Pixel 6 Build/TQ3A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 "
    "Chrome/116.0.0.0 Mobile Safari/537.36 MMWEBID/1 MicroMessenger/8.0.47.2560 WeChat/arm64 Process/tools Language/en",
    "Mozilla/5.0 (Web0S; Linux/SmartTV) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/94.0 Safari/537.36 WebAppManager",
    "Mozilla/5.0 (Linux armv7l) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/88.0 Safari/537.36 OPR/46.0.2207.0 "
    "OMI/4.21.4.112.Catcher4.49 VIDAA/6.0(Hisense;SmartTV;55A6G;MTK9602/V0000.01;UHD;55A6G)",
    "Mozilla/5.0 (Linux; Android 12; Google TV Streamer Build/UTTK) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120",
    "Mozilla/5.0 (Linux; Android 13; Discovery SE) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/127.0 Mobile ",
    "Mozilla/5.0 (Linux; Android 6.0; POWER BOT Build/MRA58K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/54.0",
    "Mozilla/5.0 (Linux; Android 9; moto g(7) Spider) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/96.0",
    "smarttv_AFTKA_Build_0017381305986_Chromium_88.0.4324.152",
    "OPR/22.0.1481.0 OMI/4.2.12.29, KreaTV/0.0.0.0 (ARRIS, IPC1100, wired)CM[00.01]",
    "Roku/DVP-9.10 (289.10E04111A)",
    "VIZIO-SmartCast/4.2 (V405-H9)",
    "HbbTV/1.4.1 (+DRM;Samsung;SmartTV2020:UTU7000;T-KTSU2DEUC-0822.10;KantSU2)",
    "Lynx/2.8.9rel.1 libwww-FM/2.14 SSL-MM/1.4.1 OpenSSL/1.1.1d",
    "w3m/0.5.3",
    "w3m/0.5.3+git20190105",
    "Links (2.8; Linux 3.5.0 i686; GNU C 4.9; text)",
]


NAMES = {
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.4; +https://openai.com/gptbot)": "GPTBot",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot": (
        "ChatGPT-User"
    ),
    "Mozilla/5.0 (Linux; Android 6.0.1; C Bot Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 "
    "Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)": "Googlebot",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/121.0 Safari/537.36": (
        "HeadlessChrome"
    ),
    "Mozilla/5.0 (pc-x86_64-linux-gnu) Siege/3.0.8": "Siege",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 "
    "Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)": "Applebot",
    "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)": "facebookexternalhit",
    "python-requests/2.32": "python-requests",
    "<b>eve@example.com</b> https://example.com/?token=1 curl/8 me@example.com": "curl",
    "X" * 500 + "bot": "X" * 30,
    BROWSER: "other",
    "=1+1 \N{BULLET}": "other",
    " ": "none",
}


@pytest.mark.parametrize("user_agent", NAMES)
def test_a_robot_has_the_name_that_it_gives_itself(user_agent: str) -> None:
    assert bots.name_of(user_agent) == NAMES[user_agent]


@pytest.mark.parametrize("user_agent", ROBOTS)
def test_names_of_robots_are_short_and_of_few_characters(user_agent: str) -> None:
    assert re.fullmatch(r"[A-Za-z][\w.-]{2,29}", bots.name_of(user_agent), re.ASCII)


def refuses_firefox(user_agent: str) -> bool:
    return "Firefox" in user_agent


@pytest.mark.parametrize("user_agent", ROBOTS)
def test_robots_are_known(user_agent: str) -> None:
    assert bots.is_bot(user_agent)


@pytest.mark.parametrize("user_agent", PEOPLE)
def test_people_are_known(user_agent: str) -> None:
    assert not bots.is_bot(user_agent)


def test_an_endless_agent_is_judged_by_its_beginning() -> None:
    assert refusal("GET", 200, {"HTTP_USER_AGENT": BROWSER + " x" * 10_000 + " Googlebot"}) is None


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


def test_a_judge_that_fails_breaks_no_page(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.READTRACK = {"IS_BOT": "tests.hits.test_bots.fails_on_short"}
    assert not bots.is_bot("Mozilla/5.0 CFNetwork")
    assert caplog.text == ""
    assert bots.is_bot("abc")
    assert bots.is_bot("abd")
    assert [record.getMessage() for record in caplog.records] == [
        "tests.hits.test_bots.fails_on_short failed; is-bot is asked instead."
    ]
    assert "IndexError" in caplog.text


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"BOTS": ["(", "fine"]}, "readtrack.E020"),
        ({"NOT_BOTS": ["*", "fine"]}, "readtrack.E020"),
        ({"IS_BOT": "tests.nowhere.judge"}, "readtrack.E041"),
        ({"IS_BOT": "tests.hits.test_bots.ROBOTS"}, "readtrack.E041"),
        ({"PROXIES": ["nonsense"]}, "readtrack.E022"),
        ({"COOKIE": ""}, "readtrack.E023"),
        ({"COOKIE": "two words"}, "readtrack.E023"),
        ({"ANONYMOUS": "maybe"}, "readtrack.E002"),
        ({"CONSENT": "tests.nowhere.may"}, "readtrack.E041"),
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
