"""Bodies of requests. Anybody may send them, so their length is limited."""

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from django.http.request import RawPostDataException


def body_of(request: HttpRequest, *, most: int) -> bytes | None:
    """Returns the body of a request; None if it has more than `most` bytes, or cannot be read."""
    length = request.META.get("CONTENT_LENGTH")
    is_in_memory = hasattr(request, "_body")  # because a middleware has asked for it
    try:
        if not length and not is_in_memory:
            return _body_without_length(request, most=most)
        if int(length or 0) > most:
            return None
        body: bytes = request.body
    except (ValueError, OSError, RequestDataTooBig, RawPostDataException):
        # OSError for a body that breaks off, the last one for a body that a middleware has read as
        # a stream.
        return None
    if len(body) > most:
        return None
    return body


def _body_without_length(request: HttpRequest, *, most: int) -> bytes | None:
    """Returns the body of a request without Content-Length, as `body_of` does."""
    if getattr(request, "_read_started", False):  # by a middleware, as a stream
        return None
    body: bytes = request.read(most + 1)
    if len(body) > most:
        return None
    # As `request.body` does it, for a middleware that asks for the body afterwards.
    request._body = body
    return body
