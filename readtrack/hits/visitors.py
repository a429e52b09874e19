"""The visitor and the reader of a request.

A visitor is known by the user, by a signed cookie, or by a hash of address and browser. All ids of
visitors are keyed hashes.
"""

import re
import secrets
import time
from binascii import b2a_base64
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from http.cookies import Morsel
from itertools import islice
from typing import Any, Literal, NamedTuple

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_cache_control
from django.utils.encoding import force_bytes
from django.utils.functional import LazyObject, empty
from django.utils.module_loading import import_string

from readtrack import layouts
from readtrack.conf import cached_setting, conf, register_at_fork, says_true
from readtrack.hits import addresses, bots, readers

DJANGO_LOADER = "django.contrib.auth.middleware"  # the module that loads the users of Django
URL_SAFE = bytes.maketrans(b"+/", b"-_")
AT_ONCE = 24  # new cookies that are made together
RANDOM = 22  # random characters in a cookie
MOST_OF_COOKIE = 200  # characters of a cookie that are looked at; our cookies have fewer
MOST_COOKIES = 5  # cookies of one name that are looked at in a request
NO_PART_OF_NAME = re.compile(r"\W", re.ASCII)  # is replaced in a script name within a cookie's name
# The attribute in which Django keeps headers by their names in small letters. If a version of
# Django has no such attribute, Django's public functions are used, which are slower.
HEADERS_ATTRIBUTE = "_store"
SHARED = re.compile(
    "public|s-maxage", re.IGNORECASE
)  # in Cache-Control: shared caches may store it
CDN_HEADER = re.compile(".+-cache-control|surrogate-control")
UNSHARED = re.compile("private|no-store", re.IGNORECASE)  # in a header for CDNs: they may not

# By what a browser without a cookie is known: the address of its connection, X-Forwarded-For, and
# its user agent. A plain tuple, which the garbage collector stops looking at.
Caller = tuple[str, str, str]

Kind = Literal["user", "cookie", "hash", "day", "address"]


class Visitor(NamedTuple):
    """A visitor. A view is a repeat if it was seen by either of the two ids."""

    id: str
    # For a new cookie, the hash of address and browser until the cookie comes back. For a user, the
    # id of the cookie.
    fallback_id: str = ""
    new_cookie: str = ""  # the value of the cookie to set; "" for none
    # The id of a "hash" is the same on every day, and never stored: store/day_keys.py replaces it
    # by that of a "day". The id of an "address" is the hash that stands in for a cookie.
    kind: Kind = "cookie"
    opted_out: bool = False  # gets no cookie, and the views are not broken down
    caller: Caller | None = None  # if the fallback_id is still to be computed, by `Hit.named`

    @property
    def rate_id(self) -> str:
        """The id whose hits are limited by RATE.

        That is not a new cookie, which has no hits yet, and not the cookie of a user, because a
        signed-in user is no robot.
        """
        if self.kind == "user":
            return self.id
        return self.fallback_id or self.id

    @property
    def identities(self) -> list[str]:
        """The ids that the visitor is known by."""
        return [self.id, self.fallback_id] if self.fallback_id else [self.id]


def signed_in(request: HttpRequest) -> Any | None:
    """Returns the signed-in user, or None."""
    user = getattr(request, "user", None)
    if _loader_of(user) == DJANGO_LOADER:
        # The view has not looked at the user, and has not logged anybody in or out. In an empty
        # session nobody is signed in. To load the user would then add `Vary: Cookie` to the page.
        loaded = getattr(request, "_acached_user", None)
        if loaded:
            user = loaded
        elif not _has_session(request):
            return None
    if user is None or not user.is_authenticated:
        return None
    return user


def is_nobody(request: HttpRequest) -> bool:
    """Returns True if it is known without a query that nobody is signed in."""
    user = getattr(request, "user", None)
    if user is None:
        return True
    if _loader_of(user) != DJANGO_LOADER or _has_session(request):
        return False
    return not getattr(request, "_acached_user", None)


