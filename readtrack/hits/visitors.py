"""Who a visitor is: a user, a signed cookie, or a keyed hash of the address. Nothing personal leaves here."""

import secrets
from datetime import datetime, time, timedelta, timezone
from typing import Any, Literal, NamedTuple

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.functional import LazyObject, empty

from readtrack import buckets
from readtrack.conf import conf
from readtrack.hits import addresses
from readtrack.hits.bots import LONGEST
from readtrack.hits.hashing import digest

AUTHENTICATION = "django.contrib.auth.middleware"
SALT = "readtrack.hits.visitors"
OPT_OUT_HEADERS = ("Sec-GPC", "DNT")
DAY = timedelta(days=1)


class Visitor(NamedTuple):
    """`id` is a keyed hash. `fallback_id` is what the same anonymous visitor was told apart by a moment ago."""

    id: str
    fallback_id: str = ""
    new_cookie: str = ""
    kind: Literal["user", "cookie", "hash"] = "user"
    opted_out: bool = False  # nothing is to be stored about this visitor but that a view counted


def signed_in(request: HttpRequest) -> Any | None:
    """The signed-in user, or None.

    Nothing is loaded for a request that brings no session cookie, so a page that never looked at its
    user stays free of queries and of `Vary: Cookie`.
    """
    user = getattr(request, "user", None)
    if _waits_for_session(user):
        # What is not looked at yet was not replaced either, as logging in and out do.
        user = getattr(request, "_acached_user", None) or (user if _has_session(request) else None)
    return user if user is not None and user.is_authenticated else None


async def asigned_in(request: HttpRequest) -> Any | None:
    """`signed_in` for the event loop, where a query has to be awaited."""
    user = getattr(request, "user", None)
    if not _waits(user):
        return signed_in(request)
    if _waits_for_session(user) and hasattr(request, "auser"):
        if _has_session(request):
            await request.auser()
        return signed_in(request)
    return await sync_to_async(signed_in)(request)


def _waits(user: Any) -> bool:
    return isinstance(user, LazyObject) and user._wrapped is empty


def _waits_for_session(user: Any) -> bool:
    """Whether Django's middleware would load that user by the session; a site's own may know others, by a token."""
    return _waits(user) and getattr(user.__dict__.get("_setupfunc"), "__module__", "") == AUTHENTICATION


def _has_session(request: HttpRequest) -> bool:
    return settings.SESSION_COOKIE_NAME in request.COOKIES


def visitor(request: HttpRequest, user: AbstractBaseUser | None, *, at: datetime | None = None) -> Visitor:
    """Who makes this request. A new cookie is proposed for whoever brings none that we signed."""
    opted_out = has_opted_out(request)
    if user is not None:
        return Visitor(user_id(user.pk), opted_out=opted_out)
    source = f"{addresses.network(request.META)}:{_agent(request)}"
    if opted_out or conf.ANONYMOUS != "cookie" or not conf.COOKIE:
        return _visitor_of_day(source, buckets.now(at), opted_out=opted_out)
    cookie = request.get_signed_cookie(conf.COOKIE, default="", salt=SALT)
    if cookie:
        return Visitor(_cookie_id(cookie), kind="cookie")
    cookie = secrets.token_urlsafe(16)
    return Visitor(
        _cookie_id(cookie), fallback_id=digest("visitor", f"address:{source}"), new_cookie=cookie, kind="cookie"
    )


def user_id(pk: Any) -> str:
    """What the user of that primary key is known by."""
    return digest("visitor", f"user:{pk}")


def logged(address: str, agent: str, *, at: datetime) -> Visitor:
    """Who a log knows by address and user agent only; `fallback_id` is the same every day."""
    source = f"{addresses.network_of(address)}:{agent[:LONGEST]}"
    always = digest("visitor", f"address:{source}")
    if conf.ANONYMOUS == "cookie" and conf.COOKIE:
        return Visitor(always, fallback_id=always)
    return Visitor(digest("visitor", f"{at.date()}:{source}"), fallback_id=always, kind="hash")


def known_by(visitor: Visitor) -> tuple[str, ...]:
    """What the visitor will be recognised by; a cookie that was only proposed may never come back."""
    names = (visitor.fallback_id,) if visitor.new_cookie else (visitor.id, visitor.fallback_id)
    return tuple(name for name in names if name)


def has_opted_out(request: HttpRequest) -> bool:
    """Whether the browser says so, by Global Privacy Control or Do Not Track, and the site honours it."""
    return conf.HONOUR_OPT_OUT and any(request.headers.get(name, "").strip() == "1" for name in OPT_OUT_HEADERS)


def is_refused(user: AbstractBaseUser | None) -> bool:
    """Whether the site counts no anonymous visitors."""
    return user is None and conf.ANONYMOUS == "none"


def _cookie_id(cookie: str) -> str:
    return digest("visitor", f"cookie:{cookie}")


def _visitor_of_day(source: str, at: datetime, *, opted_out: bool) -> Visitor:
    """Known for one day, UTC. For a window after midnight yesterday's hash still tells who was just here."""
    day = at.date()
    is_new_day = at - datetime.combine(day, time(), timezone.utc) < timedelta(seconds=conf.WINDOW)
    return Visitor(
        digest("visitor", f"{day}:{source}"),
        fallback_id=digest("visitor", f"{day - DAY}:{source}") if is_new_day else "",
        kind="hash",
        opted_out=opted_out,
    )


def remember(request: HttpRequest, response: HttpResponseBase, visitor: Visitor) -> None:
    """Sets the proposed cookie."""
    if not visitor.new_cookie:
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
    # Otherwise a shared cache may take it for that of everybody who brings no cookie.
    patch_cache_control(response, private=True)


def settled(visitor: Visitor, response: HttpResponseBase) -> Visitor:
    """The visitor as this response can know it: what shared caches may keep, and hand to others, sets no cookie."""
    if visitor.new_cookie and _is_shared(response):
        return Visitor(visitor.fallback_id, kind="hash")
    return visitor


def _is_shared(response: HttpResponseBase) -> bool:
    control = str(response.get("Cache-Control", "")).lower()
    return "public" in control or "s-maxage" in control


def _agent(request: HttpRequest) -> str:
    return str(request.META.get("HTTP_USER_AGENT", ""))[:LONGEST]
