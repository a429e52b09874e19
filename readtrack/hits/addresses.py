"""Addresses of clients behind proxies, and a watch that notices when the addresses of proxies are
taken for those of visitors.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from socket import AF_INET, AF_INET6, inet_ntop, inet_pton
from typing import Any, Literal, NamedTuple

from django.utils.translation import gettext_noop
from python_ipware import IpWare

from readtrack.conf import cached_setting, conf, logger

# Characters at the end of X-Forwarded-For that are read. Proxies append to the header.
LONGEST = 1024
HOUSEHOLD = 64  # bits at the start of an IPv6 address that all devices of a household share
# Loopback, private, link-local and shared (RFC 6598) networks, as `network_of` writes them.
# Python's `is_private` is also true for the networks of examples in documentation.
PRIVATE = re.compile(
    r"(?:0|10|127)\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|169\.254\."
    r"|172\.(?:1[6-9]|2\d|3[01])\.|192\.168\."
    r"|::$|f[cd]\w\w:|fe[89ab]\w:"
)
# Beginnings of IPv6 addresses that stand for an IPv4 address, which is in their last four bytes:
# IPv4-mapped (RFC 4291), IPv4-translated (SIIT, RFC 2765), and NAT64 (RFC 6052).
MAPPED = bytes(10) + b"\xff\xff"
TRANSLATED = bytes(8) + b"\xff\xff" + bytes(2)
NAT64 = inet_pton(AF_INET6, "64:ff9b::")[:12]
# In these it is elsewhere: 6to4 (RFC 3056), and Teredo (RFC 4380), which inverts its bits.
SIX_TO_FOUR = inet_pton(AF_INET6, "2002::")[:2]
TEREDO = inet_pton(AF_INET6, "2001::")[:4]
# NAT64 with a prefix of the operator's own choice (RFC 8215). The IPv4 address may be anywhere in
# the rest, so that each address is another client.
LOCAL_NAT64 = inet_pton(AF_INET6, "64:ff9b:1::")[:6]
PARSER = IpWare(("X_FORWARDED_FOR",))
SAMPLE = 20  # visitors, known by their addresses, that a process judges together
MANY = 5  # different user agents in a sample that one person does not have

ADVICE = "Set READTRACK['PROXIES'] to the number of proxies, or new visitors look like one."
Notice = Literal["forwarded", "one address"]
NOTICES: dict[Notice, str] = {
    "forwarded": gettext_noop(
        "X-Forwarded-For arrives, and is not believed or names more than one public address."
    ),
    "one address": gettext_noop(
        "Visitors with many different browsers have one and the same address."
    ),
}


def hops(meta: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the address of the request's connection, and the header of its proxies, which is
    X-Forwarded-For or another one that ADDRESS_HEADER names; "" for none.
    """
    direct = str(meta.get("REMOTE_ADDR", ""))
    forwarded = str(meta.get(_header_key(), ""))
    return direct[:LONGEST], forwarded[-LONGEST:]


@cached_setting()
def _header_key() -> str:
    """Returns the key in `request.META` of the header that names the visitor's address."""
    return "HTTP_" + conf.ADDRESS_HEADER.upper().replace("-", "_")


def network(direct: str, forwarded: str, *, agent: str | None = None) -> str:
    """Returns the client's IPv4 address, or its IPv6 /64 network; "" if there is no valid address.

    `direct` and `forwarded` are those of `hops`. If an agent is given, the visitor is shown to the
    watch.
    """
    client = _ordinary_client(direct, forwarded) if forwarded else ""
    if client:
        if agent is not None:
            watch.see(client, agent, is_doubtful=False)
        return client
    candidates = _candidates(forwarded, direct) if forwarded else []
    client = candidates[-1] if candidates else network_of(direct)
    if agent is not None:
        is_doubtful = bool(forwarded) and _is_doubtful(forwarded, candidates, client)
        watch.see(client, agent, is_doubtful=is_doubtful)
    return client


def _ordinary_client(direct: str, forwarded: str) -> str:
    """Returns the client's network by an ordinary header; "" for another one, which is read in
    full.

    In an ordinary header each proxy of the site has written one hop, and the first of them is the
    plain address of a public client. Most headers are, and this takes a fifth of the time.
    """
    if forwarded.count(",") + 1 != _hops_of_proxies():
        return ""
    first_hop, _, _ = forwarded.partition(",")
    client = network_of(first_hop)
    if not client or PRIVATE.match(client):
        return ""
    if conf.PROXIES == "auto" and _public_peer(direct):
        return ""
    return client


