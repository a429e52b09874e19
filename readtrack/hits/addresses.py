"""Where a request comes from. Only what a configured proxy says is believed, else the connection's own address."""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from python_ipware import IpWare

from readtrack.conf import cached_setting, conf

LONGEST = 1024  # characters of X-Forwarded-For that are looked at, from its end, which proxies write
HOUSEHOLD = 64  # bits of an IPv6 address that one household shares

Address = IPv4Address | IPv6Address


def network(meta: Mapping[str, Any]) -> str:
    """The client's IPv4 address or IPv6 /64 as text; empty where there is none, as on a Unix socket."""
    return _network(_address(meta))


def network_of(text: str) -> str:
    """The same of an address as a log has it."""
    return _network(_parsed(text))


def _network(address: Address | None) -> str:
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or IPv6Address(int(address) >> HOUSEHOLD << HOUSEHOLD)
    return str(address or "")


def bad_proxies() -> str:
    """What is wrong with the settings; empty if nothing is."""
    try:
        _ipware()
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def _address(meta: Mapping[str, Any]) -> Address | None:
    direct = str(meta.get("REMOTE_ADDR", ""))
    if (conf.PROXY_COUNT or conf.TRUSTED_PROXIES) and not bad_proxies():
        # The connection is the last hop: so a forged header of who comes past the proxies is not theirs.
        forwarded = str(meta.get("HTTP_X_FORWARDED_FOR", ""))[-LONGEST:]
        chain = {"X_FORWARDED_FOR": f"{forwarded},{direct or '127.0.0.1'}"}
        found: Address | None = _ipware().get_client_ip(chain)[0]
        if found is not None:
            return found
    return _parsed(direct)


def _parsed(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


@cached_setting()
def _ipware() -> IpWare:
    if isinstance(conf.TRUSTED_PROXIES, str):
        raise TypeError("TRUSTED_PROXIES is a string, not a list.")
    return IpWare(("X_FORWARDED_FOR",), proxy_count=conf.PROXY_COUNT or None, proxy_list=list(conf.TRUSTED_PROXIES))
