"""Which reports of page scripts may be answered before Django's stack, where there are no sessions,
no middlewares of the site and no URL resolver. `wsgi.py` and `asgi.py` answer them.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpResponseBase
from django.urls import NoReverseMatch, get_script_prefix, reverse

from readtrack import parts
from readtrack.conf import cached_setting, conf
from readtrack.hits import exclusions
from readtrack.hits.visitors import HEADERS_ATTRIBUTE
from readtrack.middleware import ReadTrackMiddleware
from readtrack.store import keys

# By these a middleware may know a user who has no session.
SIGNING_IN = ("HTTP_AUTHORIZATION", "REMOTE_USER", "HTTP_REMOTE_USER")
# How the answer to a report on a page without counts and dots begins. Only for these does an answer
# ask SQL for anything.
NO_ELEMENTS = b'{"elements": {}'


class Collector:
    """Decides which requests are reports that need nothing of Django's stack."""

    def __init__(self, cookies: Collection[str]) -> None:
        """Takes the names of further cookies by which the site knows its users."""
        self._cookies = tuple(f"{name}=" for name in (settings.SESSION_COOKIE_NAME, *cookies))

    def takes(self, method: str, path: str, meta: Mapping[str, Any]) -> bool:
        """Returns True for a report of somebody who is surely not signed in, on a site whose own
        functions do not judge its requests.

        `path` is that below the script name, `meta` has the headers as `request.META` has them.
        """
        if method != "POST" or path != _path():
            return False
        if needs_stack():
            return False
        # A loop, because `any` takes five times as long where nothing is found.
        for header in SIGNING_IN:
            if header in meta:
                return False
        cookies: str = meta.get("HTTP_COOKIE", "")
        # A cookie whose name only ends so costs the way through Django, and nothing else.
        return not any(name in cookies for name in self._cookies)


def handler_of(view: Callable[..., Any]) -> Any:
    """Returns a function, or a coroutine function as the view is one, that returns the response to
    a report: recorded and filled in by the middleware, as in Django's stack.
    """
    middleware: Any = ReadTrackMiddleware(view)
    return convert_exception_to_response(middleware)


def asks_sql(response: HttpResponseBase) -> bool:
    """Returns True if the answer may have asked SQL, so that connections have to be looked
    after.
    """
    return not getattr(response, "content", b"").startswith(NO_ELEMENTS)


def headers_of(response: Any) -> list[tuple[str, str]]:
    """Returns the headers of the response, its cookies among them."""
    cookies = [("Set-Cookie", cookie.OutputString()) for cookie in response.cookies.values()]
    # Past the mapping of Django, which looks up each name again.
    kept = getattr(response.headers, HEADERS_ATTRIBUTE, None)
    headers = response.items() if kept is None else kept.values()
    return [*headers, *cookies]


@cached_setting("ROOT_URLCONF", "FORCE_SCRIPT_NAME", maxsize=1)
def _path() -> str:
    """Returns the path of the script below the script name; "" for a site without readtrack's
    URLs.
    """
    try:
        address = reverse("readtrack:page")
    except NoReverseMatch:
        return ""
    return "/" + address.removeprefix(get_script_prefix())


@cached_setting("INSTALLED_APPS")
def needs_stack() -> bool:
    """Returns True if functions of the site look at each request, which expect of it what the
    site's middlewares do. Then all reports go through Django.
    """
    return bool(
        keys.tenant_function()
        or conf.COOKIE.consent
        or exclusions.rules().by_key["function"]
        or any(part.asks_site_about_requests() for part in parts.installed())
    )
