"""A setting METRICS that opens the metrics to nobody is found, and so is a missing package."""

import sys
from typing import Any

import pytest
from pytest_django import Settings

from tests.checks.findings import found, the_message
from tests.support.rows import each_row

TOKEN = "a-secret-that-nobody-guesses"


@each_row(
    ("setting", "part"),
    [
        ({"token": TOKEN}, ""),
        ({"networks": ["127.0.0.1", "10.0.0.0/8", "::1", "2001:db8::/32"]}, ""),
        ({"token": TOKEN, "networks": ("10.1.2.3",)}, ""),
        ({"token": ""}, "'token'"),
        ({"token": "fifteen-letters"}, "'token'"),
        ({"token": "with spaces in the token"}, "'token'"),
        ({"token": b"bytes-that-are-no-text-but-long"}, "'token'"),
        ({"networks": "10.0.0.0/8"}, "'networks'"),
        ({"networks": []}, "'networks'"),
        ({"networks": ["10.0.0.0/33"]}, "'10.0.0.0/33'"),
        ({"networks": [10]}, "10 is neither"),
        ({"tokken": TOKEN}, "'tokken'"),
    ],
)
def test_a_setting_that_lets_nobody_scrape_is_found(
    settings: Settings, setting: dict[str, Any], part: str
) -> None:
    settings.READTRACK = {"METRICS": setting}
    expected = ["readtrack.E072"] if part else []
    assert [check_id for check_id in found() if check_id != "readtrack.W074"] == expected
    if part:
        message = the_message("readtrack.E072").msg
        assert part in message
        assert "letters" not in message  # a token is a secret


def test_a_missing_package_is_found(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    assert found() == []
    settings.READTRACK = {"METRICS": {"token": TOKEN}}
    assert found() == ["readtrack.E073"]
    assert "readtrack[metrics]" in str(the_message("readtrack.E073").hint)


@pytest.mark.parametrize(
    ("setting", "is_open"),
    [
        ({"networks": ["10.0.0.0/8"]}, True),
        ({"networks": ["203.0.113.9", "127.0.0.1"]}, True),
        ({"networks": ["fd00::/8"]}, True),
        ({"networks": ["8.8.8.8", "2a00::/16"]}, False),
        ({"networks": ["10.0.0.0/8"], "token": TOKEN}, False),
        ({"token": TOKEN}, False),
        ({}, False),
    ],
    ids=str,
)
def test_a_private_network_without_a_token_is_warned_of(
    settings: Settings, setting: dict[str, Any], is_open: bool
) -> None:
    settings.READTRACK = {"METRICS": setting}
    assert found() == (["readtrack.W074"] if is_open else [])
