"""What views are broken down by: device, browser, system, country, referrer, and what a site adds of its own."""

import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django.http import HttpRequest
from django.utils.module_loading import import_string

from readtrack.conf import conf
from readtrack.hits import addresses
from readtrack.hits.bots import LONGEST

LENGTH = 64  # characters of a value that are kept

# Names that keys of other families begin with: views:total:…, views:hour:…
RESERVED = frozenset({"total", "hour", "hll", "unique", "bitmap", "daily", "unsettled", "skips"})

logger = logging.getLogger("readtrack")


class Client(NamedTuple):
    """What a user agent says of itself; "" for what it does not say."""

    device: str = ""
    browser: str = ""
    os: str = ""


def values(request: HttpRequest) -> tuple[tuple[str, str], ...]:
    """The named dimensions that this request has a value of. Never raises: the page is made already."""
    found = []
    for path in conf.DIMENSIONS:
        try:
            value = clean(_callable(path)(request))
        except Exception:  # a site's own, or an extra that is missing
            logger.exception("The dimension %s failed and is left out.", path)
            continue
        if value:
            found.append((name_of(path), value))
    return tuple(found)


def name_of(path: str) -> str:
    """A dimension's name: `device`, and `plan` of `shop.tracking.plan`."""
    return path.rpartition(".")[2]


def check(name: str) -> None:
    """Raises ValueError for the name of a dimension that DIMENSIONS lacks."""
    names = list(map(name_of, conf.DIMENSIONS))
    if name not in names:
        raise ValueError(f"READTRACK['DIMENSIONS'] has no {name!r}; it has: {', '.join(names) or 'nothing yet'}.")


def problem(path: str) -> str:
    """Why a dimension cannot be had, in words; "" when it can. For the system check."""
    if name_of(path) in RESERVED:
        return f"keys of other things are called '{name_of(path)}'"
    module = NEEDED.get(path)
    if path == "country" and conf.COUNTRY_HEADER:
        module = None
    try:
        if module:
            import_module(module)
        is_callable = callable(_callable(path))
    except ImportError as error:
        return f"{error}; pip install readtrack[dimensions]" if module else str(error)
    return "" if is_callable else "it is not callable"


def clean(value: Any) -> str:
    """The value in one line of at most 64 printable characters; "" for None."""
    text = "" if value is None else str(value)[: LENGTH * 4]
    printable = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(printable.split())[:LENGTH].rstrip()


def device(request: HttpRequest) -> str:
    """`phone`, `tablet` or `desktop`."""
    return _client(_agent(request)).device


def browser(request: HttpRequest) -> str:
    """`Firefox`, `Mobile Safari`; needs `readtrack[dimensions]`."""
    return _client(_agent(request)).browser


def os(request: HttpRequest) -> str:
    """`Windows`, `iOS`; needs `readtrack[dimensions]`."""
    return _client(_agent(request)).os


def country(request: HttpRequest) -> str:
    """Two letters: the trusted proxy's header where one is named, else by address; needs `readtrack[dimensions]`."""
    if conf.COUNTRY_HEADER:
        code = request.headers.get(conf.COUNTRY_HEADER, "").strip().upper()
        return code if len(code) == 2 and code.isascii() and code.isalpha() and code != "XX" else ""
    return str(import_module("iptocc").country_code(addresses.network(request.META)) or "")


def referrer(request: HttpRequest) -> str:
    """The host that links here, `direct` where none is named."""
    header = request.headers.get("Referer", "")
    try:
        return (urlsplit(header).hostname or "") if header else "direct"
    except ValueError:
        return ""


BUILT_IN: Mapping[str, Callable[[HttpRequest], Any]] = {
    "device": device,
    "browser": browser,
    "os": os,
    "country": country,
    "referrer": referrer,
}


# What the built-in ones need beyond the package itself.
NEEDED = {"device": "ua_parser", "browser": "ua_parser", "os": "ua_parser", "country": "iptocc"}


def _callable(path: str) -> Callable[[HttpRequest], Any]:
    found: Callable[[HttpRequest], Any] = BUILT_IN.get(path) or import_string(path)
    return found


def _agent(request: HttpRequest) -> str:
    return request.headers.get("User-Agent", "")[:LONGEST]


# 13 µs for an agent that was not seen lately.
@lru_cache(maxsize=4096)
def _client(agent: str) -> Client:
    parsed = import_module("ua_parser").parse(agent)
    family = parsed.os.family if parsed.os else ""
    return Client(_device(agent, family), parsed.user_agent.family if parsed.user_agent else "", family)


def _device(agent: str, system: str) -> str:
    if system == "Android":
        return "phone" if "Mobile" in agent else "tablet"  # as Google asks its makers to say
    if system == "iOS":
        return "tablet" if "iPad" in agent else "phone"
    return "desktop" if system in DESKTOPS else ""


DESKTOPS = frozenset({"Windows", "Mac OS X", "Linux", "Ubuntu", "Fedora", "Debian", "Chrome OS", "FreeBSD", "OpenBSD"})
