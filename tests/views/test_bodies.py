"""A body is read as far as it is wanted, and no further."""

from io import BytesIO
from typing import Any

import pytest
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest
from django.http.request import RawPostDataException
from django.test import RequestFactory

from readtrack.views.bodies import body_of

MOST = 10  # bytes


class Stream(BytesIO):
    """A body that notes how much of it was read."""

    read_to = 0

    def read(self, size: int | None = -1) -> bytes:
        part = super().read(size)
        self.read_to = self.tell()
        return part


class Broken(BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise OSError("the connection was lost")


def chunked(stream: BytesIO) -> ASGIRequest:
    """Returns a request that does not say how long its body is."""
    scope: Any = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": b"",
        "headers": [(b"transfer-encoding", b"chunked"), (b"content-type", b"text/plain")],
    }
    return ASGIRequest(scope, stream)


@pytest.mark.parametrize("body", [b"", b"a", b"a" * MOST])
def test_a_chunked_body_is_read_and_stays_there(body: bytes) -> None:
    request = chunked(BytesIO(body))
    assert body_of(request, most=MOST) == body
    assert request.body == body  # a middleware may ask for it afterwards


def test_a_chunked_body_is_not_read_beyond_what_is_wanted() -> None:
    stream = Stream(b"a" * 1_000_000)
    assert body_of(chunked(stream), most=MOST) is None
    assert stream.read_to == MOST + 1


def test_a_body_that_says_its_length_is_not_read_if_it_is_too_long() -> None:
    request = RequestFactory().post("/", b"a" * (MOST + 1), "text/plain")
    assert body_of(request, most=MOST) is None
    request = RequestFactory().post("/", b"a" * MOST, "text/plain")
    assert body_of(request, most=MOST) == request.body == b"a" * MOST


def test_a_body_that_was_read_before_is_there() -> None:
    request = chunked(BytesIO(b"abc"))
    assert request.body == b"abc"
    assert body_of(request, most=MOST) == b"abc"
    assert body_of(request, most=2) is None
    assert request.body == b"abc"


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_that_a_middleware_took_as_a_stream_is_none(*, is_chunked: bool) -> None:
    request: HttpRequest = RequestFactory().post("/", b"abc", "text/plain")
    if is_chunked:
        request = chunked(BytesIO(b"abc"))
    request.read(1)
    assert body_of(request, most=MOST) is None
    with pytest.raises(RawPostDataException):
        _ = request.body


@pytest.mark.parametrize("length", ["abc", "-", "1e3"])
def test_a_length_that_is_no_number_is_none(length: str) -> None:
    request = RequestFactory().post("/", b"abc", "text/plain")
    request.META["CONTENT_LENGTH"] = length
    assert body_of(request, most=MOST) is None


def test_a_body_that_breaks_off_is_none() -> None:
    assert body_of(chunked(Broken()), most=MOST) is None
