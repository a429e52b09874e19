"""The address of the site, as ALERTS and DIGEST name it: a task has no request that tells it."""

import re
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from django.urls import get_script_prefix

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
    """Returns the address, which may be a path of the URLconf, as one that begins with the site.

    The path below which Django runs is there once, whether the site's address has it or Django
    knows it (FORCE_SCRIPT_NAME).
    """
    is_path = address.startswith("/") and not address.startswith("//")
    if is_path and get_script_prefix() == "/":
        return f"{site}{address}"
    return urljoin(f"{site}/", address)
