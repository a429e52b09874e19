"""Scrapers: the programs that may read the metrics, by the setting METRICS."""

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any, NamedTuple

from django.utils.crypto import constant_time_compare

from readtrack.conf import cached_setting, conf
from readtrack.hits import addresses

# As a header can carry it (RFC 6750), and too long to be guessed.
TOKEN = re.compile(r"[\x21-\x7e]{16,}")


class Rules(NamedTuple):
    """The rules of the setting METRICS."""

    networks: list[IPv4Network | IPv6Network]
    problems: list[str]  # what is wrong with the setting; while there is any, nobody may scrape


@cached_setting()
def rules() -> Rules:
    """Returns the rules of METRICS."""
    options = conf.of_part("METRICS")
    problems = [
        f"{key!r} is neither 'token' nor 'networks'"
        for key in options
        if key not in {"token", "networks"}
    ]
    token = options.get("token")
    if "token" in options and not (isinstance(token, str) and TOKEN.fullmatch(token)):
        # The token itself is a secret, and messages end up in logs.
        problems.append("'token' is not of 16 or more characters without spaces")
    if "networks" not in options:
        return Rules([], problems)
    names = options["networks"]
    if not names or not isinstance(names, (list, tuple)):
        return Rules([], [*problems, "'networks' is no list of addresses"])
    networks, problems_of_networks = _parsed(names)
    return Rules(networks, [*problems, *problems_of_networks])


def _parsed(names: Sequence[Any]) -> Rules:
    """Returns the networks with these names, and what is wrong with the names."""
    networks = []
    problems = []
    for name in names:
        try:
            # As text, because `ip_network` would take the number 10 for 0.0.0.10.
            networks.append(addresses.network_with_households(str(name)))
        except ValueError:
            problems.append(f"{name!r} is neither an address nor a network")
    return Rules(networks, problems)


def refusal(meta: Mapping[str, Any]) -> int:
    """Returns the HTTP status that refuses a request for the metrics; 0 if it may have them."""
    if not conf.of_part("METRICS"):
        return 404
    if rules().problems or not _is_in_networks(meta):
        return 403
    return 0 if _has_token(meta) else 401


def _is_in_networks(meta: Mapping[str, Any]) -> bool:
    """Returns True if the request comes from one of the networks, or if there are none."""
    if "networks" not in conf.of_part("METRICS"):
        return True
    client = addresses.network(*addresses.hops(meta))
    if not client:
        return False
    return any(ip_address(client) in network for network in rules().networks)


def _has_token(meta: Mapping[str, Any]) -> bool:
    """Returns True if the request has the token, or if there is none."""
    options = conf.of_part("METRICS")
    if "token" not in options:
        return True
    scheme, _, token = str(meta.get("HTTP_AUTHORIZATION", "")).partition(" ")
    is_token = constant_time_compare(token.strip(), options["token"])
    return is_token and scheme.lower() == "bearer"
