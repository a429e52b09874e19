"""Robots and assistants are recognised by their user agent, by a signature and by the settings."""

import re

import pytest
from django.core import checks
from django.test import Client
from pytest_django import Settings

from readtrack import reports
from readtrack.hits import bots
from readtrack.hits.hit import refusal
from readtrack.store.skips import skip_buffer
from tests.support import factories
from tests.support.factories import BROWSER
from tests.support.rows import each_row

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
    # Browsers with an engine of their own
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:6.8) Goanna/20250402 PaleMoon/33.7.0",
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Goanna/6.8 Firefox/128.0 PaleMoon/33.7.0",
    "Mozilla/5.0 (X11; Linux x86_64; rv:6.7) Goanna/20240801 Basilisk/20240801",
    "Mozilla/5.0 (Windows NT 6.1; Win64; x64; rv:4.8) Goanna/20230304 K-Meleon/76.4.7",
    "Mozilla/5.0 (X11; Linux x86_64) NetSurf/3.11",
    "NetSurf/3.10 (Linux)",
    "Mozilla/5.0 (Linux; x86_64) Ladybird/1.0",
    "Mozilla/5.0 (Linux; AArch64) LibWeb+LibJS/1.0 Ladybird/1.0",
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Servo/1.0 Firefox/128.0",
    "Mozilla/5.0 (X11; Linux x86_64) EkiohFlow/5.7.4.30559 Flow/5.7.4 (like Gecko Firefox/53.0 rv:53.0)",
    "Dillo/3.2.0",
    "Mozilla/4.0 (compatible; Dillo 3.0)",
    "Mozilla/5.0 (compatible; IBrowse 3.0; AmigaOS4.0)",
    "URL/Emacs Emacs/29.1 (X11; x86_64-pc-linux-gnu)",
    # Browsers within apps
    "[FBAN/FB4A;FBAV/263.0.0.46.121;FBBV/205281663;FBDM/{density=2.0,width=720,height=1187};FBLC/en_US;FBRV/206347851]",
    "LightSpeed [FBAN/MessengerLiteForiOS;FBAV/255.0.0.30.124;FBBV/202164847;FBDV/iPhone10,4;FBMD/iPhone;FBSN/iOS]",
    "Instagram 5.0.2 (iPhone5,1; iPhone OS 7_0_4; en_US; en) AppleWebKit/420+",
    "Pinterest for iOS/7.11 (iPhone7,2; 12.1.4)",
    "com.google.android.apps.searchlite/101032 (Linux; U; Android 8.1.0; ru_RU; M580; Build/O11019; Cronet/74.0.3729.182)",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 10_0 like Mac OS X) AppleWebKit/602.1.43 (KHTML, like Gecko) AppleNews/607",
    "Mozilla/5.0 (Linux; Android 9; KT20201188 Build/PPR1.180610.011; wv) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Version/4.0 Chrome/89.0 Mobile Safari/537.36 SGInfo/720/1408/2.0 SogouSearch Android1.0 version3.0 NoHead",
    # A phone, and a browser on Firefox's engine
    "Mozilla/5.0 (Linux; Android 7.1.1; Comet) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/91.0.4472.164 Mobile",
    "Mozilla/5.0 (Windows NT 6.2; WOW64; rv:11.0) Gecko/20100101 Firefox/11.0 CometBird/11.0",
]
ASSISTANTS = [
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ChatGPT-Browser/1.0; +https://openai.com/bot)",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Claude-User/1.0; +Claude-User@anthropic.com)",
    "Claude-User (claude-code/2.1.86; +https://support.anthropic.com/)",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Perplexity-User/1.0; "
    "+https://perplexity.ai/perplexity-user)",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; PerplexityUser/1.0; +https://perplexity.ai)",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; MistralAI-User/1.0; +https://docs.mistral.ai/robots)",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; Kimi-User/1.0; "
    "+https://www.kimi.com/policies/kimi-crawlers",
    "Mozilla/5.0 (compatible; Amzn-User; +https://developer.amazon.com/)",
    "DuckAssistBot/1.2; (+http://duckduckgo.com/duckassistbot.html)",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Gemini-Deep-Research; "
    "+https://gemini.google/overview/deep-research/) Chrome/135.0.0.0 Safari/537.36",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko; compatible; Google-Agent)",
    "Mozilla/5.0 (compatible; Google-NotebookLM; +https://notebooklm.google.com/)",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0 Mobile Safari/537.36 "
    "(compatible; Google-GeminiNotebook)",
    "meta-externalfetcher/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)",
    "kagi-fetcher/1.0",
    "GitHubCopilotChat/0.8.0",
    "ModelContextProtocol/1.0 (User-Specified; +https://github.com/modelcontextprotocol/servers)",
    # Browsers that an assistant drives
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/132.0.0.0 "
    "Safari/537.36; Manus-User/1.0",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 Safari/537.36; Devin/1.0; "
    "+https://devin.ai",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Claude/1.1.381 "
    "Chrome/142.0.7444.265 Electron/39.8.5 Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 "
    "Comet/1.2",
]
# Signatures of requests (RFC 9421), as assistants with a browser's user agent send them.
SIGNATURES: list[dict[str, str]] = [
    {"Signature-Agent": '"https://chatgpt.com"'},
    {"Signature-Agent": 'agent="https://agent.bot.goog"'},
    {"Signature-Agent": '"https://signature-agent.test"; type=x'},
    {"Signature-Agent": ""},
    {
        "Signature-Input": 'sig1=("@authority" "signature-agent");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJ'
        'T5SolqXBCW38r0U";alg="ed25519";expires=1735693200;tag="web-bot-auth"',
        "Signature": "sig1=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:",
    },
    {"Signature-Input": "nonsense"},
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


@each_row("user_agent", NAMES)
def test_a_robot_has_the_name_that_it_gives_itself(user_agent: str) -> None:
    assert bots.name_of(user_agent) == NAMES[user_agent]


@each_row("user_agent", ROBOTS)
def test_names_of_robots_are_short_and_of_few_characters(user_agent: str) -> None:
    assert re.fullmatch(r"[A-Za-z][\w.-]{2,29}", bots.name_of(user_agent), re.ASCII)


def refuses_firefox(user_agent: str) -> bool:
    return "Firefox" in user_agent


@each_row("user_agent", ROBOTS)
def test_robots_are_known(user_agent: str) -> None:
    assert bots.reason_of(user_agent) == "bot"


@each_row("user_agent", PEOPLE)
def test_people_are_known(user_agent: str) -> None:
    assert bots.reason_of(user_agent) is None


@each_row("is_anonymous", [True, False])
@each_row("user_agent", ASSISTANTS)
def test_assistants_are_known_and_read_for_signed_in_users_too(
    user_agent: str, *, is_anonymous: bool
) -> None:
    meta = {"HTTP_USER_AGENT": user_agent}
    assert refusal("GET", 200, meta, is_anonymous=is_anonymous) == "agent"


@pytest.mark.parametrize("user_agent", [PEOPLE[0], PEOPLE[1], PEOPLE[2], ROBOTS[2], ""])
@pytest.mark.parametrize("headers", SIGNATURES)
@pytest.mark.django_db
def test_whoever_signs_is_an_assistant(headers: dict[str, str], user_agent: str) -> None:
    post = factories.post()
    for user in (None, factories.user()):
        browser = factories.browser(user, headers={"User-Agent": user_agent, **headers})
        browser.get(f"/posts/{post.pk}/")
    skip_buffer.send_rest()
    assert reports.views([post]) == {post: 0}
    assert reports.skips()["agent"] == 2


@pytest.mark.django_db
def test_an_assistant_that_reads_for_a_user_leaves_the_dot() -> None:
    category = factories.category()
    user = factories.user()
    signed = factories.browser(user, headers={"User-Agent": BROWSER, **SIGNATURES[0]})
    signed.get(f"/categories/{category.pk}/")
    assert reports.unread(user, [category]) == {category}
    factories.browser(user).get(f"/categories/{category.pk}/")
    assert reports.unread(user, [category]) == set()


def test_a_site_decides_about_assistants(settings: Settings) -> None:
    signed = {"HTTP_USER_AGENT": BROWSER, "HTTP_SIGNATURE_INPUT": "x"}
    settings.READTRACK = {"BOTS": {"people": ["Firefox", "Claude-User"]}}
    assert refusal("GET", 200, signed) is None  # such as behind a gateway that signs
    assert [bots.reason_of(agent) for agent in ASSISTANTS[:3]] == ["agent", "agent", None]
    settings.READTRACK = {"BOTS": {"more": ["ChatGPT-User"]}}
    assert refusal("GET", 200, signed) == "agent"
    assert [bots.reason_of(agent) for agent in ASSISTANTS[:3]] == ["bot", "agent", "agent"]


def test_an_endless_agent_is_judged_by_its_beginning() -> None:
    assert refusal("GET", 200, {"HTTP_USER_AGENT": BROWSER + " x" * 10_000 + " Googlebot"}) is None


def test_a_site_adds_and_exempts_patterns(settings: Settings) -> None:
    settings.READTRACK = {"BOTS": {"more": ["firefox/14.", "(?i)acme"], "people": [r"^curl/8\."]}}
    assert bots.reason_of(BROWSER)
    assert bots.reason_of("Mozilla/5.0 ACME Chrome/142.0")
    assert not bots.reason_of("curl/8.5.0")
    assert bots.reason_of("curl/7.1")
    settings.READTRACK = {}
    assert not bots.reason_of(BROWSER)


def test_a_site_gives_its_own_judge(settings: Settings) -> None:
    settings.READTRACK = {"BOTS": {"function": "tests.hits.test_bots.refuses_firefox"}}
    assert bots.reason_of(BROWSER)
    assert not bots.reason_of("curl/8.5.0")
    assert bots.reason_of("")


def fails_on_short(user_agent: str) -> bool:
    return not user_agent[3]


def test_a_judge_that_fails_breaks_no_page(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.READTRACK = {"BOTS": {"function": "tests.hits.test_bots.fails_on_short"}}
    assert not bots.reason_of("Mozilla/5.0 CFNetwork")
    assert caplog.text == ""
    assert bots.reason_of("abc")
    assert bots.reason_of("abd")
    assert [record.getMessage() for record in caplog.records] == [
        "tests.hits.test_bots.fails_on_short failed; is-bot is asked instead."
    ]
    assert "IndexError" in caplog.text


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"BOTS": {"more": ["(", "fine"]}}, "readtrack.E020"),
        ({"BOTS": {"people": ["*", "fine"]}}, "readtrack.E020"),
        ({"BOTS": {"function": "tests.nowhere.judge"}}, "readtrack.E041"),
        ({"BOTS": {"function": "tests.hits.test_bots.ROBOTS"}}, "readtrack.E041"),
        ({"PROXIES": ["nonsense"]}, "readtrack.E022"),
        ({"COOKIE": {"name": ""}}, "readtrack.E023"),
        ({"COOKIE": {"name": "two words"}}, "readtrack.E023"),
        ({"ANONYMOUS": "maybe"}, "readtrack.E002"),
        ({"COOKIE": {"consent": "tests.nowhere.may"}}, "readtrack.E041"),
    ],
)
@pytest.mark.django_db
def test_a_bad_setting_is_a_system_check_and_no_error_of_a_page(
    settings: Settings, client: Client, options: dict[str, object], problem: str
) -> None:
    settings.READTRACK = options
    assert [check.id for check in checks.run_checks() if check.id == problem]
    if options.get("COOKIE") != {"name": "two words"}:
        page = client.get(f"/posts/{factories.post().pk}/", headers={"User-Agent": BROWSER})
        assert page.status_code == 200
