"""Addresses of clients. Only configured proxies are believed; otherwise it is the connection's own address."""

from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address
from typing import Any

from python_ipware import IpWare

from readtrack.conf import cached_setting, conf

LONGEST = 1024  # characters of X-Forwarded-For that are read, from its end, because proxies append to it
HOUSEHOLD = 64  # bits of an IPv6 address that a household does not share


def network(meta: Mapping[str, Any]) -> str:
    """Returns the client's IPv4 address or IPv6 /64 network; "" if there is none, as on a Unix socket."""
    direct = str(meta.get("REMOTE_ADDR", ""))
    if (conf.PROXY_COUNT or conf.TRUSTED_PROXIES) and not bad_proxies():
        # The connection is the last hop, so that a client that bypasses the proxies cannot forge an address.
        forwarded = str(meta.get("HTTP_X_FORWARDED_FOR", ""))[-LONGEST:]
        chain = {"X_FORWARDED_FOR": f"{forwarded},{direct or '127.0.0.1'}"}
        if (found := _ipware().get_client_ip(chain)[0]) is not None:
            return network_of(str(found))
    return network_of(direct)


def network_of(text: str) -> str:
    """Returns the network of an address; "" for any other text."""
    try:
        address = ip_address(text)
    except ValueError:
        return ""
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or IPv6Address(int(address) >> HOUSEHOLD << HOUSEHOLD)
    return str(address)


def bad_proxies() -> str:
    """Returns the error in PROXY_COUNT or TRUSTED_PROXIES, or ""."""
    try:
        _ipware()
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


@cached_setting()
def _ipware() -> IpWare:
    if isinstance(conf.TRUSTED_PROXIES, str):
        raise TypeError("TRUSTED_PROXIES is a string, not a list.")
    return IpWare(("X_FORWARDED_FOR",), proxy_count=conf.PROXY_COUNT or None, proxy_list=list(conf.TRUSTED_PROXIES))
