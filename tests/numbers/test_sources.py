"""Sources: hosts, channels and campaigns out of a request, whatever the request sends."""

import unicodedata
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import pytest
from django.core import checks
from django.http import HttpRequest
from django.test import RequestFactory, override_settings
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pytest_django import Settings

from readtrack.numbers import dimensions, sources
from tests.support import factories
from tests.support.rows import each_row

DIMENSIONS = ["referrer", "channel", "campaign"]

# The caches whose keys visitors choose.
CACHES: list[Any] = [sources._cached_referrer, sources._cached_tags]

HOSTS = {
    "search": [
        "www.google.com",
        "google.de",
        "www.google.co.uk",
        "www.google.com.br",
        "news.google.com",
        "com.google.android.googlequicksearchbox",
        "www.bing.com",
        "duckduckgo.com",
        "html.duckduckgo.com",
        "r.search.yahoo.com",
        "search.yahoo.co.jp",
        "yandex.ru",
        "ya.ru",
        "www.baidu.com",
        "search.brave.com",
        "www.ecosia.org",
    ],
    "social": [
        "l.facebook.com",
        "m.facebook.com",
        "t.co",
        "x.com",
        "out.reddit.com",
        "www.linkedin.com",
        "de.pinterest.com",
        "pinterest.co.uk",
        "news.ycombinator.com",
        "org.telegram.messenger",
        "mastodon.social",
        "go.bsky.app",
    ],
    "mail": [
        "mail.google.com",
        "com.google.android.gm",
        "outlook.live.com",
        "eur01.safelinks.protection.outlook.com",
        "mail.yahoo.com",
        "mail.yahoo.co.jp",
        "deref-gmx.net",
        "webmail.example.org",
        "mail2.company.example",
    ],
    "assistants": [
        "chatgpt.com",
        "chat.openai.com",
        "www.perplexity.ai",
        "gemini.google.com",
        "claude.ai",
        "copilot.microsoft.com",
        "chat.mistral.ai",
        "edgeservices.bing.com",
        "duck.ai",
        "com.openai.chatgpt",
    ],
    "sites": [
        "news.example",
        "docs.google.com",
        "translate.google.com",
        "google.evil.example",
        "notgoogle.com",
        "google",
        "com",
        "mail.ru",
        "xx.com",
        "t.com",
        "192.0.2.1",
        "a" * 300,
        "." * 300,
        "google.com." * 30 + "evil.example",
    ],
}


def request(path: str = "/", *, host: str = "testserver", referrer: str = "") -> HttpRequest:
    headers = {"Host": host}
    if referrer:
        headers["Referer"] = referrer
    return RequestFactory(headers=headers).get(path)


def referrer_of(page: HttpRequest) -> str:
    return sources.source_of(page).referrer


def channel_of(page: HttpRequest) -> str:
    return sources.source_of(page).channel


@each_row(
    ("channel", "host"), [(channel, host) for channel, hosts in HOSTS.items() for host in hosts]
)
def test_a_host_has_a_channel(channel: str, host: str) -> None:
    assert sources.channel_of_host(host) == channel
    assert channel_of(request(referrer=f"https://{host}/a?b=c")) == channel


def test_every_channel_of_the_list_is_known_and_no_host_is_in_two() -> None:
    assert set(sources.CHANNELS_BY_HOST.values()) <= set(sources.CHANNELS)
    text = (Path(sources.__file__).parent / "sources.ini").read_text(encoding="utf-8")
    hosts = [word for line in text.splitlines() if line.startswith(" ") for word in line.split()]
    assert sorted(hosts) == sorted(sources.CHANNELS_BY_HOST)
    assert all(host == host.lower() for host in hosts)


