"""Dimensions: short values out of a request, whatever the request sends."""

import logging
from typing import Any

import pytest
from django.http import HttpRequest
from django.test import RequestFactory, override_settings
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from readtrack.numbers import dimensions
from tests.support.rows import each_row

WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
ANDROID = "Mozilla/5.0 (Linux; Android 14; {}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 {}Safari/537.36"
APPLE = (
    "Mozilla/5.0 ({}; CPU {}OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Mobile/15E148"
    " Safari/604.1"
)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def plan(request: HttpRequest) -> str:
    """Returns the value of a dimension of the site's own."""
    return request.headers.get("X-Plan", "free")


def nothing(request: HttpRequest) -> None:
    """Returns no value."""


def own(request: HttpRequest) -> Any:
    """Returns the value that a test gave the request."""
    return request.own  # type: ignore[attr-defined]


def line_of(value: Any) -> str:
    request = RequestFactory().get("/")
    request.own = value  # type: ignore[attr-defined]
    return dict(dimensions.values(request)).get("own", "")


def broken(request: HttpRequest) -> str:
    """Raises an error."""
    raise RuntimeError("no")


UNCALLABLE = 5


def values(settings: Settings, *paths: str, **headers: str) -> dict[str, str]:
    settings.READTRACK = {"NUMBERS": {"dimensions": paths}}
    return dict(dimensions.values(RequestFactory(headers=headers).get("/", REMOTE_ADDR="8.8.8.8")))


@each_row(
    ("agent", "device", "browser", "system"),
    [
        (WINDOWS, "desktop", "Chrome", "Windows"),
        (FIREFOX, "desktop", "Firefox", "Linux"),
        (ANDROID.format("SM-S911B", "Mobile "), "phone", "Chrome Mobile", "Android"),
        (ANDROID.format("SM-X200", ""), "tablet", "Chrome", "Android"),
        (APPLE.format("iPhone", "iPhone "), "phone", "Mobile Safari", "iOS"),
        (APPLE.format("iPad", ""), "tablet", "Mobile Safari", "iOS"),
        ("x", None, None, None),
        ("", None, None, None),
    ],
)
def test_a_user_agent_says_device_browser_and_system(
    settings: Settings, agent: str, device: str, browser: str, system: str
) -> None:
    found = values(settings, "device", "browser", "os", **{"User-Agent": agent})
    assert (found.get("device"), found.get("browser"), found.get("os")) == (device, browser, system)


@pytest.mark.parametrize(
    ("referer", "host"),
    [
        (None, "direct"),
        ("https://www.Example.com:8443/a?b=c", "example.com"),
        ("https://m.example.com./", "example.com"),
        ("https://shop.example.com/", "shop.example.com"),
        ("https://l.example.com/", "l.example.com"),  # of no social network
        ("https://lm.facebook.com/", "facebook.com"),
        ("https://out.reddit.com/", "reddit.com"),
        ("https://m.com/", "m.com"),
        ("https://www.xn--mnchen-3ya.example/", "münchen.example"),
        ("https://xn--a.example/", "xn--a.example"),  # which is no text
        ("android-app://com.example/", "com.example"),
        ("nonsense", None),
        ("http://[", None),
        ("https://testserver:8443/other/", "internal"),  # a page of this host
    ],
)
def test_the_referrer_is_the_site_of_a_host(
    settings: Settings, referer: str | None, host: str | None
) -> None:
    assert (
        values(settings, "referrer", **({"Referer": referer} if referer else {})).get("referrer")
        == host
    )


def test_a_host_that_django_refuses_has_no_referrer(settings: Settings) -> None:
    assert values(settings, "referrer", Host="a b", Referer="https://example.com/") == {}


def test_the_country_is_found_by_address(settings: Settings) -> None:
    assert values(settings, "country") == {"country": "US"}


@pytest.mark.parametrize(
    ("code", "country"), [("de", "DE"), (" FR ", "FR"), ("XX", None), ("T1", None), ("ÄÖ", None)]
)
def test_the_country_comes_from_a_trusted_proxy_first(
    settings: Settings, code: str, country: str | None
) -> None:
    settings.READTRACK = {
        "NUMBERS": {"dimensions": ["country"], "country_header": "CF-IPCountry"},
    }
    request = RequestFactory().get("/", REMOTE_ADDR="8.8.8.8", HTTP_CF_IPCOUNTRY=code)
    assert dict(dimensions.values(request)).get("country") == country


def test_a_site_adds_dimensions_of_its_own(settings: Settings) -> None:
    found = values(
        settings,
        "tests.numbers.test_dimensions.plan",
        "tests.numbers.test_dimensions.nothing",
        **{"X-Plan": " gold\tplan\n"},
    )
    assert found == {"plan": "gold plan"}


@pytest.mark.parametrize(
    "path",
    [
        "tests.numbers.test_dimensions.broken",
        "tests.numbers.test_dimensions.missing",
        "missing.module",
    ],
)
def test_one_that_fails_is_left_out_and_logged(
    settings: Settings, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    with caplog.at_level(logging.ERROR, "readtrack"):
        assert values(settings, path, "referrer") == {"referrer": "direct"}
    assert f"The dimension {path} failed" in caplog.text


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        (None, ""),
        (7, "7"),
        ("  a \r\n\x00 b\u2028c\u202e ", "a b c"),
        ("x" * 100, "x" * 64),
        ("x" * 63 + " y", "x" * 63),
        ("\ud800", ""),
    ],
)
@override_settings(READTRACK={"NUMBERS": {"dimensions": ["tests.numbers.test_dimensions.own"]}})
def test_a_value_is_one_short_printable_line(value: Any, cleaned: str) -> None:
    assert line_of(value) == cleaned


@override_settings(READTRACK={"NUMBERS": {"dimensions": ["tests.numbers.test_dimensions.own"]}})
@given(st.text(max_size=600))
def test_any_value_becomes_short_and_printable(text: str) -> None:
    found = line_of(text)
    assert len(found) <= 64
    assert found.isprintable()
    found.encode()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("device", ""),
        ("country", ""),
        ("referrer", ""),
        ("tests.numbers.test_dimensions.plan", ""),
        ("plan", "doesn't look like a module path"),
        ("tests.numbers.test_dimensions.missing", "does not define"),
        ("tests.numbers.test_dimensions.UNCALLABLE", "not callable"),
    ],
)
def test_the_message_names_what_is_wrong_with_a_dimension(path: str, words: str) -> None:
    problem = dimensions.problem(path)
    assert bool(problem) is bool(words)
    assert words in problem


def test_a_missing_extra_is_said_only_where_it_is_needed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(dimensions.NEEDED, "country", "no_such_package.country_code")
    assert "pip install readtrack[dimensions]" in dimensions.problem("country")
    settings.READTRACK = {"NUMBERS": {"country_header": "CF-IPCountry"}}
    assert dimensions.problem("country") == ""
