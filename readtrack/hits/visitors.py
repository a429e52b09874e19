"""Visitors and readers of a request: a user, a signed cookie, or a keyed hash of the address. Ids
are hashes, too.
"""

import re
import secrets
import time
from binascii import b2a_base64
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from http.cookies import Morsel
from typing import Any, Literal, NamedTuple

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_cache_control
from django.utils.encoding import force_bytes
from django.utils.functional import LazyObject, empty
from django.utils.module_loading import import_string

from readtrack.conf import cached_setting, conf, register_at_fork, says_true
from readtrack.hits import addresses, bots, readers

AUTHENTICATION = "django.contrib.auth.middleware"
URL_SAFE = bytes.maketrans(b"+/", b"-_")
AT_ONCE = 24  # new cookies that are signed together
RANDOM = 22  # random characters in a cookie
MOST_OF_COOKIE = 200  # characters that are looked at, because ours have fewer
# Where Django keeps headers by their names in small letters. Without it, Django's functions are used.
HEADERS = "_store"
SHARED = re.compile("public|s-maxage", re.IGNORECASE)  # in a Cache-Control
UNSHARED = re.compile("private|no-store", re.IGNORECASE)  # in a header for CDNs

# What a browser without a cookie is told apart by: address of the connection, X-Forwarded-For, user
# agent. A plain tuple, which the garbage collector stops looking at.
Caller = tuple[str, str, str]

Kind = Literal["user", "cookie", "hash", "day", "address"]


class Visitor(NamedTuple):
    """A visitor, whose repeats are found by both ids."""

    id: str
    # Before the cookie comes back the hash of address and browser; of a user, the cookie.
    fallback_id: str = ""
    new_cookie: str = ""
    # A "hash" is the same on every day, and never stored: store/day_keys.py makes it the id of a
    # "day". An "address" is known by the hash that stands in for a cookie.
    kind: Kind = "cookie"
    opted_out: bool = False  # no cookie is set, and views are not broken down
    caller: Caller | None = None  # whose id `Hit.named` makes the fallback_id

    @property
    def rate_id(self) -> str:
        """The id whose hits RATE limits: a new cookie has no hits yet, a user who signed in
        is no robot.
        """
        return self.id if self.kind == "user" else self.fallback_id or self.id

    @property
    def identities(self) -> list[str]:
        """The ids that the visitor is known by."""
        return [self.id, self.fallback_id] if self.fallback_id else [self.id]


def signed_in(request: HttpRequest) -> Any | None:
    """Returns the signed-in user, or None."""
    user = getattr(request, "user", None)
    if _loader_of(user) == AUTHENTICATION:
        # A user who is not loaded was not replaced either, as logging in and out do. Without a
        # session cookie none is loaded, because that would add `Vary: Cookie` to a page whose view
        # never looked at the user.
        loaded = getattr(request, "_acached_user", None)
        if loaded:
            user = loaded
        elif _session_cookie() not in request.COOKIES:
            return None
    if user is None or not user.is_authenticated:
        return None
    return user


async def asigned_in(request: HttpRequest) -> Any | None:
    """Returns the signed-in user, or None; awaits the query that loads a user."""
    loader = _loader_of(getattr(request, "user", None))
    if loader not in {None, AUTHENTICATION}:
        return await sync_to_async(signed_in)(request)
    if loader == AUTHENTICATION and _session_cookie() in request.COOKIES:
        await request.auser()
    return signed_in(request)


@cached_setting("SESSION_COOKIE_NAME")
def _session_cookie() -> str:
    return str(settings.SESSION_COOKIE_NAME)


def _loader_of(user: Any) -> str | None:
    """Returns the module of the function that will load a lazy user; None for a user who is loaded."""
    if not isinstance(user, LazyObject):
        return None
    # The object's own function takes five times as long.
    state = object.__getattribute__(user, "__dict__")
    if state.get("_wrapped") is not empty:
        return None
    return getattr(state.get("_setupfunc"), "__module__", "")


def visitor(request: HttpRequest, user: AbstractBaseUser | None, *, named: bool = True) -> Visitor:
    """Returns the visitor of the request, with a new cookie if the site uses cookies and the
    request brings none.

    With `named` False a visitor with a new cookie may lack the fallback_id (see `Hit.named`).
    """
    opted_out = conf.HONOUR_OPT_OUT and _asks_to_opt_out(request.META)
    has_cookies = not opted_out and _may_have_cookie(request)
    cookie_id = ""
    if has_cookies:
        cookie = request.COOKIES.get(conf.COOKIE)
        if cookie:
            cookie_id = _opened(cookie[:MOST_OF_COOKIE])
    if user is not None:
        return Visitor(user_id(user.pk), fallback_id=cookie_id, kind="user", opted_out=opted_out)
    if cookie_id:
        return Visitor(cookie_id)
    caller = (*addresses.hops(request.META), bots.user_agent_of(request))
    if not has_cookies:
        return Visitor(id_of(caller), kind="hash", opted_out=opted_out)
    new_cookie, new_id = _new_cookie()
    if named:
        return Visitor(new_id, id_of(caller), new_cookie)
    return Visitor(new_id, "", new_cookie, caller=caller)


