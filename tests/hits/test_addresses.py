"""The client's address, behind proxies and without them."""

import pytest
from pytest_django import Settings

from readtrack.hits.addresses import bad_proxies, network

TWO_PROXIES = {"TRUSTED_PROXIES": ["10.0.0.0/8", "192.0.2.7"]}


@pytest.mark.parametrize(
    ("address", "known_as"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2::9", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
        ("unix:", ""),
        ("999.1.1.1", ""),
    ],
)
def test_a_network_is_an_address_or_a_household(address: str, known_as: str) -> None:
    assert network({"REMOTE_ADDR": address}) == known_as


@pytest.mark.parametrize(
    "header", ["HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_FORWARDED", "HTTP_CF_CONNECTING_IP"]
)
def test_a_forged_header_changes_nothing_by_default(header: str) -> None:
    assert network({"REMOTE_ADDR": "203.0.113.9", header: "198.51.100.1"}) == "203.0.113.9"


@pytest.mark.parametrize(
    ("options", "forwarded", "direct", "client"),
    [
        ({"PROXY_COUNT": 1}, "198.51.100.1", "10.0.0.1", "198.51.100.1"),
        ({"PROXY_COUNT": 1}, "1.1.1.1, 198.51.100.1", "10.0.0.1", "198.51.100.1"),
        ({"PROXY_COUNT": 2}, "1.1.1.1, 198.51.100.1, 10.2.0.1", "10.0.0.1", "198.51.100.1"),
        ({"PROXY_COUNT": 2}, "198.51.100.1", "10.0.0.1", "10.0.0.1"),
        ({"PROXY_COUNT": 1}, "", "203.0.113.9", "203.0.113.9"),
        ({"PROXY_COUNT": 1}, "nonsense", "203.0.113.9", "203.0.113.9"),
        ({"PROXY_COUNT": 1}, "198.51.100.1", "", "198.51.100.1"),
        ({"PROXY_COUNT": 1}, "2001:db8:1:2:3::4", "10.0.0.1", "2001:db8:1:2::"),
        ({"PROXY_COUNT": 1}, "1" * 9000 + ", 198.51.100.1", "10.0.0.1", "198.51.100.1"),
        (TWO_PROXIES, "1.1.1.1, 198.51.100.1, 10.2.0.1", "192.0.2.7", "198.51.100.1"),
        (TWO_PROXIES, "198.51.100.1, 10.2.0.1", "203.0.113.9", "203.0.113.9"),
        (TWO_PROXIES, "198.51.100.1, 203.0.113.5", "192.0.2.7", "192.0.2.7"),
    ],
)
def test_configured_proxies_are_believed(
    settings: Settings, options: dict[str, object], forwarded: str, direct: str, client: str
) -> None:
    settings.READTRACK = options
    assert network({"REMOTE_ADDR": direct, "HTTP_X_FORWARDED_FOR": forwarded}) == client


@pytest.mark.parametrize(
    "options", [{"TRUSTED_PROXIES": ["10.0.0.0/99"]}, {"TRUSTED_PROXIES": "10.0.0.1"}, {"PROXY_COUNT": -1}]
)
def test_unusable_settings_are_named_and_no_header_is_trusted(settings: Settings, options: dict[str, object]) -> None:
    settings.READTRACK = options
    assert bad_proxies()
    assert network({"REMOTE_ADDR": "203.0.113.9", "HTTP_X_FORWARDED_FOR": "1.1.1.1"}) == "203.0.113.9"


def test_the_defaults_can_be_used() -> None:
    assert bad_proxies() == ""
