"""The WSGI application of `with_reports`."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from django.core.handlers.wsgi import WSGIRequest
from django.db import close_old_connections
from django.http import HttpResponse

from readtrack.script import views
from readtrack.script.collector import Collector, asks_sql, handler_of, headers_of

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[..., Iterable[bytes]]


class _Request(WSGIRequest):
    """A report. Nobody asks for the type of its body, which would take as long as to read its
    token.
    """

    def _set_content_type_params(self, meta: Any) -> None:
        self.content_type = "text/plain"
        self.content_params = {}


class Reports:
    """Answers reports, and leaves all other requests to the application."""

    def __init__(self, application: Application, *, cookies: Collection[str] = ()) -> None:
        self._application = application
        self._collector = Collector(cookies)
        self._handle = handler_of(views.answer_report)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        response = self.respond(environ)
        if response is None:
            return self._application(environ, start_response)
        status = f"{response.status_code} {response.reason_phrase}"
        start_response(status, headers_of(response))
        return [response.content]

    def respond(self, environ: Environ) -> HttpResponse | None:
        """Returns the answer to a report; None for a request that is left to the application."""
        if not self._collector.takes(
            environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""), environ
        ):
            return None
        response: HttpResponse = self._handle(_Request(environ))
        if asks_sql(response):
            close_old_connections()
        return response
