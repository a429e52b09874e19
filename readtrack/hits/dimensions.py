"""Dimensions: device, browser, system, country and referrer of a view, and functions of the site's
own.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.utils.module_loading import import_string

from readtrack.conf import conf, function_problem, log_failure
from readtrack.hits import addresses
from readtrack.hits.bots import user_agent_of

LENGTH = 64  # characters of a value that are stored
DESKTOPS = frozenset(
    {
        "Windows",
        "Mac OS X",
        "Linux",
        "Ubuntu",
        "Fedora",
        "Debian",
        "Chrome OS",
        "FreeBSD",
        "OpenBSD",
    }
)


def values(request: HttpRequest) -> tuple[tuple[str, str], ...]:
    """Returns the names of the request's dimensions, and their values, each a short printable line.
    Never raises.
    """
    pairs = []
    for path in conf.DIMENSIONS:
        # A site's own function may fail, and an extra may be missing; the page is made already.
        try:
            function = BUILT_IN.get(path) or import_string(path)
            line = _printable_line(function(request))
        except Exception as error:
            log_failure(f"The dimension {path}", "it is left out", type(error))
            continue
        if line:
            pairs.append((name_of(path), line))
    return tuple(pairs)


def _printable_line(value: Any) -> str:
    """Returns the value as text of at most LENGTH printable characters; "" for None."""
    text = "" if value is None else str(value)[: LENGTH * 4]
    printable = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(printable.split())[:LENGTH].rstrip()


def name_of(path: str) -> str:
    """Returns the name of a dimension: `device`, or `plan` for `shop.tracking.plan`."""
    return path.rpartition(".")[2]


def problem(path: str) -> str:
    """Returns the reason why the dimension cannot be used, for the system check; "" if it can."""
    if path == "referrer" or (path == "country" and conf.COUNTRY_HEADER):
        return ""
    error = function_problem(NEEDED.get(path, path))
    if error and path in NEEDED:
        return f"{error}; pip install readtrack[dimensions]"
    return error


def country(request: HttpRequest) -> str:
    """Returns two letters, out of COUNTRY_HEADER or by address; the latter needs
    `readtrack[dimensions]`. Returns "" for an unknown country.
    """
    if conf.COUNTRY_HEADER:
        code = request.headers.get(conf.COUNTRY_HEADER, "").strip().upper()
        is_code = len(code) == 2 and code.isascii() and code.isalpha() and code != "XX"
        return code if is_code else ""
    client = addresses.network(*addresses.hops(request.META))
    return str(import_module("iptocc").country_code(client) or "")


def referrer(request: HttpRequest) -> str:
    """Returns the host of the page that links here, `internal` for one of this host, or `direct`;
    "" for an address without a host.
    """
    header = request.headers.get("Referer", "")
    try:
        host = (urlsplit(header).hostname or "") if header else "direct"
        is_internal = host and host == urlsplit(f"//{request.get_host()}").hostname
    except (ValueError, DisallowedHost):
        return ""
    return "internal" if is_internal else host


@lru_cache(maxsize=4096)  # 13 µs for a new agent
def _client(agent: str) -> dict[str, str]:
    """Returns device, browser and system by a user agent; "" for what it does not name."""
    parsed = import_module("ua_parser").parse(agent)
    family = parsed.os.family if parsed.os else ""
    browser = parsed.user_agent.family if parsed.user_agent else ""
    device = "desktop" if family in DESKTOPS else ""
    if family == "Android":
        device = "phone" if "Mobile" in agent else "tablet"  # as Google asks makers of browsers to
    elif family == "iOS":
        device = "tablet" if "iPad" in agent else "phone"
    return {"device": device, "browser": browser, "os": family}


BUILT_IN: Mapping[str, Callable[[HttpRequest], Any]] = {
    "device": lambda request: _client(user_agent_of(request))["device"],  # phone, tablet or desktop
    "browser": lambda request: _client(user_agent_of(request))["browser"],  # Firefox, Mobile Safari
    "os": lambda request: _client(user_agent_of(request))["os"],  # Windows, iOS
    "country": country,
    "referrer": referrer,
}
# Functions of packages that are no dependencies of this one.
NEEDED = {
    **dict.fromkeys(("device", "browser", "os"), "ua_parser.parse"),
    "country": "iptocc.country_code",
}
