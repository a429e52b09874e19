"""ALERTS and DIGEST take the address of the site in one form, and link to it alike."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import set_script_prefix
from pytest_django import Settings

from readtrack.alerts import watching
from readtrack.checks.setup import check_setup
from readtrack.digest import mail
from readtrack.site_address import absolute
from tests.support.rows import each_row

ADMIN = "admin/readtrack/dashboard/"


@pytest.fixture
def script_name() -> Iterator[Any]:
    """Returns a function that sets the path below which Django knows that it runs."""
    yield set_script_prefix
    set_script_prefix("/")


@pytest.mark.parametrize(
    ("prefix", "site", "beginning"),
    [
        ("/", "https://example.com", "https://example.com/"),
        ("/", "https://example.com/", "https://example.com/"),
        ("/", "https://example.com:8000", "https://example.com:8000/"),
        # Known to Django by FORCE_SCRIPT_NAME, to the site's setting, or to both.
        ("/shop/", "https://example.com", "https://example.com/shop/"),
        ("/shop/", "https://example.com/shop", "https://example.com/shop/"),
        ("/", "https://example.com/shop/", "https://example.com/shop/"),
        # A path whose first part has the name of the script.
        ("/", "https://example.com/admin", "https://example.com/admin/"),
        ("/admin/", "https://example.com/admin", "https://example.com/admin/"),
    ],
)
def test_links_of_alerts_and_mails_begin_alike(
    settings: Settings, script_name: Any, prefix: str, site: str, beginning: str
) -> None:
    script_name(prefix)
    settings.READTRACK = {
        "ALERTS": {"site": site, "mail": []},
        "DIGEST": {"site": site, "from": "numbers@example.com"},
    }
    assert check_setup(None) == []
    address = watching._address("readtrack_dashboard_changelist")
    assert address == f"{beginning}{ADMIN}"
    assert mail._absolute(f"{prefix}{ADMIN}") == address


@each_row(
    ("address", "shown"),
    [
        ("https://other.example/x", "https://other.example/x"),
        ("//other.example/x", "https://other.example/x"),
        ("", "https://example.com/"),
        ("?page=2", "https://example.com/?page=2"),
        ("/a//b/", "https://example.com/a//b/"),
    ],
)
def test_an_address_with_a_host_keeps_it(address: str, shown: str) -> None:
    assert absolute("https://example.com", address) == shown


@each_row(
    "value",
    [
        *("", None, 5, "example.com", "ftp://example.com", "https://", "https://a@example.com"),
        *("https://example.com/?a", "https://example.com/#a", "https://b\u00fccher.example"),
        *("https://exam ple.com", "https://example.com:port", "https://[::1", "javascript:x"),
    ],
)
def test_what_one_refuses_the_other_refuses(settings: Settings, value: Any) -> None:
    settings.READTRACK = {"ALERTS": {"site": value, "mail": []}, "DIGEST": {"site": value}}
    ids = {message.id for message in check_setup(None)}
    assert {"readtrack.E075", "readtrack.E081"} <= ids
