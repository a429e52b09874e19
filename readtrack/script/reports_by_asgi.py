"""The ASGI application of `with_reports`."""

from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from io import BytesIO
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse

from readtrack.script import views
from readtrack.script.collector import (
    SIGNING_IN,
    Collector,
    asks_sql,
    handler_of,
    headers_of,
)

Message = MutableMapping[str, Any]  # of ASGI, or a scope
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

# The headers by which a collector decides, as ASGI has their names.
DECIDING = {
    name.removeprefix("HTTP_").replace("_", "-").lower().encode(): name
    for name in (*SIGNING_IN, "HTTP_COOKIE")
    if name.startswith("HTTP_")
}


class Reports:
    """Answers reports, and leaves all other requests to the application."""

    def __init__(self, application: Application, *, cookies: Collection[str] = ()) -> None:
        self._application = application
        self._collector = Collector(cookies)
        self._handle = handler_of(_answer)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._takes(scope):
            await self._application(scope, receive, send)
            return
        body = await _body(receive)
        if body is None:  # the client is gone
            return
        response: HttpResponse = await self._handle(ASGIRequest(scope, BytesIO(body)))
        if asks_sql(response):
            await sync_to_async(close_old_connections)()
        await _send(response, send)

    def _takes(self, scope: Message) -> bool:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        return self._collector.takes(scope["method"], path, _deciding_headers(scope))


async def _answer(request: HttpRequest) -> HttpResponse:
    """Returns the answer to a report, before the middleware has filled it in."""
    return views.answer_report(request)


def _deciding_headers(scope: Message) -> Mapping[str, Any]:
    """Returns the headers by which a collector decides, as `request.META` has them."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = DECIDING.get(name)
        if key is not None:
            found[key] = f"{found.get(key, '')};{value.decode('latin-1')}"
    return found


async def _body(receive: Receive) -> bytes | None:
    """Returns the body of a request, with one byte too many at most; None if its client is gone.

    A server has limits of its own for what it keeps of a longer one.
    """
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > views.LONGEST_BODY:
            return body[: views.LONGEST_BODY + 1]
        if not message.get("more_body"):
            return body


async def _send(response: HttpResponse, send: Send) -> None:
    headers = [
        (name.lower().encode("ascii"), value.encode("latin-1"))
        for name, value in headers_of(response)
    ]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})
