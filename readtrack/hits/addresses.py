"""Addresses of clients behind proxies, and a watch that notices addresses of proxies in place of
the visitors' addresses.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from socket import AF_INET, AF_INET6, inet_ntop, inet_pton
from typing import Any, Literal, NamedTuple

from django.utils.translation import gettext_noop
from python_ipware import IpWare

from readtrack.conf import cached_setting, conf, logger

# Characters of X-Forwarded-For that are read, from its end, because proxies append to it.
LONGEST = 1024
HOUSEHOLD = 64  # bits of an IPv6 address that a household does not share
# An address with a port, as some load balancers append it, and logs have it.
WITH_PORT = re.compile(r"(?:\[([^\]]+)\]|([^:]+)):\d{1,5}")
# Loopback, private, link-local and shared (RFC 6598) networks, as `network_of` writes them.
# `is_private` of Python also has those of documentation.
PRIVATE = re.compile(
    r"(?:0|10|127)\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|169\.254\."
    r"|172\.(?:1[6-9]|2\d|3[01])\.|192\.168\."
    r"|::$|f[cd]\w\w:|fe[89ab]\w:"
)
# An IPv4 address that is written as one of IPv6 begins with it.
MAPPED = bytes(10) + b"\xff\xff"
SAMPLE = 20  # visitors in a row, known by their addresses, that a process judges together
MANY = 5  # different user agents in a sample: no one person's

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
    """Returns the address of a request's connection, and X-Forwarded-For."""
    direct = str(meta.get("REMOTE_ADDR", ""))
    forwarded = str(meta.get("HTTP_X_FORWARDED_FOR", ""))
    return direct[:LONGEST], forwarded[-LONGEST:]


def network(direct: str, forwarded: str, *, agent: str | None = None) -> str:
    """Returns the client's IPv4 address or IPv6 /64 network, or "". With an agent, the watch sees
    the address, too.
    """
    candidates = _candidates(forwarded, direct) if forwarded else []
    client = candidates[-1] if candidates else network_of(direct)
    if agent is not None:
        is_doubtful = bool(forwarded) and _is_doubtful(candidates, client)
        watch.see(client, agent, is_doubtful=is_doubtful)
    return client


def _is_doubtful(candidates: Sequence[str], client: str) -> bool:
    """Returns True if X-Forwarded-For is not believed, or names other public addresses, too."""
    if not conf.PROXIES:  # such a site knows that anybody may have sent the header
        return False
    return candidates.count(client) < len(candidates) or not candidates


def network_of(text: str) -> str:
    """Returns the network of an address; "" for any other text."""
    try:  # not by `ip_address`, which takes five times as long
        if ":" not in text:
            inet_pton(AF_INET, text)
            return text
        packed = inet_pton(AF_INET6, text.partition("%")[0])
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
    return match[1] or match[2]


def _candidates(forwarded: str, direct: str) -> list[str]:
    """Returns the networks of X-Forwarded-For that may be the client's. The last one is the most
    likely. Returns none if the header is not believed.
    """
    if conf.PROXIES == "auto":
        return _public_candidates(forwarded, direct)
    finder, _ = proxies()
    if finder is None:
        return []
    # The connection is the last hop, so that a client that bypasses the proxies cannot forge an
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
    # Anybody may send the header. It names the peer if uvicorn or a middleware put the client into
    # REMOTE_ADDR.
    return [*public, peer] if peer in public else []


def _public(text: str) -> str:
    """Returns the network of a public address; "" for a private address, and for a text that is no
    address.
    """
    text = text.strip()
    network = network_of(without_port(text) if ":" in text else text)
    return "" if PRIVATE.match(network) else network


_public_peer = lru_cache(maxsize=1024)(_public)  # a site has few proxies


class Proxies(NamedTuple):
    """What finds the client behind the site's proxies, and the error in their settings."""

    finder: IpWare | None  # None without proxies, and with an error
    error: str = ""


@cached_setting()
def proxies() -> Proxies:
    """Returns the proxies that PROXIES counts or lists."""
    given: Any = conf.PROXIES
    if isinstance(given, str):
        error = "" if given == "auto" else f"{given!r} is neither 'auto' nor a list."
        return Proxies(None, error=error)
    if not given:
        return Proxies(None)
    named = {"proxy_count": given} if isinstance(given, int) else {"proxy_list": [*given]}
    try:
        return Proxies(IpWare(("X_FORWARDED_FOR",), **named))
    except (TypeError, ValueError) as error:
        return Proxies(None, error=str(error))


class _Sighting(NamedTuple):
    """A visitor that was known by an address."""

    client: str
    agent: str
    is_doubtful: bool


class Watch:
    """Judges samples of this process's visitors, and logs each notice once. It remembers no more
    than a sample.
    """

    def __init__(self) -> None:
        # Since store/skips.py last took them, to send them with the skips.
        self.notices: set[Notice] = set()
        self._sample: list[_Sighting] = []
        self._logged: set[Notice] = set()

    def see(self, client: str, agent: str, *, is_doubtful: bool) -> None:
        """Adds a visitor to the sample, and judges the sample when it is full."""
        sample = self._sample  # another thread may judge it at the same time, which does no harm
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
