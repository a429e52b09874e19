"""Addresses of clients behind proxies, and a watch that notices addresses which cannot be the
visitors' own.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from socket import AF_INET, AF_INET6, inet_ntop, inet_pton
from typing import Any, Literal

from django.utils.translation import gettext_noop
from python_ipware import IpWare

from readtrack.conf import cached_setting, conf, logger

LONGEST = (
    1024  # characters of X-Forwarded-For that are read, from its end, because proxies append to it
)
HOUSEHOLD = 64  # bits of an IPv6 address that a household does not share
WITH_PORT = re.compile(
    r"(?:\[([^\]]+)\]|([^:]+)):\d{1,5}"
)  # as some load balancers append it, and logs have it
# Loopback, private, link-local and shared (RFC 6598) networks, as `network_of` writes them.
# `is_private` of Python also has those of documentation.
PRIVATE = re.compile(
    r"(?:0|10|127)\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.|192\.168\."
    r"|::$|f[cd]\w\w:|fe[89ab]\w:"
)
MAPPED = (
    bytes(10) + b"\xff\xff"
)  # an IPv4 address begins with it where it is written as one of IPv6
SAMPLE = 20  # visitors in a row, known by their addresses, that a process judges together
MANY = 5  # different user agents in a sample: no one person's

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
    return str(meta.get("REMOTE_ADDR", ""))[:LONGEST], str(meta.get("HTTP_X_FORWARDED_FOR", ""))[
        -LONGEST:
    ]


def network(direct: str, forwarded: str, *, agent: str | None = None) -> str:
    """Returns the client's IPv4 address or IPv6 /64 network, or "". With an agent, the watch sees
    the address, too.
    """
    believed = _believed(forwarded, direct) if forwarded else []
    client = believed[-1] if believed else network_of(direct)
    if agent is not None:
        # A site that says 0 knows that anybody may have sent the header.
        doubtful = (
            forwarded
            and conf.PROXY_COUNT
            and (not believed or believed.count(client) < len(believed))
        )
        watch.see(client, agent, is_doubtful=bool(doubtful))
    return client


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
    found = WITH_PORT.fullmatch(address) if ":" in address else None
    return (found[1] or found[2]) if found else address.strip("[]")


def _believed(forwarded: str, direct: str) -> list[str]:
    """Returns the networks of X-Forwarded-For that may be the client's, the last one first choice;
    or none.
    """
    if conf.PROXY_COUNT == "auto" and not conf.TRUSTED_PROXIES:
        named = [found for part in forwarded.split(",") if (found := _public(part))]
        if peer := _public_peer(direct):
            # Anybody may send the header. It names the peer if uvicorn or a middleware put the
            # client into REMOTE_ADDR.
            return [*named, peer] if peer in named else []
        return named  # a client behind a proxy can only put addresses before its own
    finder, _ = proxies()
    if finder is None:
        return []
    # The connection is the last hop, so that a client that bypasses the proxies cannot forge an
    # address.
    found = finder.get_client_ip({"X_FORWARDED_FOR": f"{forwarded},{direct or '127.0.0.1'}"})[0]
    return [] if found is None else [network_of(str(found))]


def _public(text: str) -> str:
    """Returns the network of a public address; "" for a private one, and for a text that is no
    address.
    """
    text = text.strip()
    found = network_of(without_port(text) if ":" in text else text)
    return "" if PRIVATE.match(found) else found


_public_peer = lru_cache(maxsize=1024)(_public)  # a site has few proxies


@cached_setting()
def proxies() -> tuple[IpWare | None, str]:
    """Returns what finds the client behind the site's proxies, None without any; and the error in
    their settings.
    """
    count, trusted = conf.PROXY_COUNT, conf.TRUSTED_PROXIES
    if isinstance(trusted, str):
        return None, "TRUSTED_PROXIES is a string, not a list."
    if not (count or trusted):
        return None, ""
    number = None if count == "auto" else count or None
    try:
        return IpWare(("X_FORWARDED_FOR",), proxy_count=number, proxy_list=list(trusted)), ""
    except (TypeError, ValueError) as error:
        return None, str(error)


class Watch:
    """Judges samples of this process's visitors, and logs each notice once. A sample is all that it
    remembers.
    """

    def __init__(self) -> None:
        self._sample: list[tuple[str, str, bool]] = []
        self._logged: set[Notice] = set()
        self.found: set[Notice] = (
            set()
        )  # since store/skips.py last took them, to send them with the skips

    def see(self, client: str, agent: str, *, is_doubtful: bool) -> None:
        """Adds a visitor to the sample, and judges the sample when it is full."""
        sample = self._sample  # another thread may judge it at the same time, which does no harm
        sample.append((client, agent, is_doubtful))
        if len(sample) < SAMPLE:
            return
        self._sample = []
        clients, agents, doubtful = zip(*sample, strict=True)
        is_doubtful = sum(doubtful) > SAMPLE / 2
        if not is_doubtful and (len({*clients}) > 1 or len({*agents}) < MANY):
            return
        notice: Notice = "forwarded" if is_doubtful else "one address"
        self.found.add(notice)
        if notice not in self._logged:
            self._logged.add(notice)
            advice = "Set READTRACK['PROXY_COUNT'] to the number of proxies, or new visitors look like one."
            logger.warning("%s %s", NOTICES[notice], advice)


watch = Watch()
