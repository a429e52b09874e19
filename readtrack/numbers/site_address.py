"""The address of the site, as the settings of parts name it: a task has no request that tells it.

Where each tenant has an address of its own, they name a function that returns the present one's.
"""

import re
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from django.urls import get_script_prefix
from django.utils.module_loading import import_string

from readtrack.conf import function_problem

# A host of a URL, perhaps with a port, without user, password and blanks.
HOST = re.compile(r"[^\s@]+")


def is_site(value: Any) -> bool:
    """Returns True for an address with a scheme and a host, and perhaps the path below which Django
    runs.
    """
    parts = parts_of(value)
    if parts is None or parts.scheme not in {"http", "https"}:
        return False
    return HOST.fullmatch(parts.netloc) is not None and not (parts.query or parts.fragment)


def site_problem(value: Any) -> str:
    """Returns why the value of 'site' is neither an address nor the path of a function; "" if it is
    one of them.
    """
    if is_site(value):
        return ""
    problem = function_problem(value)
    if not problem:
        return ""
    return (
        f"'site' is {value!r}, which is no address such as 'https://example.com', and no path of a"
        f" function: {problem}"
    )


def present_site(site: str) -> str:
    """Returns the address of the site, without a slash at its end. If `site` is the path of a
    function, it is what the function returns now, such as the address of the present tenant.

    Raises ValueError if the function returns no address, and what the function raises.
    """
    if is_site(site):
        return site.rstrip("/")
    address = import_string(site)()
    if not is_site(address):
        raise ValueError(f"{site} returned {address!r}, which is no address of a site")
    return str(address).rstrip("/")


def parts_of(url: Any) -> SplitResult | None:
    """Returns the parts of the address; None for a value that is none."""
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for a port that is no number
    except ValueError:
        return None
    return parts


def absolute(site: str, address: str) -> str:
    """Returns the address, which may be a path of the URLconf, as one that begins with the site,
    which may be the path of a function as for `present_site`.

    The path below which Django runs is there once, whether the site's address has it or Django
    knows it (FORCE_SCRIPT_NAME).
    """
    beginning = present_site(site)
    is_path = address.startswith("/") and not address.startswith("//")
    if is_path and get_script_prefix() == "/":
        return f"{beginning}{address}"
    return urljoin(f"{beginning}/", address)
