"""Bodies of requests, which anybody may send."""

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from django.http.request import RawPostDataException


def body_of(request: HttpRequest, *, most: int) -> bytes | None:
    """Returns the body of a request; None for one of more than `most` bytes, and for one that
    breaks off.
    """
    length = request.META.get("CONTENT_LENGTH")
    is_in_memory = hasattr(request, "_body")  # where a middleware has asked for it
    try:
        if not length and not is_in_memory:
            return _unmeasured(request, most=most)
        if int(length or 0) > most:
            return None
        body: bytes = request.body
    except (ValueError, OSError, RequestDataTooBig, RawPostDataException):
        # The last one for a body that a middleware has read as a stream.
        return None
    return body if len(body) <= most else None


def _unmeasured(request: HttpRequest, *, most: int) -> bytes | None:
    """Returns the body of a request that does not say how long it is, such as a chunked one."""
    if getattr(request, "_read_started", False):  # by a middleware, as a stream
        return None
    body: bytes = request.read(most + 1)
    if len(body) > most:
        return None
    # As `request.body` does, so that a middleware which asks for it afterwards has it.
    request._body = body
    return body
