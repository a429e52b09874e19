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
    found = []
    for path in conf.DIMENSIONS:
        try:
            value = (BUILT_IN.get(path) or import_string(path))(request)
            text = "" if value is None else str(value)[: LENGTH * 4]
            printable = "".join(char if char.isprintable() else " " for char in text)
            if line := " ".join(printable.split())[:LENGTH].rstrip():
                found.append((name_of(path), line))
        except (
            Exception
        ) as error:  # a site's own function, or a missing extra; the page is made already
            log_failure(f"The dimension {path}", "it is left out", type(error))
    return tuple(found)


def name_of(path: str) -> str:
    """Returns the name of a dimension: `device`, or `plan` for `shop.tracking.plan`."""
    return path.rpartition(".")[2]


def problem(path: str) -> str:
    """Returns the reason why the dimension cannot be used, for the system check; "" if it can."""
    if path == "referrer" or (path == "country" and conf.COUNTRY_HEADER):
        return ""
    error = function_problem(NEEDED.get(path, path))
    return f"{error}; pip install readtrack[dimensions]" if error and path in NEEDED else error


def country(request: HttpRequest) -> str:
    """Returns two letters, out of COUNTRY_HEADER or by address; the latter needs
    `readtrack[dimensions]`.
    """
    if conf.COUNTRY_HEADER:
        code = request.headers.get(conf.COUNTRY_HEADER, "").strip().upper()
        return code if len(code) == 2 and code.isascii() and code.isalpha() and code != "XX" else ""
    return str(
        import_module("iptocc").country_code(addresses.network(*addresses.hops(request.META))) or ""
    )


def referrer(request: HttpRequest) -> str:
    """Returns the host of the page that links here, `internal` for one of this host, or `direct`."""
    header = request.headers.get("Referer", "")
    try:
        host = (urlsplit(header).hostname or "") if header else "direct"
        return "internal" if host and host == urlsplit(f"//{request.get_host()}").hostname else host
    except (ValueError, DisallowedHost):
        return ""


@lru_cache(maxsize=4096)  # 13 µs for a new agent
def _client(agent: str) -> dict[str, str]:
    """Returns what a user agent names of its client; "" for a part that it does not name."""
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
