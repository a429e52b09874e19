"""A setting ALERTS that cannot be used is found."""

from typing import Any

import pytest
from pytest_django import Settings

from tests.alerts.receiver import SECRET
from tests.checks.findings import found, the_message
from tests.support.rows import each_row

SITE = "https://example.com"
HOOK = {"url": "https://hooks.example.com/x", "secret": SECRET}
CHAT = {"url": "https://chat.example.com/x", "form": "text"}


@pytest.mark.parametrize(
    "setting",
    [
        {"site": SITE},
        {"site": "http://localhost:8000/shop/", "mail": []},
        {"site": SITE, "mail": ["a@example.com"], "webhook": HOOK},
        {"site": SITE, "webhook": {**HOOK, "url": "http://127.0.0.1:9/"}},
        {"site": SITE, "webhook": {**HOOK, "url": "http://[::1]:9/"}},
        {"site": SITE, "webhook": {**HOOK, "form": "signed"}},
        {"site": SITE, "webhook": CHAT},
        {"site": SITE, "story": 2.5, "least": 1, "site_fall": 10},
    ],
    ids=str,
)
def test_a_setting_that_can_be_used_is_right(settings: Settings, setting: dict[str, Any]) -> None:
    settings.READTRACK = {"ALERTS": setting}
    assert found() == []


@each_row(
    ("setting", "part"),
    [
        ({"mail": ["a@example.com"]}, "'site'"),
        ({"site": "www.example.com"}, "'site'"),
        ({"site": "https://user:pass@example.com"}, "'site'"),
        ({"site": "https://example.com/?a=b"}, "'site'"),
        ({"site": 5}, "'site'"),
        ({"site": SITE, "mails": []}, "'mails'"),
        ({"site": SITE, "mail": "a@example.com"}, "'mail'"),
        ({"site": SITE, "mail": ["a"]}, "'mail'"),
        ({"site": SITE, "mail": [None]}, "'mail'"),
        ({"site": SITE, "story": 1}, "'story'"),
        ({"site": SITE, "story": float("inf")}, "'story'"),
        ({"site": SITE, "story": True}, "'story'"),
        ({"site": SITE, "site_fall": "3"}, "'site_fall'"),
        ({"site": SITE, "least": 0}, "'least'"),
        ({"site": SITE, "least": 2.5}, "'least'"),
        ({"site": SITE, "webhook": "https://example.com"}, "'webhook'"),
        ({"site": SITE, "webhook": {"url": "https://example.com"}}, "'secret'"),
        ({"site": SITE, "webhook": {**HOOK, "url": "http://example.com/"}}, "'url'"),
        ({"site": SITE, "webhook": {**HOOK, "url": "http://127.0.0.1.example.com/"}}, "'url'"),
        ({"site": SITE, "webhook": {**HOOK, "url": "file:///etc/passwd"}}, "'url'"),
        ({"site": SITE, "webhook": {**HOOK, "url": "https://a@example.com/"}}, "'url'"),
        ({"site": SITE, "webhook": {**HOOK, "url": "https://example.com:x/"}}, "'url'"),
        ({"site": SITE, "webhook": {**HOOK, "url": "https:///x"}}, "'url'"),
        ({"site": SITE, "webhook": {**HOOK, "secret": "whsec_c2hvcnQ="}}, "'secret'"),
        ({"site": SITE, "webhook": {**HOOK, "secret": "MfKQ9r8GKYqrTwjUPD8I"}}, "'secret'"),
        ({"site": SITE, "webhook": {**HOOK, "secret": "whsec_é"}}, "'secret'"),
        ({"site": SITE, "webhook": {**HOOK, "secret": None}}, "'secret'"),
        ({"site": SITE, "webhook": {**HOOK, "form": "text"}}, "has no 'secret'"),
        ({"site": SITE, "webhook": {**CHAT, "form": "signed"}}, "'secret'"),
        ({"site": SITE, "webhook": {**CHAT, "form": "slack"}}, "none of 'signed', 'text'"),
        ({"site": SITE, "webhook": {**CHAT, "form": ["text"]}}, "none of 'signed', 'text'"),
        ({"site": SITE, "webhook": {"form": "text"}}, "'url'"),
        ({"site": SITE, "webhook": {**CHAT, "channel": "news"}}, "'webhook' is no dict"),
    ],
)
def test_a_setting_that_cannot_be_used_is_found(
    settings: Settings, setting: dict[str, Any], part: str
) -> None:
    settings.READTRACK = {"ALERTS": setting}
    message = the_message("readtrack.E075").msg
    assert part in message
    assert "MfKQ" not in message  # a secret


def test_while_the_site_is_developed_a_webhook_needs_no_https(settings: Settings) -> None:
    settings.READTRACK = {
        "ALERTS": {"site": SITE, "webhook": {**HOOK, "url": "http://example.com/"}}
    }
    assert found() == ["readtrack.E075"]
    settings.DEBUG = True
    assert "readtrack.E075" not in found()
