"""Who a visitor is: a user, a signed cookie, or a keyed hash of the address. Nothing personal leaves here."""

import secrets
from ipaddress import ip_address, ip_network
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.functional import LazyObject, empty

from readtrack.bots import LONGEST
from readtrack.conf import conf
from readtrack.digests import digest

SALT = "readtrack.visitors"


class Visitor(NamedTuple):
    """`id` is a keyed hash. `seen_as` is what an anonymous visitor was told apart by before the cookie."""

    id: str
    seen_as: str = ""
    new_cookie: str = ""


def signed_in(request: HttpRequest) -> Any | None:
    """The signed-in user, or None.

    Nothing is loaded for a request that brings no session cookie, so a page that never looked at its
    user stays free of queries and of `Vary: Cookie`.
    """
    user = getattr(request, "_acached_user", None) or getattr(request, "user", None)
    if user is None:
        return None
    if isinstance(user, LazyObject) and user._wrapped is empty and not _has_session(request):
        return None
    return user if user.is_authenticated else None


async def asigned_in(request: HttpRequest) -> Any | None:
    """`signed_in` for the event loop, where a query has to be awaited."""
    if _has_session(request) and hasattr(request, "auser"):
        await request.auser()
    return signed_in(request)


def _has_session(request: HttpRequest) -> bool:
    return settings.SESSION_COOKIE_NAME in request.COOKIES


def visitor(request: HttpRequest, user: AbstractBaseUser | None) -> Visitor:
    """Who makes this request. A new cookie is proposed for whoever brings none that we signed."""
    if user is not None:
        return Visitor(digest("visitor", f"user:{user.pk}"))
    address = digest("visitor", f"address:{_network(request)}:{_agent(request)}")
    if not conf.COOKIE:
        return Visitor(address)
    cookie = request.get_signed_cookie(conf.COOKIE, default="", salt=SALT)
    if cookie:
        return Visitor(digest("visitor", f"cookie:{cookie}"))
    cookie = secrets.token_urlsafe(16)
    return Visitor(digest("visitor", f"cookie:{cookie}"), seen_as=address, new_cookie=cookie)


def remember(request: HttpRequest, response: HttpResponseBase, visitor: Visitor) -> None:
    """Sets the proposed cookie, unless shared caches may keep the response and hand it to others."""
    if not visitor.new_cookie or _is_shared(response):
        return
    response.set_signed_cookie(
        conf.COOKIE,
        visitor.new_cookie,
        salt=SALT,
        max_age=conf.COOKIE_AGE,
        secure=request.is_secure(),
        httponly=True,
        samesite="Lax",
    )
    patch_vary_headers(response, ["Cookie"])


def _is_shared(response: HttpResponseBase) -> bool:
    control = str(response.get("Cache-Control", "")).lower()
    return "public" in control or "s-maxage" in control


def _network(request: HttpRequest) -> str:
    """The client's address; of IPv6 the /64, which is one household."""
    raw = request.META.get("REMOTE_ADDR", "")
    try:
        address = ip_address(raw)
    except ValueError:
        return ""  # a Unix socket has none
    return str(ip_network((address, 64), strict=False)) if address.version == 6 else raw


def _agent(request: HttpRequest) -> str:
    return str(request.META.get("HTTP_USER_AGENT", ""))[:LONGEST]
