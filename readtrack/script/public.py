"""Responses that are the same for everybody, so that shared caches may keep them."""

import re
from typing import Any

from django.http import HttpResponse

SHARED = re.compile(r"\bpublic\b")  # in Cache-Control: shared caches may store it


class PublicResponse(HttpResponse):
    """A response with `Cache-Control: public`, which turns `private` once it has a cookie.

    A middleware of the site may set one on each response, such as that of a session which is saved
    on every request. A shared cache would give it to everybody.
    """

    # A property, because middlewares around the view set cookies after it, and whoever sends the
    # response then asks for its headers.
    @property
    def headers(self) -> Any:
        """The headers, as they fit the cookies that the response has now."""
        headers = self._headers
        control = headers.get("Cache-Control", "")
        has_cookie = "Set-Cookie" in headers or bool(getattr(self, "cookies", None))
        if has_cookie and SHARED.search(control):
            headers["Cache-Control"] = SHARED.sub("private", control)
        return headers

    @headers.setter
    def headers(self, headers: Any) -> None:
        self._headers = headers
