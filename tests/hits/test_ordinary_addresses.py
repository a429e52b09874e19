"""Ordinary headers are read in a way of their own, which answers as python-ipware does."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest_django import Settings
from python_ipware import IpWare

from readtrack.hits import addresses
from tests.support.depth import examples

# With READTRACK_DEEP=1000 they are 100,000 headers, which take some minutes.
many = settings(max_examples=examples(120))
V4 = st.ip_addresses(v=4).map(str)
V6 = st.ip_addresses(v=6)
KNOWN = st.sampled_from(
    [
        "10.0.0.1",
        "127.0.0.1",
        "100.64.0.1",
        "169.254.1.1",
        "192.168.1.1",
        "0.0.0.0",
        "224.0.0.1",
        "203.0.113.9",
        "::1",
        "::",
        "fe80::1",
        "fd00::1",
        "ff02::1",
        "2001:db8::1",
        "::ffff:203.0.113.9",
        "::ffff:10.0.0.1",
        "64:ff9b::203.0.113.9",
        "2002:cb00:7109::1",
    ]
)
ADDRESSES = st.one_of(V4, V6.map(str), V6.map(lambda address: address.exploded.upper()), KNOWN)
OTHERS = st.one_of(
    V4.map(lambda address: f"{address}:8080"),
    V6.map(lambda address: f"[{address}]:443"),
    V4.map(lambda address: f'for="{address}"'),
    V4.map(lambda address: f" {address}"),
    V4.map(lambda address: f"{address} "),
    V4.map(lambda address: f"0{address}"),
    V6.map(lambda address: f"{address}%eth0"),
    st.sampled_from(["", "unknown", "unix:", "_hidden", "1.2.3", "1.2.3.4.5", "999.1.1.1", '"']),
    st.text(max_size=12),
)
PROXIES = [1, 2, 3, "auto"]


def header(hops: list[str], separator: str) -> str:
    return separator.join(hops)


def is_of_somebody(hop: str) -> bool:
    """Returns False for an address that no host has. python-ipware finds no client by it."""
    address = ip_address(addresses.network_of(hop))
    return not (
        address.is_multicast
        or address.is_reserved
        or address.is_unspecified
        or address in ip_network("0.0.0.0/8")
    )


def headers(hops: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    lists = st.lists(hops, min_size=1, max_size=4)
    return st.builds(header, lists, st.sampled_from([",", ", "]))


@pytest.fixture(params=PROXIES)
def number(request: pytest.FixtureRequest, settings: Settings) -> int:
    """Returns how many hops the site's proxies write."""
    settings.READTRACK = {**settings.READTRACK, "PROXIES": request.param}
    return 1 if request.param == "auto" else int(request.param)


@many
@given(headers(ADDRESSES))
def test_the_client_of_an_ordinary_header_is_the_one_that_python_ipware_finds(
    number: int, forwarded: str
) -> None:
    client = addresses._ordinary_client("10.0.0.9", forwarded)
    if client and is_of_somebody(forwarded.partition(",")[0]):
        finder = IpWare(("X_FORWARDED_FOR",), proxy_count=number - 1)
        found, _ = finder.get_client_ip({"X_FORWARDED_FOR": forwarded}, strict=True)
        assert client == addresses.network_of(str(found))


@many
@given(headers(st.one_of(ADDRESSES, OTHERS)), st.one_of(ADDRESSES, OTHERS))
def test_an_ordinary_header_has_the_client_that_it_has_if_it_is_read_in_full(
    number: int, forwarded: str, direct: str
) -> None:
    client = addresses._ordinary_client(direct, forwarded) if forwarded else ""
    if client:
        candidates = addresses._candidates(forwarded, direct)
        assert client == candidates[-1]
        assert not addresses._is_doubtful(forwarded, candidates, client)


@pytest.mark.parametrize(
    "forwarded", ["203.0.113.9", "203.0.113.9, 10.0.0.1", "2001:db8::7, 198.51.100.1, 10.0.0.1"]
)
def test_a_header_with_a_hop_of_each_proxy_is_ordinary(forwarded: str, settings: Settings) -> None:
    settings.READTRACK = {**settings.READTRACK, "PROXIES": forwarded.count(",") + 1}
    assert addresses._ordinary_client("10.0.0.9", forwarded)
