"""Exclusions: hits of the site's own people and machines, which EXCLUDE leaves out, and links of
the admin.
"""

import re
from contextlib import suppress
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest
from django.urls import Resolver404, resolve
from django.utils.module_loading import import_string

from readtrack.conf import cached_setting, conf, function_problem, says_true
from readtrack.hits import addresses


@cached_setting()
def rules() -> tuple[dict[str, list[Any]], list[tuple[str, Any]]]:
    """Returns the rules of EXCLUDE by their keys; and the key and value of each that cannot be
    used.
    """
    own: dict[str, list[Any]] = {
        key: [] for key in ("staff", "groups", "permissions", "paths", "networks", "function")
    }
    problems: list[tuple[str, Any]] = []
    for name, given in conf.EXCLUDE.items():
        for value in given if isinstance(given, (list, tuple)) else [given]:
            try:
                own[name].append(_rule(name, value))
            except (KeyError, ValueError, re.error):
                problems.append((str(name), value))
    return own, problems


def _rule(name: str, value: Any) -> Any:
    fits = isinstance(value, bool if name == "staff" else str)
    if (
        not fits
        or (name == "permissions" and "." not in value)
        or (name == "function" and function_problem(value))
    ):
        raise ValueError(value)
    if name == "paths":
        return re.compile(value)
    if name != "networks":
        return value
    network = ip_network(value, strict=False)
    # A visitor's IPv6 address is known as its household's network.
    is_narrow = network.version == 6 and network.prefixlen > addresses.HOUSEHOLD
    return network.supernet(new_prefix=addresses.HOUSEHOLD) if is_narrow else network


def is_excluded(request: HttpRequest, user: Any | None) -> bool:
    """Returns True if the site leaves this hit out, or if a staff member came by a link of the
    admin.
    """
    if getattr(user, "is_staff", False):
        with suppress(ValueError, Resolver404):
            path = urlsplit(request.META.get("HTTP_REFERER", "")).path
            if "admin" in resolve(path.removeprefix(request.META.get("SCRIPT_NAME", ""))).app_names:
                return True
    # The page is made already, so an error of the site's function or of the database must not reach
    # it.
    return bool(conf.EXCLUDE) and says_true(
        "EXCLUDE", partial(_is_named, request, user), otherwise="the hit counts"
    )


def is_excluded_line(path: str, address: str) -> bool:
    """Returns True if the site leaves out a line in a log with that path or address."""
    own, _ = rules()
    client = addresses.network_of(address) if own["networks"] else ""
    is_within = client and any(ip_address(client) in network for network in own["networks"])
    return bool(is_within) or any(pattern.search(path) for pattern in own["paths"])


def _is_named(request: HttpRequest, user: Any | None) -> bool:
    own, _ = rules()
    if user is not None and (
        (True in own["staff"] and getattr(user, "is_staff", False))
        or any(map(user.has_perm, own["permissions"]))  # a query or two
        or (own["groups"] and user.groups.filter(name__in=own["groups"]).exists())
    ):
        return True
    client = addresses.network(*addresses.hops(request.META)) if own["networks"] else ""
    is_within = is_excluded_line(request.path, client)
    return is_within or any(
        import_string(function)(request) is True for function in own["function"]
    )