async def asigned_in(request: HttpRequest) -> Any | None:
    """Returns the signed-in user, or None, like `signed_in`, but awaits the query that loads it.

    Only Django's own middleware has a user that can be awaited: `signed_in` finds it loaded then.
    Any other lazy user is loaded in a thread.
    """
    loader = _loader_of(getattr(request, "user", None))
    if loader not in {None, DJANGO_LOADER}:
        return await sync_to_async(signed_in)(request)
    if loader == DJANGO_LOADER and _has_session(request):
        await request.auser()
    return signed_in(request)


def _has_session(request: HttpRequest) -> bool:
    """Returns True if the request has a session, by a cookie or by anything else.

    To ask this does not load the session.
    """
    session = getattr(request, "session", None)
    if session is None:
        return False
    # Without a cookie, and as long as nobody writes into it, it is empty. `is_empty` takes three
    # times as long.
    if not getattr(session, "modified", True) and session.session_key is None:
        return False
    return not session.is_empty()


def _loader_of(user: Any) -> str | None:
    """Returns the module of the function that will load a lazy user; None for a loaded user."""
    if not isinstance(user, LazyObject):
        return None
    # Past the methods of LazyObject, which take five times as long.
    state = object.__getattribute__(user, "__dict__")
    if state.get("_wrapped") is not empty:
        return None
    return getattr(state.get("_setupfunc"), "__module__", "")


def visitor(request: HttpRequest, user: Any | None, *, named: bool = True) -> Visitor:
    """Returns the visitor of the request; a new one with a new cookie if the site uses cookies.

    Without `named`, a new visitor has the caller in place of the fallback_id, which takes time to
    compute (see `Hit.named`).
    """
    opted_out = conf.HONOUR_OPT_OUT and _asks_to_opt_out(request.META)
    has_cookies = not opted_out and _may_have_cookie(request)
    cookie_id = _id_of_cookie(request) if has_cookies else ""
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


def gets_cookie(request: HttpRequest, user: Any | None) -> bool:
    """Returns True if the visitor of the request is a new one who gets a cookie."""
    if user is not None or (conf.HONOUR_OPT_OUT and _asks_to_opt_out(request.META)):
        return False
    return _may_have_cookie(request) and not _id_of_cookie(request)


def _asks_to_opt_out(meta: Mapping[str, Any]) -> bool:
    """Returns True for a browser that sends Global Privacy Control or Do Not Track."""
    privacy_control: str = meta.get("HTTP_SEC_GPC", "")
    do_not_track: str = meta.get("HTTP_DNT", "")
    return privacy_control.strip() == "1" or do_not_track.strip() == "1"


def _may_have_cookie(request: HttpRequest) -> bool:
    """Returns True if the site's settings, and its function in COOKIE, allow a cookie."""
    if conf.ANONYMOUS != "cookie" or not conf.COOKIE.name:
        return False
    consent = conf.COOKIE.consent
    if not consent:
        return True
    return says_true(consent, lambda: import_string(consent)(request), otherwise="no cookie is set")


def cookie_name(request: HttpRequest) -> str:
    """Returns the name of the visitor's cookie.

    A site below a path of its host has a name of its own. Otherwise several sites on one host,
    which cannot read each other's cookies, would overwrite them.
    """
    script_name = request.META.get("SCRIPT_NAME")
    if not script_name:
        return conf.COOKIE.name
    return conf.COOKIE.name + NO_PART_OF_NAME.sub("_", script_name.rstrip("/"))


def _id_of_cookie(request: HttpRequest) -> str:
    """Returns the visitor's id of the request's cookie; "" if it has none that is ours."""
    name = cookie_name(request)
    cookie = request.COOKIES.get(name)
    if cookie is None:
        return ""
    visitor_id = _opened(cookie[:MOST_OF_COOKIE])
    if visitor_id:
        return visitor_id
    for cookie in _cookies_in_header(request, name):
        visitor_id = _opened(cookie)
        if visitor_id:
            return visitor_id
    return ""


def _cookies_in_header(request: HttpRequest, name: str) -> Iterator[str]:
    """Yields the first cookies of that name, as far as they are looked at.

    Another site may have set a cookie of this name for a wider path or domain. The browser sends
    both, and Django keeps the last one.
    """
    header: str = request.META.get("HTTP_COOKIE", "")
    cookies = re.finditer(rf"(?:^|;)[ \t]*{re.escape(name)}=([^;]*)", header)
    for match in islice(cookies, MOST_COOKIES):
        yield match[1].strip()[:MOST_OF_COOKIE]


