"""Addresses of clients behind proxies, and a watch that notices when the addresses of proxies are
taken for those of visitors.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from socket import AF_INET, AF_INET6, inet_ntop, inet_pton
from typing import Any, Literal, NamedTuple

from django.utils.translation import gettext_noop
from python_ipware import IpWare

from readtrack.conf import cached_setting, conf, logger

# Characters at the end of X-Forwarded-For that are read. Proxies append to the header.
LONGEST = 1024
HOUSEHOLD = 64  # bits at the start of an IPv6 address that all devices of a household share
# An address with a port, as some load balancers and logs write it.
WITH_PORT = re.compile(r"(?:\[([^\]]+)\]|([^:]+)):\d{1,5}")
# Loopback, private, link-local and shared (RFC 6598) networks, as `network_of` writes them.
# Python's `is_private` is also true for the networks of examples in documentation.
PRIVATE = re.compile(
    r"(?:0|10|127)\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|169\.254\."
    r"|172\.(?:1[6-9]|2\d|3[01])\.|192\.168\."
    r"|::$|f[cd]\w\w:|fe[89ab]\w:"
)
MAPPED = bytes(10) + b"\xff\xff"  # the beginning of an IPv4 address in the form of IPv6
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
    """Returns the address of the request's connection, and its X-Forwarded-For; "" for none."""
    direct = str(meta.get("REMOTE_ADDR", ""))
    forwarded = str(meta.get("HTTP_X_FORWARDED_FOR", ""))
    return direct[:LONGEST], forwarded[-LONGEST:]


def network(direct: str, forwarded: str, *, agent: str | None = None) -> str:
    """Returns the client's IPv4 address, or its IPv6 /64 network; "" if there is no valid address.

    `direct` and `forwarded` are those of `hops`. If an agent is given, the visitor is shown to the
    watch.
    """
    candidates = _candidates(forwarded, direct) if forwarded else []
    client = candidates[-1] if candidates else network_of(direct)
    if agent is not None:
        is_doubtful = bool(forwarded) and _is_doubtful(candidates, client)
        watch.see(client, agent, is_doubtful=is_doubtful)
    return client


def _is_doubtful(candidates: Sequence[str], client: str) -> bool:
    """Returns True if X-Forwarded-For is not believed, or names other public addresses as well."""
    if not conf.PROXIES:  # the site says that it has none, so anybody may have sent the header
        return False
    has_other_candidates = candidates.count(client) < len(candidates)
    return has_other_candidates or not candidates


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
    if packed.startswith(MAPPED):
        return inet_ntop(AF_INET, packed[len(MAPPED) :])
    return inet_ntop(AF_INET6, packed[: HOUSEHOLD // 8] + bytes(16 - HOUSEHOLD // 8))


def without_port(address: str) -> str:
    """Returns the address or host without a port and without brackets."""
    match = WITH_PORT.fullmatch(address) if ":" in address else None
    if match is None:
        return address.strip("[]")
    return match[1] or match[2]  # an IPv6 address in brackets, or anything else


def _candidates(forwarded: str, direct: str) -> list[str]:
    """Returns the networks in X-Forwarded-For that may be the client's, the most likely one last.

    Returns none if the header is not believed.
    """
    if conf.PROXIES == "auto":
        return _public_candidates(forwarded, direct)
    finder, _ = proxies()
    if finder is None:
        return []
    # With the connection as the last hop, a client that bypasses the proxies cannot forge an
    # address.
    header = f"{forwarded},{direct or '127.0.0.1'}"
    client, _ = finder.get_client_ip({"X_FORWARDED_FOR": header})
    return [] if client is None else [network_of(str(client))]


def _public_candidates(forwarded: str, direct: str) -> list[str]:
    """Returns the public networks in the header, if the request comes from a private address."""
    public = [network for network in map(_public, forwarded.split(",")) if network]
    peer = _public_peer(direct)
    if not peer:
        return public  # a client behind a proxy can only put addresses before its own
    # A public peer is no proxy, so it may have made up the header. But if uvicorn or a middleware
    # has put the client into REMOTE_ADDR already, the header names the peer.
    return [*public, peer] if peer in public else []


def _public(text: str) -> str:
    """Returns the network of a public address; "" for a private one, and for any other text."""
    address = text.strip()
    if ":" in address:
        address = without_port(address)
    network = network_of(address)
    return "" if PRIVATE.match(network) else network


_public_peer = lru_cache(maxsize=1024)(_public)  # a site has few proxies


class Proxies(NamedTuple):
    """The finder of the client behind the site's proxies, and the error in the setting PROXIES."""

    finder: IpWare | None  # None for "auto", without proxies, and with an error
    error: str = ""  # "" for none


@cached_setting()
def proxies() -> Proxies:
    """Returns the finder for the number or the list of proxies in PROXIES."""
    given: Any = conf.PROXIES
    if isinstance(given, str):
        error = "" if given == "auto" else f"{given!r} is neither 'auto' nor a list."
        return Proxies(None, error=error)
    if not given:
        return Proxies(None)
    options = {"proxy_count": given} if isinstance(given, int) else {"proxy_list": [*given]}
    try:
        return Proxies(IpWare(("X_FORWARDED_FOR",), **options))
    except (TypeError, ValueError) as error:
        return Proxies(None, error=str(error))


class _Sighting(NamedTuple):
    """A visitor that was known by an address."""

    client: str  # an address or network
    agent: str
    is_doubtful: bool  # X-Forwarded-For makes it doubtful that the address is the client's


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
        sample.append(_Sighting(client, agent, is_doubtful))
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
    if sum(sighting.is_doubtful for sighting in sample) > SAMPLE / 2:
        return "forwarded"
    clients = {sighting.client for sighting in sample}
    agents = {sighting.agent for sighting in sample}
    if len(clients) == 1 and len(agents) >= MANY:
        return "one address"
    return None


watch = Watch()