@each_row(
    ("host", "referrer", "options", "expected"),
    [
        ("example.com", "https://example.com/a/", {}, "internal"),
        ("www.example.com", "https://example.com/", {}, "internal"),
        ("example.com", "http://www.example.com/", {}, "internal"),
        ("example.com:8000", "http://WWW.example.com:9000/", {}, "internal"),
        ("example.com", "https://shop.example.com/", {}, "shop.example.com"),
        ("example.com", "https://notexample.com/", {}, "notexample.com"),
        (
            "example.com",
            "https://shop.example.com/",
            {"NUMBERS": {"own_hosts": ["Shop.example.com"]}},
            "internal",
        ),
        (
            "example.com",
            "https://a.shop.example/",
            {"NUMBERS": {"own_hosts": [".shop.example"]}},
            "internal",
        ),
        (
            "example.com",
            "https://shop.example/",
            {"NUMBERS": {"own_hosts": [".shop.example"]}},
            "internal",
        ),
        (
            "example.com",
            "https://myshop.example/",
            {"NUMBERS": {"own_hosts": [".shop.example"]}},
            "myshop.example",
        ),
        (
            "example.com",
            "https://m.example.com/",
            {"COOKIE": {"domain": "example.com"}},
            "internal",
        ),
        (
            "example.com",
            "https://m.example.com/",
            {"COOKIE": {"domain": ".example.com"}},
            "internal",
        ),
        ("example.com", "https://t.co/", {"COOKIE": {"domain": "example.com"}}, "t.co"),
    ],
)
def test_pages_of_own_hosts_are_internal(
    settings: Settings, host: str, referrer: str, options: dict[str, Any], expected: str
) -> None:
    settings.ALLOWED_HOSTS = [".example.com"]
    settings.READTRACK = options
    page = request(host=host, referrer=referrer)
    assert referrer_of(page) == expected
    assert (channel_of(page) == "internal") is (expected == "internal")


@pytest.mark.parametrize(
    ("host", "is_wrong"),
    [
        ("shop.example.com", False),
        (".example.com", False),
        ("xn--bcher-kva.example", False),
        ("localhost", False),
        ("https://shop.example.com", True),
        ("shop.example.com:8000", True),
        ("shop.example.com/", True),
        ("*", True),
        ("", True),
    ],
)
@pytest.mark.django_db
def test_a_check_refuses_what_is_no_host(settings: Settings, host: str, *, is_wrong: bool) -> None:
    settings.READTRACK = {"NUMBERS": {"own_hosts": [host]}}
    found = [check.id for check in checks.run_checks() if check.id == "readtrack.E063"]
    assert bool(found) is is_wrong


@each_row(
    ("query", "campaign"),
    [
        (
            "utm_source=newsletter&utm_medium=email&utm_campaign=spring",
            "newsletter / email / spring",
        ),
        ("utm_campaign=Spring&page=2&utm_source=Newsletter", "newsletter / spring"),
        ("ref=producthunt", "producthunt"),
        ("ref=other&utm_source=newsletter", "newsletter"),
        ("utm_campaign=a%20b%0d%0ac", "a b c"),
        ("utm_campaign=%C3%BCber", "über"),
        ("utm_campaign=u%CC%88ber", "über"),  # as two characters
        ("utm_campaign=spring%2520sale", "spring sale"),  # escaped twice
        ("utm_campaign=50%25", "50%"),
        ("utm_source=letter&amp;utm_medium=email&amp;utm_campaign=may", "letter / email / may"),
        ("utm_campaign=%ff%00%e2%80%ae", "\N{REPLACEMENT CHARACTER}"),
        (
            "utm_source=linkedin_company_page_de&utm_medium=organic_social_x&utm_campaign="
            + "x" * 90,
            "linkedin_company_pag / organic_soci / " + "x" * 26,
        ),
        ("utm_source=&utm_campaign=", ""),
        ("page=2", ""),
        ("href=1", ""),
        ("", ""),
        ("a&" * 5_000 + "utm_source=late", ""),
    ],
)
def test_a_campaign_is_named_by_the_pages_address(
    settings: Settings, query: str, campaign: str
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["campaign"]}}
    values = dict(dimensions.values(request(f"/?{query}")))
    assert values.get("campaign", "") == campaign