def _new_cookie() -> tuple[str, str]:
    """Returns a signed cookie and the id of its visitor.

    The cookie has 22 random URL-safe characters (132 bits), the minute in which it was made, and
    the signature.
    """
    while True:
        try:
            present_key = _signing_keys()[0]
            return _stock_of_cookies(present_key, int(time.time()) // 60).pop()
        except IndexError:  # the stock is used up
            _stock_of_cookies.cache_clear()


# To make many cookies at once takes a third of the time. While one thread waits for random bytes,
# other threads run.
@lru_cache(maxsize=1)
def _stock_of_cookies(key: blake2b, minute: int) -> list[tuple[str, str]]:
    """Returns new cookies of that minute (since 1970), each with the id of its visitor."""
    random_text = secrets.token_urlsafe(RANDOM * AT_ONCE)
    stock = []
    for start in range(0, RANDOM * AT_ONCE, RANDOM):
        body = f"{random_text[start : start + RANDOM]}:{minute + 1:x}"
        signature, visitor_id = _signed(body, key)
        stock.append((f"{body}:{signature}", visitor_id))
    return stock


def _signed(body: str, key: blake2b) -> tuple[str, str]:
    """Returns the signature of a cookie, and the visitor's id: the two halves of a keyed hash.

    Neither can be computed from the other.
    """
    hashed = _keyed(body, key)
    return hashed[:16], hashed[16:]


# Because the parent gives out the cookies of its stock.
register_at_fork(after_in_child=_stock_of_cookies.cache_clear)


def address_id(request: HttpRequest) -> str:
    """Returns the id that stands in for the cookie of a visitor who brings none: a hash of address
    and browser.
    """
    return id_of((*addresses.hops(request.META), bots.user_agent_of(request)))


def id_of(caller: Caller) -> str:
    """Returns the id that stands in for the caller's cookie.

    Also shows the caller's address to the watch over addresses.
    """
    address, forwarded, agent = caller
    return id_by_network(addresses.network(address, forwarded, agent=agent), agent)


def id_by_network(network: str, agent: str) -> str:
    """Returns the id of a visitor without a cookie. `agent` is cut to `bots.LONGEST` characters."""
    return _keyed(network, _key("visitor", agent))


# 3 µs for a new text, 0.1 µs for a cached one; 1.5 µs without the cache.
@cached_setting("SECRET_KEY", maxsize=1024)
def digest(purpose: str, text: str) -> str:
    """Returns a keyed hash of the text: 16 URL-safe characters (BLAKE2b, RFC 7693).

    It differs for each purpose and secret. A purpose may be a salt: `store.keys.salt(purpose)`.
    """
    return _keyed(text, _key(purpose))


def earlier_digests(purpose: str, text: str) -> list[str]:
    """Returns the digests of the text by the keys that the site had before."""
    return [_keyed(text, key) for key in _earlier_keys(purpose)]


@cached_setting("SECRET_KEY", "SECRET_KEY_FALLBACKS", maxsize=1024)
def _earlier_keys(purpose: str) -> list[blake2b]:
    """Returns the keys made of SECRET_KEY_FALLBACKS, and of SECRET_KEY where SECRET came later."""
    secret_keys = list(settings.SECRET_KEY_FALLBACKS)
    if conf.SECRET:
        secret_keys.append(settings.SECRET_KEY)
    return [_derived(key, purpose, size=12) for key in secret_keys]


# Many visitors have the same agent, so that its part of the hash is computed once.
@cached_setting("SECRET_KEY", maxsize=1024)
def _key(purpose: str, agent: str | None = None) -> blake2b:
    """Returns the key for that purpose, as a hash that has already taken in the agent."""
    key = _derived(conf.SECRET or settings.SECRET_KEY, purpose, size=12)
    if agent is not None:
        key.update(f"address:{agent}:".encode("utf-8", "replace"))
    return key


def _derived(secret: str | bytes, purpose: str, *, size: int) -> blake2b:
    """Returns the key for that purpose, as a hash of `size` bytes that has not taken in any text.

    It is copied for each text, which takes less time than to begin a hash.
    """
    name, _, tenant = purpose.partition(":")
    salt = b""
    if tenant:
        salt = blake2b(tenant.encode(), digest_size=16).digest()
    key = blake2b(force_bytes(secret), digest_size=32, person=name.encode(), salt=salt).digest()
    return blake2b(key=key, digest_size=size)


def _keyed(text: str, key: blake2b) -> str:
    """Returns the keyed hash of the text, as URL-safe characters."""
    hashed = key.copy()
    hashed.update(text.encode("utf-8", "replace"))
    return b2a_base64(hashed.digest(), newline=False).translate(URL_SAFE).decode()


def user_id(pk: Any) -> str:
    """Returns the visitor id of the user with the primary key `pk`."""
    return digest("visitor", f"user:{pk}")


def reader(request: HttpRequest, user: Any | None) -> readers.Reader | None:
    """Returns the reader of the request; None for a visitor who has no dots."""
    if user is not None:
        return readers.reader_or_none(user.pk)
    if not conf.DOTS.anonymous:
        return None
    # A visitor with a new cookie is no reader until the cookie comes back. Otherwise each page for
    # a browser without cookies would take another number in read state.
    cookie_visitor = visitor(request, None)
    if cookie_visitor.kind != "cookie" or cookie_visitor.new_cookie:
        return None
    return f"{readers.ANONYMOUS}{cookie_visitor.id}"


def set_cookie(request: HttpRequest, response: HttpResponseBase, visitor: Visitor) -> None:
    """Sets the visitor's new cookie."""
    value = visitor.new_cookie
    cookie = _Cookie.__new__(_Cookie)
    attributes, _text = _blank_cookie(_is_secure(request))
    dict.update(cookie, attributes)
    # The attributes of a Morsel are set in the way that pickle does it. Its method `set` would
    # check the name each time.
    name = cookie_name(request)
    cookie.__dict__.update(_key=name, _value=value, _coded_value=value)
    response.cookies[name] = cookie
    # Cache-Control is private, because a shared cache would give the cookie to everybody. Most
    # pages lack the header, and to find and set it by Django's functions takes as long as
    # everything else here.
    headers = getattr(response.headers, HEADERS_ATTRIBUTE, None)
    if headers is None:
        patch_cache_control(response, private=True)
        return
    _, control = headers.get("cache-control", ("", ""))
    if not control:
        headers["cache-control"] = ("Cache-Control", "private")
    elif "private" not in control:
        patch_cache_control(response, private=True)


def _is_secure(request: HttpRequest) -> bool:
    """Returns True for a request by HTTPS, as Django's `is_secure`, which takes as long as the rest
    of the cookie, because it asks the settings.
    """
    scheme = request.META.get("wsgi.url_scheme")
    if scheme is None or _has_proxy_of_tls():
        return request.is_secure()
    return bool(scheme == "https")


@cached_setting("SECURE_PROXY_SSL_HEADER", maxsize=1)
def _has_proxy_of_tls() -> bool:
    """Returns True if a header of the site's proxy says which requests came by HTTPS."""
    return bool(settings.SECURE_PROXY_SSL_HEADER)


def has_unwanted_cookie(request: HttpRequest, visitor: Visitor) -> bool:
    """Returns True if the request has a cookie of ours that the visitor is not known by.

    It is from before: the visitor's consent, or the site's settings, do not allow it any more.
    """
    is_known_by_cookie = visitor.kind == "cookie" or visitor.fallback_id != ""
    return not is_known_by_cookie and _id_of_cookie(request) != ""


def remove_cookie(request: HttpRequest, response: HttpResponseBase) -> None:
    """Removes the visitor's cookie from the browser.

    Must not be called for a response that shared caches may store.
    """
    response.delete_cookie(
        cookie_name(request),
        path=conf.COOKIE.path,
        domain=conf.COOKIE.domain or None,
        samesite="Lax",
    )
    patch_cache_control(response, private=True)


def may_be_shared(response: HttpResponseBase) -> bool:
    """Returns True if shared caches may store the response, with a new cookie, for all visitors."""
    headers = getattr(response.headers, HEADERS_ATTRIBUTE, None)
    if headers is None:
        control = response.get("Cache-Control", "")
    else:
        _, control = headers.get("cache-control", ("", ""))
    if control and SHARED.search(control):
        return True
    for name in headers_for_cdns(response):
        value = response[name]
        if value.strip() and not UNSHARED.search(value):
            return True
    return False


def headers_for_cdns(response: HttpResponseBase) -> Sequence[str]:
    """Returns the names of the response's headers that CDNs obey in place of Cache-Control.

    They are `CDN-Cache-Control` (RFC 9213), `Surrogate-Control`, and those of single vendors, such
    as `Cloudflare-CDN-Cache-Control`. The names are in small letters.
    """
    headers = getattr(response.headers, HEADERS_ATTRIBUTE, None)
    if headers is None:
        headers = [name.lower() for name in response.headers]
    return _names_for_cdns(tuple(headers))


@lru_cache(maxsize=256)  # because most pages of a site have the same few headers
def _names_for_cdns(header_names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns those of the names that CDNs obey."""
    return tuple([name for name in header_names if CDN_HEADER.fullmatch(name)])


class _Cookie(Morsel[str]):
    """A visitor's cookie. The text of its attributes is computed once for all visitors."""

    def OutputString(self, attrs: Any = None) -> str:  # noqa: N802 - as Python calls it
        """Returns the cookie as the header Set-Cookie has it."""
        # The common text holds unless a middleware of the site has changed an attribute.
        attributes, text = _blank_cookie(bool(self["secure"]))
        if attrs is None and dict.__eq__(self, attributes):
            return f"{self._key}={self._value}{text}"  # type: ignore[attr-defined]
        return super().OutputString(attrs)


# Without a keyword, which would slow the cache down.
@cached_setting()
def _blank_cookie(is_secure: bool) -> tuple["Morsel[str]", str]:  # noqa: FBT001
    """Returns the cookie without its value, and the text of its attributes.

    Both are the same for all visitors. To copy them takes less time than to make them.
    """
    response = HttpResponse()
    response.set_cookie(
        conf.COOKIE.name,
        max_age=conf.COOKIE.age,
        path=conf.COOKIE.path,
        domain=conf.COOKIE.domain or None,
        secure=is_secure,
        httponly=True,
        samesite="Lax",
    )
    blank = response.cookies[conf.COOKIE.name]
    blank["expires"] = ""  # which max-age overrides
    _, _, attributes = blank.OutputString().partition(";")
    return blank, f";{attributes}"


# Not by Django's signer, which takes twenty times as long, because it derives its keys again for
# each cookie.
@cached_setting("SECRET_KEY", "SECRET_KEY_FALLBACKS")
def _signing_keys() -> list[blake2b]:
    """Returns the key that signs cookies, followed by those of SECRET_KEY_FALLBACKS."""
    site_secret = force_bytes(conf.SECRET)
    secret_keys = map(force_bytes, (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))
    return [_derived(site_secret + key, layouts.COOKIE, size=24) for key in secret_keys]


def has_recent_cookie(request: HttpRequest) -> bool:
    """Returns True if the cookie of the visitor is so new that a stand-in's window may still hold.

    Twice as long as a window lasts, because a part may send a view later.
    """
    name = cookie_name(request)
    last_cookie = request.COOKIES[name][:MOST_OF_COOKIE]
    for cookie in (last_cookie, *_cookies_in_header(request, name)):
        if _opened(cookie):
            _, minute, _ = cookie.rsplit(":", 2)
            return time.time() - int(minute, 16) * 60 <= 2 * conf.WINDOW
    return False


def _opened(cookie: str) -> str:
    """Returns the visitor's id of a cookie; "" for a cookie that is not ours, or too old."""
    body, _, given_signature = cookie.rpartition(":")
    given_bytes = given_signature.encode(errors="replace")
    for key in _signing_keys():
        signature, visitor_id = _signed(body, key)
        if secrets.compare_digest(signature.encode(), given_bytes):
            _, _, minute = body.rpartition(":")  # in hexadecimal digits
            age = time.time() - int(minute, 16) * 60
            return visitor_id if age <= conf.COOKIE.age else ""
    return ""
