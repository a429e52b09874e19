"""Origins: was a request sent by a page of this site, or by a page of another origin?"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.http import is_same_domain

from readtrack.conf import cached_setting

# Values of Sec-Fetch-Site. "none" is for a typed address or a bookmark, which no page sends.
OWN_SITES = frozenset({"same-origin", "none"})
# Values of Sec-Fetch-Dest (Fetch standard) for pages within a page.
FRAMES = frozenset({"iframe", "frame", "embed", "object", "fencedframe"})
# How the Accept header of <img>, <link rel=stylesheet>, <audio> and <video> begins.
ACCEPTED_BY_PARTS = ("image/", "text/css", "audio/", "video/")
# Chrome and Firefox since version 100, and browsers that are built on them; Safari since 11.
CURRENT_BROWSER = re.compile(r"(?:Chrome|Firefox)/[1-9]\d\d|Safari/60[4-9]")
LONGEST_AGENT = 512  # characters of a user agent that are looked at


def is_foreign(meta: Mapping[str, Any]) -> bool:
    """Returns True if a page of another origin sent the request, unless CSRF_TRUSTED_ORIGINS names
    the origin.

    A request with neither `Sec-Fetch-Site` nor `Origin` is not foreign, because apps send neither.
    A browser sends one of them with each POST, and no page can forge them.
    """
    site = meta.get("HTTP_SEC_FETCH_SITE")
    if site in OWN_SITES:
        return False
    origin = meta.get("HTTP_ORIGIN")
    if origin is None:
        return site is not None
    if _is_trusted(origin):
        return False
    return site is not None or not _is_own_host(origin, meta)


def is_foreign_part(meta: Mapping[str, Any]) -> bool:
    """Returns True for a request by which a page of another origin fetches or frames this page.

    A tab that follows a link is no part of a page, on whatever page the link is.
    """
    if "HTTP_SEC_FETCH_SITE" not in meta:
        return _is_foreign_part_on_plain_http(meta)
    # A service worker that passes a navigation on sends `Sec-Fetch-Dest: empty`, both for a tab and
    # for a frame.
    is_navigation = meta.get("HTTP_SEC_FETCH_MODE") == "navigate"
    if is_navigation and meta.get("HTTP_SEC_FETCH_DEST") not in FRAMES:
        return False
    return is_foreign(meta)


def _is_foreign_part_on_plain_http(meta: Mapping[str, Any]) -> bool:
    """Returns True for the same kind of request, judged without `Sec-Fetch-Site`.

    Browsers leave that header out on plain http, and Safari did so before 16.4.
    """
    # Browsers send this header with each navigation, and no script of another origin can send it.
    if "HTTP_UPGRADE_INSECURE_REQUESTS" in meta:
        return False
    if "HTTP_ORIGIN" in meta:
        return is_foreign(meta)
    if meta.get("HTTP_ACCEPT", "").startswith(ACCEPTED_BY_PARTS):
        return True
    return _is_browser(meta) and not _is_own_host(meta.get("HTTP_REFERER", ""), meta)


def _is_browser(meta: Mapping[str, Any]) -> bool:
    """Returns True for a current browser.

    Returns False for a program with the user agent of a browser, such as Django's test client, or a
    server that passes the agent of its visitor on.
    """
    # A page's script can change these two headers, but not leave them out.
    if "HTTP_ACCEPT_LANGUAGE" not in meta or "HTTP_ACCEPT_ENCODING" not in meta:
        return False
    # Node's `fetch` sends Sec-Fetch-Mode without Sec-Fetch-Site. A browser's POST has an Origin.
    if "HTTP_SEC_FETCH_MODE" in meta or meta.get("REQUEST_METHOD") == "POST":
        return False
    return bool(CURRENT_BROWSER.search(meta.get("HTTP_USER_AGENT", "")[:LONGEST_AGENT]))


def _is_own_host(url: str, meta: Mapping[str, Any]) -> bool:
    """Returns True if the URL has the host that the request asks for.

    The scheme may differ, because a proxy that speaks TLS may not say so.
    """
    try:
        host = urlsplit(url).netloc
    except ValueError:
        return False
    if not host:
        return False
    # `_host_of` takes 12 µs, and differs only behind a proxy (USE_X_FORWARDED_HOST).
    return host == meta.get("HTTP_HOST") or host == _host_of(meta)


def _host_of(meta: Mapping[str, Any]) -> str:
    """Returns the host that the request asks for, by Django's rules; "" if Django refuses it."""
    request = HttpRequest()
    request.META = dict(meta)
    try:
        return request.get_host()
    except DisallowedHost:
        return ""


def _is_trusted(origin: str) -> bool:
    """Returns True if CSRF_TRUSTED_ORIGINS names the origin, by Django's rules."""
    exact, subdomains = _trusted_origins()
    if origin in exact:
        return True
    try:
        parsed = urlsplit(origin)
    except ValueError:
        return False
    hosts = subdomains.get(parsed.scheme, ())
    return any(is_same_domain(parsed.netloc, host) for host in hosts)


@cached_setting("CSRF_TRUSTED_ORIGINS")
def _trusted_origins() -> tuple[set[str], Mapping[str, list[str]]]:
    """Returns the trusted origins, and by scheme the hosts all of whose subdomains are trusted."""
    django = CsrfViewMiddleware(lambda request: HttpResponse())
    return django.allowed_origins_exact, django.allowed_origin_subdomains