@each_row(
    ("query", "referrer", "channel"),
    [
        ("utm_source=newsletter&utm_campaign=1", "", "mail"),
        ("utm_source=weekly&utm_medium=E-Mail", "", "mail"),
        ("utm_medium=email", "https://intranet.example/", "mail"),
        ("utm_medium=e_mail", "", "mail"),
        ("utm_medium=e%20mail", "", "mail"),
        ("utm_source=letter&amp;utm_medium=email", "", "mail"),
        ("utm_source=chatgpt.com", "", "assistants"),
        ("utm_source=Facebook&utm_medium=cpc", "", "social"),
        ("utm_source=google&utm_medium=cpc", "", "search"),
        ("ref=twitter", "", "social"),
        ("utm_source=partner&utm_medium=social", "", "social"),
        ("utm_source=partner&utm_medium=banner", "", "direct"),
        ("utm_source=partner", "https://partner.example/", "sites"),
        # What the browser says comes first.
        ("utm_medium=email", "https://www.google.com/", "search"),
        ("utm_medium=email", "https://testserver/", "internal"),
        ("", "", "direct"),
        ("", "nonsense", ""),
        ("", "http://[", ""),
    ],
)
def test_a_campaign_tells_the_channel_where_the_referrer_does_not(
    query: str, referrer: str, channel: str
) -> None:
    assert channel_of(request(f"/?{query}", referrer=referrer)) == channel


@given(query=st.text(max_size=300), referrer=st.text(max_size=300))
def test_any_address_and_referrer_become_short_values(query: str, referrer: str) -> None:
    page = request()
    page.META["QUERY_STRING"] = f"utm_source={query}&utm_campaign={quote(query, errors='replace')}"
    page.META["HTTP_REFERER"] = f"https://{referrer}"
    assert channel_of(page) in {*sources.CHANNELS, ""}
    assert len(referrer_of(page)) <= 253
    assert len(sources.source_of(page).campaign) <= 20 + 3 + 256


def plain_referrer(header: str) -> str:
    """Returns the referrer as it is computed without caches, from the whole header."""
    if not header:
        return "direct"
    try:
        host = urlsplit(header).hostname or ""
    except ValueError:
        return ""
    host = host.removesuffix(".")[:253]
    return "internal" if host in {"testserver", "www.testserver"} else sources.site_of(host)


def plain_campaign(query: str) -> str:
    """Returns the campaign as it is computed without caches, from the whole query."""
    query = query[:2_048]
    if "utm_" not in query and "ref=" not in query:
        return ""
    found = dict(parse_qsl(query.replace("&amp;", "&")))
    values = [
        (found.get("utm_source") or found.get("ref", ""), 20),
        (found.get("utm_medium", ""), 12),
        (found.get("utm_campaign", ""), 256),
    ]
    parts = []
    for value, length in values:
        text = unquote(value) if "%" in value else value
        parts.append(unicodedata.normalize("NFC", text).lower().strip()[:length])
    return " / ".join(filter(None, parts))


# Pieces of which addresses are made, good and bad ones.
ADDRESSES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "https://",
                "http:",
                "//",
                "://",
                "/",
                "?",
                "#",
                "@",
                ":",
                "[",
                "]",
                "[::1]",
                "\t",
                ".",
                "www.",
                "m.",
                "lm.",
                "facebook.com",
                "testserver",
                "xn--a",
                "news.example",
                "mailto:",
            ]
        ),
        st.text(max_size=3),
        st.just("a" * 300),
    ),
    max_size=8,
).map("".join)
QUERIES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "utm_source",
                "utm_medium",
                "utm_campaign",
                "ref",
                "utm%5Fsource",
                "utm_source+",
                "utm_id",
                "=",
                "=",
                "=",
                "&",
                "&",
                "&amp;",
                ";",
                "%",
                "%25",
                "%2520",
                "mail",
                "Spring",
                "fbclid=1",
                "u%CC%88",
            ]
        ),
        st.text(max_size=3),
        st.just("b" * 300),
        st.just("c" * 2_000),
    ),
    max_size=14,
).map("".join)