def _asks_to_opt_out(meta: Mapping[str, Any]) -> bool:
    """Returns True for a browser that sends Global Privacy Control or Do Not Track."""
    privacy_control: str = meta.get("HTTP_SEC_GPC", "")
    do_not_track: str = meta.get("HTTP_DNT", "")
    return privacy_control.strip() == "1" or do_not_track.strip() == "1"


def _may_have_cookie(request: HttpRequest) -> bool:
    """Returns True if the site's settings, and its function CONSENT, allow a cookie."""
    if conf.ANONYMOUS != "cookie" or not conf.COOKIE:
        return False
    consent = conf.CONSENT
    if not consent:
        return True
    return says_true(consent, lambda: import_string(consent)(request), otherwise="no cookie is set")


def _new_cookie() -> tuple[str, str]:
    """Returns a signed cookie with 22 random URL-safe characters (132 bits) and its minute, and the
    visitor's id.
    """
    while True:
        try:
            present_key = _signing_keys()[0]
            return _drawn(present_key, int(time.time()) // 60).pop()
        except IndexError:  # all are given out
            _drawn.cache_clear()


# Several are made at once, which takes a third of the time. Other threads run while one waits for
# random bytes.
@lru_cache(maxsize=1)
def _drawn(key: blake2b, minute: int) -> list[tuple[str, str]]:
    """Returns new cookies of that minute (since 1970), each with its visitor's id."""
    random_text = secrets.token_urlsafe(RANDOM * AT_ONCE)
    made = []
    for start in range(0, RANDOM * AT_ONCE, RANDOM):
        body = f"{random_text[start : start + RANDOM]}:{minute + 1:x}"
        signature, visitor_id = _signed(body, key)
        made.append((f"{body}:{signature}", visitor_id))
    return made


def _signed(body: str, key: blake2b) -> tuple[str, str]:
    """Returns the signature of a cookie and the visitor's id, neither of which tells the other."""
    hashed = _keyed(body, key)
    return hashed[:16], hashed[16:]


register_at_fork(after_in_child=_drawn.cache_clear)  # because the parent gives them out


def address_id(request: HttpRequest) -> str:
    """Returns the id that stands in for the cookie of a visitor who brings none."""
    return id_of((*addresses.hops(request.META), bots.user_agent_of(request)))


def network_id(request: HttpRequest) -> str:
    """Returns the id of the request's address, whatever the browser. Never stored as it is."""
    return digest("network", addresses.network(*addresses.hops(request.META)))


def id_of(caller: Caller) -> str:
    """Returns the id that stands in for the caller's cookie, and shows the caller's address to the
    watch.
    """
    address, forwarded, agent = caller
    return _keyed(addresses.network(address, forwarded, agent=agent), _key("visitor", agent))


@cached_setting(
    "SECRET_KEY", maxsize=1024
)  # 3 µs for a new text, 0.1 µs for a cached one; 1.5 µs without the cache
def digest(purpose: str, text: str) -> str:
    """Returns 16 URL-safe characters for the text, different for each purpose and key (keyed
    BLAKE2b, RFC 7693). A purpose may be a salt: `store.keys.salt(purpose)`.
    """
    return _keyed(text, _key(purpose))


@cached_setting(
    "SECRET_KEY", maxsize=1024
)  # of an agent, which many visitors have, most of the hash is computed once
def _key(purpose: str, agent: str | None = None) -> blake2b:
    key = _derived(conf.SECRET or settings.SECRET_KEY, purpose, 12)
    if agent is not None:
        key.update(f"address:{agent}:".encode("utf-8", "replace"))
    return key


def _derived(secret: str | bytes, purpose: str, size: int) -> blake2b:
    """Returns a hash that has taken in its key; copies of it take less than hashes that begin."""
    name, _, tenant = purpose.partition(":")
    salt = blake2b(tenant.encode(), digest_size=16).digest() if tenant else b""
    key = blake2b(force_bytes(secret), digest_size=32, person=name.encode(), salt=salt).digest()
    return blake2b(key=key, digest_size=size)


def _keyed(text: str, key: blake2b) -> str:
    hashed = key.copy()
    hashed.update(text.encode("utf-8", "replace"))
    return b2a_base64(hashed.digest(), newline=False).translate(URL_SAFE).decode()


def user_id(pk: Any) -> str:
    """Returns the visitor id of the user with that primary key."""
    return digest("visitor", f"user:{pk}")


def logged(address: str, agent: str, *, at: datetime) -> Visitor:
    """Returns the visitor of a line in a log; `fallback_id` is the same on every day. The address
    may be any name.
    """
    always = _keyed(
        addresses.network_of(address) or address, _key("visitor", agent[: bots.LONGEST])
    )
    if conf.ANONYMOUS == "cookie" and conf.COOKIE:
        return Visitor(always, fallback_id=always)
    return Visitor(digest("visitor", f"{at.date()}:{always}"), fallback_id=always, kind="hash")


def reader(request: HttpRequest, user: AbstractBaseUser | None) -> readers.Reader | None:
    """Returns the reader of the request, or None without read state."""
    if user is not None:
        return readers.or_none(user.pk)
    if not conf.ANONYMOUS_READERS:
        return None
    # A new cookie is no reader before it comes back, because each page without one would get a new
    # position.
    anonymous = visitor(request, None)
    if anonymous.kind != "cookie" or anonymous.new_cookie:
        return None
    return f"{readers.ANONYMOUS}{anonymous.id}"


def set_cookie(request: HttpRequest, response: HttpResponseBase, visitor: Visitor) -> None:
    """Sets the visitor's new cookie."""
    value = visitor.new_cookie
    cookie = _Cookie.__new__(_Cookie)
    blank, _ = _blank_cookie(request.is_secure())
    dict.update(cookie, blank)
    # As copies and pickles are made; `set` would check the name each time.
    cookie.__dict__.update(_key=conf.COOKIE, _value=value, _coded_value=value)
    response.cookies[conf.COOKIE] = cookie
    # Because a shared cache would give it to everybody. Most pages lack the header, and to look for
    # it and set it by Django's functions takes as long as all else here.
    headers = getattr(response.headers, HEADERS, None)
    if headers is None or "cache-control" in headers:
        patch_cache_control(response, private=True)
    else:
        headers["cache-control"] = ("Cache-Control", "private")


def may_be_shared(response: HttpResponseBase) -> bool:
    """Returns True if shared caches may store the response, and a new cookie with it, and send it
    to others.
    """
    headers = getattr(response.headers, HEADERS, None)
    if headers is None:
        control = response.get("Cache-Control", "")
    else:
        _, control = headers.get("cache-control", ("", ""))
    if control and SHARED.search(control):
        return True
    for_cdns = (response[name] for name in headers_for_cdns(response))
    return any(value.strip() and not UNSHARED.search(value) for value in for_cdns)


def headers_for_cdns(response: HttpResponseBase) -> list[str]:
    """Returns the names of the headers that CDNs obey in place of Cache-Control (RFC 9213).

    They are `CDN-Cache-Control`, `Surrogate-Control`, and what a vendor calls its own, such as
    `Cloudflare-CDN-Cache-Control`.
    """
    headers = getattr(response.headers, HEADERS, None)
    names = [name.lower() for name in response.headers] if headers is None else headers
    # Most pages have none, and one search is faster than a look at each name.
    together = " ".join(names)
    if "-cache-control" not in together and "surrogate-control" not in together:
        return []
    return [
        name for name in names if name.endswith("-cache-control") or name == "surrogate-control"
    ]


class _Cookie(Morsel[str]):
    """A visitor's cookie. Its attributes are those of all, and so is their text, unless somebody
    changes them.
    """

    def OutputString(self, attrs: Any = None) -> str:  # noqa: N802 - as Python calls it
        attributes, text = _blank_cookie(bool(self["secure"]))
        if attrs is None and dict.__eq__(self, attributes):
            return f"{self._key}={self._value}{text}"  # type: ignore[attr-defined]
        return super().OutputString(attrs)


@cached_setting()
def _blank_cookie(is_secure: bool) -> tuple["Morsel[str]", str]:  # noqa: FBT001 - a keyword would slow the cache down
    """Returns the cookie without its value, and the text of its attributes.

    They are the same for all visitors, and to copy both takes less time than to make them.
    """
    made = HttpResponse()
    made.set_cookie(
        conf.COOKIE, max_age=conf.COOKIE_AGE, secure=is_secure, httponly=True, samesite="Lax"
    )
    blank = made.cookies[conf.COOKIE]
    blank["expires"] = ""  # which max-age overrides
    return blank, ";" + blank.OutputString().partition(";")[2]


# Not by Django's signer, which derives its keys again for each cookie, and takes twenty times as
# long.
@cached_setting("SECRET_KEY", "SECRET_KEY_FALLBACKS")
def _signing_keys() -> list[blake2b]:
    """Returns the key that signs cookies, and behind it those of SECRET_KEY_FALLBACKS."""
    site_secret = force_bytes(conf.SECRET)
    secret_keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return [_derived(site_secret + force_bytes(key), "cookie", 24) for key in secret_keys]


def has_recent_cookie(request: HttpRequest) -> bool:
    """Returns True if the cookie of the visitor is so new that a stand-in's window may still hold.

    Twice as long as a window lasts, because a view may have waited in a buffer.
    """
    minute = request.COOKIES[conf.COOKIE].split(":")[1]
    return time.time() - int(minute, 16) * 60 <= 2 * conf.WINDOW


def _opened(cookie: str) -> str:
    """Returns the visitor's id by a cookie; "" for a foreign cookie, and for one that is too old."""
    body, _, sent = cookie.rpartition(":")
    sent_bytes = sent.encode(errors="replace")
    for key in _signing_keys():
        signature, visitor_id = _signed(body, key)
        if secrets.compare_digest(signature.encode(), sent_bytes):
            minute = int(body.rpartition(":")[2], 16)
            is_fresh = time.time() - minute * 60 <= conf.COOKIE_AGE
            return visitor_id if is_fresh else ""
    return ""
