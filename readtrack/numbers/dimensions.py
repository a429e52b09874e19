"""Dimensions, by which views are broken down: device, browser, system, country, referrer, channel
and campaign, and functions of the site.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any

from django.http import HttpRequest
from django.utils.module_loading import import_string

from readtrack import parts
from readtrack.conf import function_problem, log_failure
from readtrack.hits import addresses
from readtrack.hits.bots import user_agent_of
from readtrack.lines import one_line
from readtrack.numbers import sources
from readtrack.numbers.options import numbers_options

LENGTH = 64  # characters of a value that are stored
# Systems that `ua_parser` reports for computers.
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
    """Returns the name and value of each dimension that the request has.

    A value is one line of at most LENGTH printable characters. A dimension that fails is left out
    and logged.
    """
    pairs = []
    source = None  # has three of the dimensions
    for path in numbers_options().dimensions:
        # A function of the site may fail, or a package may be missing. The page must not suffer,
        # because it is made already.
        try:
            if path in SOURCES:
                source = source or _lines_of(sources.source_of(request))
                line = getattr(source, path)
            else:
                function = BUILT_IN.get(path) or import_string(path)
                line = _printable_line(function(request))
        except Exception as error:
            log_failure(f"The dimension {path}", "it is left out", type(error))
            continue
        if line:
            pairs.append((name_of(path), line))
    return tuple(pairs)


@lru_cache(maxsize=1024)
def _lines_of(source: sources.Source) -> sources.Source:
    """Returns the source with its values as they are stored."""
    return sources.Source(*map(_printable_line, source))


def _printable_line(value: Any) -> str:
    """Returns the value as text of at most LENGTH printable characters; "" for None."""
    if value is None:
        return ""
    text = str(value)[: LENGTH * 4]  # a visitor may have chosen a very long one
    line = one_line(text)
    if not line.isprintable():
        printable = "".join(char if char.isprintable() else " " for char in line)
        line = " ".join(printable.split())
    return line[:LENGTH].rstrip()


def names() -> list[str]:
    """Returns the names of the site's dimensions."""
    return [name_of(path) for path in numbers_options().dimensions]


def name_of(path: str) -> str:
    """Returns the name of a dimension: `device`, or `plan` for `shop.tracking.plan`."""
    return path.rpartition(".")[2]


def is_of_all_views(name: str) -> bool:
    """Returns True if the dimension has a value of nearly every view, so that its first value came
    when it was turned on.
    """
    return name in OF_ALL_VIEWS and name in numbers_options().dimensions


def problem(path: str) -> str:
    """Returns why the dimension cannot be used, for the system check; "" if it can be used."""
    if path == "country" and (numbers_options().country_header or _has_databases()):
        return ""
    if path in NEEDED:
        error = function_problem(NEEDED[path])
        return f"{error}; pip install readtrack[dimensions]" if error else ""
    return "" if path in BUILT_IN or path in SOURCES else function_problem(path)


def country(request: HttpRequest) -> str:
    """Returns the country as two letters, "DE"; "" for an unknown one.

    It is what the 'country_header' of NUMBERS says, or is found by the address: in a database of
    NETWORKS, or else in those of the registries, which need the extra `readtrack[dimensions]`.
    """
    header = numbers_options().country_header
    if header:
        code = request.headers.get(header, "").strip().upper()
        is_code = len(code) == 2 and code.isascii() and code.isalpha() and code != "XX"
        return code if is_code else ""
    client = addresses.network(*addresses.hops(request.META))
    return _country_by_database(client) or _country_by_registry(client)


def _country_by_database(client: str) -> str:
    """Returns the country of an address by the site's databases; "" for an unknown one."""
    if not _has_databases():
        return ""
    from readtrack.networks import lookup

    return lookup.country(client)


def _has_databases() -> bool:
    """Returns True if a part knows databases, which may have countries."""
    if not parts.is_installed("readtrack.networks"):
        return False
    from readtrack.networks import lookup

    return lookup.has_databases()


def _country_by_registry(client: str) -> str:
    """Returns the country of an address by the registries' files; "" for an unknown one.

    Raises ImportError without the package, unless the databases of NETWORKS take its place.
    """
    try:
        package = import_module("iptocc")
    except ImportError:
        if _has_databases():
            return ""
        raise
    return str(package.country_code(client) or "")


@lru_cache(maxsize=4096)  # 13 µs for a new agent
def _client(agent: str) -> dict[str, str]:
    """Returns "device", "browser" and "os" of a user agent; "" for what it does not name."""
    parsed = import_module("ua_parser").parse(agent)
    system = parsed.os.family if parsed.os else ""
    browser_name = parsed.user_agent.family if parsed.user_agent else ""
    kind_of_device = "desktop" if system in DESKTOPS else ""
    if system == "Android":
        # Google asks the makers of browsers to write "Mobile" for phones only.
        kind_of_device = "phone" if "Mobile" in agent else "tablet"
    elif system == "iOS":
        kind_of_device = "tablet" if "iPad" in agent else "phone"
    return {"device": kind_of_device, "browser": browser_name, "os": system}


def device(request: HttpRequest) -> str:
    """Returns `phone`, `tablet` or `desktop`; "" for an unknown device."""
    return _client(user_agent_of(request))["device"]


def browser(request: HttpRequest) -> str:
    """Returns the name of the browser: `Firefox`, `Mobile Safari`; "" for an unknown one."""
    return _client(user_agent_of(request))["browser"]


def operating_system(request: HttpRequest) -> str:
    """Returns the name of the operating system: `Windows`, `iOS`; "" for an unknown one."""
    return _client(user_agent_of(request))["os"]


BUILT_IN: Mapping[str, Callable[[HttpRequest], Any]] = {
    "device": device,
    "browser": browser,
    "os": operating_system,
    "country": country,
}
# Dimensions of the site that links here, and of the link.
SOURCES = frozenset(sources.Source._fields)
BUILT_IN_NAMES = SOURCES | BUILT_IN.keys()
# Dimensions that find a value in nearly every view. Few links have a campaign, and a function of
# the site may have no value for most views.
OF_ALL_VIEWS = BUILT_IN_NAMES - {"campaign"}
# Functions of packages that are not installed with readtrack itself.
NEEDED = {
    **dict.fromkeys(("device", "browser", "os"), "ua_parser.parse"),
    "country": "iptocc.country_code",
}