@settings(max_examples=300)
@given(header=ADDRESSES, query=QUERIES)
@example(header="a:/\t/host.example/b://c/", query="utm_=&utm%5Fsource=x&ref=y")
@example(header="//host.example/?u=https://testserver/a", query="utm_source=a&utm_source=")
@example(header="https://host.example?u=https://testserver/a", query="&amp;ref=a&amp;utm_medium=b")
@example(header="https://me:secret@" + "a" * 300 + ".example/", query="ref=" + "x" * 400)
def test_sources_are_those_of_the_plain_computation(header: str, query: str) -> None:
    page = request()
    page.META |= {"HTTP_REFERER": header, "QUERY_STRING": query}
    for _ in ("computed", "out of the caches"):
        found = sources.source_of(page)
        assert (found.referrer, found.campaign) == (plain_referrer(header), plain_campaign(query))


@pytest.mark.parametrize("part", ["header", "host", "query"])
def test_what_a_visitor_made_long_is_not_kept(part: str) -> None:
    page = request(referrer="https://news.example/")
    sources.source_of(page)
    sizes_before = [cache.cache_info().currsize for cache in CACHES]
    page.META |= {
        "header": {"HTTP_REFERER": "https://" + "x" * 400},
        "host": {"HTTP_HOST": "x" * 400 + ".example.com"},
        "query": {"QUERY_STRING": "ref=a&utm_campaign=" + "x" * 400},
    }[part]
    with override_settings(ALLOWED_HOSTS=["testserver", ".example.com"]):
        sources.source_of(page)
    assert [cache.cache_info().currsize for cache in CACHES] == sizes_before


@pytest.mark.parametrize("header", ["", "https://news.example/"])
def test_a_source_seen_before_is_not_parsed_again(
    monkeypatch: pytest.MonkeyPatch, header: str
) -> None:
    pages = [request(f"/?fbclid={number}&utm_source=letter", referrer=header) for number in (1, 2)]
    if header:
        pages[1].META["HTTP_REFERER"] = f"{header}another/page/"
    first = dimensions.values(pages[0])
    for name in ("urlsplit", "parse_qsl", "site_of", "channel_of_host"):
        monkeypatch.delattr(sources, name)
    assert dimensions.values(pages[1]) == first


@pytest.mark.needs_parts("numbers")
@pytest.mark.django_db
def test_views_are_broken_down_by_channel_and_campaign(settings: Settings) -> None:
    from readtrack.numbers import reports as numbers_reports

    settings.READTRACK = {"NUMBERS": {"dimensions": DIMENSIONS}}
    post = factories.post()
    path = f"/posts/{post.pk}/"
    first, second, third = (factories.browser(REMOTE_ADDR=f"192.0.2.{n}") for n in range(3))
    first.get(f"{path}?utm_source=newsletter&utm_medium=email")
    second.get(path, headers={"Referer": "https://www.perplexity.ai/"})
    third.get(path, headers={"Referer": "https://news.example/"})
    assert numbers_reports.breakdown(post, "channel") == {"mail": 1, "assistants": 1, "sites": 1}
    assert numbers_reports.breakdown(post, "campaign") == {"newsletter / email": 1}
    assert numbers_reports.breakdown(post, "referrer") == {
        "direct": 1,
        "perplexity.ai": 1,
        "news.example": 1,
    }


@pytest.mark.needs_parts("numbers")
@pytest.mark.django_db
def test_made_up_campaigns_take_no_more_than_their_share(settings: Settings) -> None:
    from readtrack.numbers import reports as numbers_reports

    settings.READTRACK = {"NUMBERS": {"dimensions": ["campaign"]}, "RATE": (0, 10)}
    post = factories.post()
    for number in range(70):
        browser = factories.browser(REMOTE_ADDR=f"192.0.2.{number}")
        browser.get(f"/posts/{post.pk}/?utm_campaign={number}{'x' * 3_000}")
    counts = numbers_reports.breakdown(post, "campaign")
    assert (len(counts), sum(counts.values())) == (50, 70)
    assert max(map(len, counts)) == dimensions.LENGTH
