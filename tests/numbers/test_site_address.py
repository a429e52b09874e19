"""ALERTS and DIGEST take the address of the site in one form, and link to it alike."""

from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.urls import set_script_prefix
from pytest_django import Settings

from readtrack.alerts import watching
from readtrack.checks.setup import check_setup
from readtrack.digest import mail
from readtrack.digest.options import digest_options
from readtrack.digest.sending import letters
from readtrack.numbers.site_address import absolute
from tests.support import digests
from tests.support.rows import each_row

ADMIN = "admin/readtrack/dashboard/"
present_tenant = ContextVar("present_tenant", default="red")


def tenant() -> str:
    return present_tenant.get()


def site_of_tenant() -> str:
    return f"https://{tenant()}.example.com/"


def no_site() -> str:
    return "red.example.com"


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


def test_each_tenant_has_an_address_of_its_own(settings: Settings) -> None:
    path = f"{__name__}.site_of_tenant"
    settings.READTRACK = {"ALERTS": {"site": path, "mail": []}, "DIGEST": {"site": path}}
    assert {"readtrack.E075", "readtrack.E081"}.isdisjoint(one.id for one in check_setup(None))
    for name in ("red", "blue"):
        present_tenant.set(name)
        address = f"https://{name}.example.com/{ADMIN}"
        assert watching._address("readtrack_dashboard_changelist") == address
        assert mail._absolute(f"/{ADMIN}") == address
        assert digest_options().title == f"{name}.example.com"


@pytest.mark.django_db
def test_the_stop_link_of_a_tenants_digest_is_found_at_its_address(settings: Settings) -> None:
    settings.READTRACK = {
        "PREFIX": f"{__name__}.tenant",
        "DIGEST": {**digests.DIGEST, "site": f"{__name__}.site_of_tenant"},
    }
    settings.ALLOWED_HOSTS = [".example.com"]
    # As a site does that finds the tenant by the host, in a middleware.
    reader = digests.editor()
    present_tenant.set("blue")
    [sent] = letters([digests.reader(reader)], digests.week())
    stop_url = sent.extra_headers["List-Unsubscribe"].strip("<>")
    parts = urlsplit(stop_url)
    for name, status in (("red", 404), (parts.netloc.partition(".")[0], 200)):
        present_tenant.set(name)
        assert Client().get(parts.path, headers={"host": parts.netloc}).status_code == status
    assert parts.netloc == "blue.example.com"


def test_an_alert_is_told_without_a_link_where_the_sites_function_fails(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.READTRACK = {"ALERTS": {"site": f"{__name__}.no_site", "mail": []}}
    assert watching._address("readtrack_dashboard_changelist") == ""
    assert "'red.example.com', which is no address" in caplog.text


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
        *(f"{__name__}.nowhere", f"{__name__}.ADMIN", "tests"),
        *("https://exam ple.com", "https://example.com:port", "https://[::1", "javascript:x"),
    ],
)
def test_what_one_refuses_the_other_refuses(settings: Settings, value: Any) -> None:
    settings.READTRACK = {"ALERTS": {"site": value, "mail": []}, "DIGEST": {"site": value}}
    ids = {message.id for message in check_setup(None)}
    assert {"readtrack.E075", "readtrack.E081"} <= ids