@cached_setting()
def _hops_of_proxies() -> int:
    """Returns how many hops the site's proxies write: one by "auto"; 0 if PROXIES is a list."""
    return 1 if conf.PROXIES == "auto" else proxies().number


def _is_doubtful(forwarded: str, candidates: Sequence[str], client: str) -> bool:
    """Returns True if X-Forwarded-For is not believed, or names a public address before the
    client's: then the client's may be that of a proxy.

    `candidates` are the addresses in the header that may be the client's, the last one most likely.
    The setting PROXIES may be wrong, so what the site says is judged by the header as well.
    """
    if conf.PROXIES and not candidates:
        return True
    public = candidates if conf.PROXIES == "auto" else _public_hops(forwarded)
    if client not in public:
        return bool(public)
    return public.index(client) > 0


def network_of(text: str) -> str:
    """Returns the IPv4 address, or the /64 network of the IPv6 address; "" for any other text."""
    try:  # not by `ip_address`, which takes five times as long
        if ":" not in text:
            inet_pton(AF_INET, text)
            return text
        address, _, _ = text.partition("%")  # behind it comes a zone, such as eth0
        packed = inet_pton(AF_INET6, address)
    except (OSError, ValueError):
        return ""
    embedded = _embedded_ipv4(packed)
    if embedded:
        return inet_ntop(AF_INET, embedded)
    if packed.startswith(LOCAL_NAT64):
        return inet_ntop(AF_INET6, packed)
    return inet_ntop(AF_INET6, packed[: HOUSEHOLD // 8] + bytes(16 - HOUSEHOLD // 8))


def network_with_households(text: str) -> IPv4Network | IPv6Network:
    """Returns the network; one of IPv6 at least as wide as that of a household.

    Of a visitor's IPv6 address, only the network of the household is known. Raises ValueError for
    any other text.
    """
    network = ip_network(text, strict=False)
    if network.version == 6 and network.prefixlen > HOUSEHOLD:
        return network.supernet(new_prefix=HOUSEHOLD)
    return network


def _embedded_ipv4(packed: bytes) -> bytes:
    """Returns the IPv4 address of a client that has no IPv6 of its own; b"" for any other client.

    Such clients share the first 64 bits of the addresses that stand for them.
    """
    if packed.startswith((MAPPED, TRANSLATED, NAT64)):
        return packed[-4:]
    if packed.startswith(SIX_TO_FOUR):
        return packed[2:6]
    if packed.startswith(TEREDO):
        return bytes(byte ^ 0xFF for byte in packed[-4:])
    return b""


def _candidates(forwarded: str, direct: str) -> list[str]:
    """Returns the networks in X-Forwarded-For that may be the client's, the most likely one last.

    Returns none if the header is not believed.
    """
    if conf.PROXIES == "auto":
        return _public_candidates(forwarded, direct)
    # With the connection as the last hop, a client that bypasses the proxies cannot forge an
    # address.
    hops_to_here = [*forwarded.split(","), direct or "127.0.0.1"]
    place = _place_of_client(hops_to_here)
    if place is None:
        # A private address that should be a proxy's, and leads to no client, is no client's.
        return [""] if proxies().number and not _public_peer(direct) else []
    # By its place, and not the last one that is an address: what is before a hop such as "unix:",
    # the client itself may have written.
    return [_network_in(hops_to_here[place])]


def _place_of_client(hops_to_here: Sequence[str]) -> int | None:
    """Returns the index of the hop that is the client by the setting PROXIES.

    Returns None if the request did not come through the proxies, so that the header is not
    believed.
    """
    last = len(hops_to_here) - 1
    number = proxies().number
    if number:
        return last - number if number <= last else None
    place = last
    for network in reversed(proxies().networks):
        if place == 0 or not _is_in(hops_to_here[place], network):
            break
        place -= 1
    return place if place < last else None


def _is_in(hop: str, network: IPv4Network | IPv6Network) -> bool:
    """Returns True if the hop is an address in the network."""
    address = _address_in(hop)
    return address is not None and address in network


def _address_in(hop: str) -> IPv4Address | IPv6Address | None:
    """Returns the address of a hop as a header has it, such as one with a port, with brackets, or
    in a `for=` of RFC 7239; None for a hop that is no address.
    """
    address: IPv4Address | IPv6Address | None
    address, _ = PARSER.get_client_ip({"X_FORWARDED_FOR": hop})
    return address


def _public_candidates(forwarded: str, direct: str) -> list[str]:
    """Returns the public networks in the header, if the request comes from a private address.

    Returns one "" where the last hop that is not private is no address: then nobody knows the
    client.
    """
    networks = _networks_in(forwarded)
    public = _public_among(networks)
    peer = _public_peer(direct)
    if not peer:
        # A client behind a proxy can only put addresses before its own hop, whatever that is.
        return public if _names_client(forwarded, networks) else [""]
    # A public peer is no proxy, so it may have made up the header. But if uvicorn or a middleware
    # has put the client into REMOTE_ADDR already, the header names the peer.
    return [*public, peer] if peer in public else []


def _names_client(forwarded: str, networks: Sequence[str]) -> bool:
    """Returns False if a hop behind which all are private is no address, such as "unix:".

    `networks` are those of the hops.
    """
    if not forwarded.strip(", "):
        return True  # no proxy has named anybody
    for network in reversed(networks):
        if not network or not PRIVATE.match(network):
            return network != ""
    return True


def _public_hops(forwarded: str) -> list[str]:
    """Returns the public networks in the header, in their order."""
    return _public_among(_networks_in(forwarded))


def _networks_in(forwarded: str) -> list[str]:
    """Returns the network of each hop in the header; "" for a hop that is no address."""
    return [_network_in(hop) for hop in forwarded.split(",")]


def _public_among(networks: Sequence[str]) -> list[str]:
    """Returns those of the networks that are public, in their order."""
    return [network for network in networks if network and not PRIVATE.match(network)]


def _public(text: str) -> str:
    """Returns the network of a public address; "" for a private one, and for any other text."""
    network = _network_in(text)
    return "" if PRIVATE.match(network) else network


def _network_in(hop: str) -> str:
    """Returns the network of a hop as a header has it; "" for a hop that is no address."""
    network = network_of(hop.strip())
    if network:
        return network
    # Only for others, because it takes ten times as long.
    address = _address_in(hop)
    return "" if address is None else network_of(str(address))


_public_peer = lru_cache(maxsize=1024)(_public)  # a site has few proxies


class Proxies(NamedTuple):
    """What PROXIES says of the site's proxies. Both are empty for "auto", and with an error."""

    number: int = 0
    networks: Sequence[IPv4Network | IPv6Network] = ()  # of each proxy, the nearest last
    error: str = ""  # in the setting; "" for none


@cached_setting()
def proxies() -> Proxies:
    """Returns the number or the list of proxies in PROXIES."""
    given: Any = conf.PROXIES
    if given == "auto":
        return Proxies()
    if isinstance(given, str):
        return Proxies(error=f"{given!r} is neither 'auto' nor a list.")
    if isinstance(given, int):
        is_number = given >= 0
        return Proxies(number=given) if is_number else Proxies(error=f"{given} is below 0")
    try:
        # As text, because `ip_network` would take the number 10 for 0.0.0.10.
        return Proxies(networks=[ip_network(str(name), strict=False) for name in given])
    except (TypeError, ValueError) as error:
        return Proxies(error=str(error))


# A visitor that was known by an address: that address or network, the user agent, and whether
# X-Forwarded-For makes it doubtful that the address is the client's. A plain tuple, because each
# new visitor is one.
_Sighting = tuple[str, str, bool]


class Watch:
    """Judges samples of this process's visitors, and logs each notice once.

    It remembers the visitors of one sample at most.
    """

    def __init__(self) -> None:
        # Those that store/skips.py has not taken yet. It sends them with the skips.
        self.notices: set[Notice] = set()
        self._sample: list[_Sighting] = []
        self._logged: set[Notice] = set()

    def see(self, client: str, agent: str, *, is_doubtful: bool) -> None:
        """Adds a visitor to the sample, and judges the sample when it is full."""
        # Another thread may judge the same sample at the same time, which does no harm.
        sample = self._sample
        sample.append((client, agent, is_doubtful))
        if len(sample) < SAMPLE:
            return
        self._sample = []
        notice = _notice_of(sample)
        if notice is None:
            return
        self.notices.add(notice)
        if notice not in self._logged:
            self._logged.add(notice)
            logger.warning("%s %s", NOTICES[notice], ADVICE)


def _notice_of(sample: Sequence[_Sighting]) -> Notice | None:
    """Returns what is wrong with the addresses of the sample; None if nothing is."""
    if sum(is_doubtful for _, _, is_doubtful in sample) > SAMPLE / 2:
        return "forwarded"
    clients = {client for client, _, _ in sample}
    agents = {agent for _, agent, _ in sample}
    if len(clients) == 1 and len(agents) >= MANY:
        return "one address"
    return None


watch = Watch()
