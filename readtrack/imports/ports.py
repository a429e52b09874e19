"""Addresses and hosts with a port, as some load balancers and logs write them."""

import re

WITH_PORT = re.compile(r"(?:\[([^\]]+)\]|([^:]+)):\d{1,5}")


def without_port(address: str) -> str:
    """Returns the address or host without a port and without brackets."""
    if ":" not in address:  # most have none
        return address.strip("[]")
    match = WITH_PORT.fullmatch(address)
    if match is None:
        return address.strip("[]")
    return match[1] or match[2]  # an IPv6 address in brackets, or anything else
