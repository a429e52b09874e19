"""Bodies of requests. Anybody may send them, so their length is limited."""

from typing import Any

from django.conf import settings


def body_of(request: Any, *, most: int) -> bytes | None:
    """Returns the body of a request; None if it has more than `most` bytes, or more than Django
    lets into memory, or cannot be read.
    """
    if hasattr(request, "_body"):  # because a middleware has asked for it
        return _unless_longer(request.body, most)
    if getattr(request, "_read_started", False):  # by a middleware, as a stream
        return None
    django_limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if django_limit is not None:
        most = min(most, django_limit)
    try:
        if int(request.META.get("CONTENT_LENGTH") or 0) > most:
            return None
        # Not by `request.body`, which takes three times as long, and reads a body without a length
        # to its end.
        body = _unless_longer(request.read(most + 1), most)
    except (ValueError, OSError):  # OSError for a body that breaks off
        return None
    if body is not None:
        # As `request.body` does it, for a middleware that asks for the body afterwards.
        request._body = body
    return body


def _unless_longer(body: bytes, most: int) -> bytes | None:
    if len(body) > most:
        return None
    return body
