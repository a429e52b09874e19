"""The answers of the endpoints to requests that they refuse."""

from math import ceil

from django.http import HttpResponse, JsonResponse
from django.utils.translation import gettext

from readtrack.store.circuit import circuit


class RefusalError(Exception):
    """A request for read state is refused. Its `response` says why in JSON.

    `code` is for programs, `message` for people.
    """

    def __init__(self, code: str, message: str, *, status: int = 400) -> None:
        headers = {}
        if status == 503:
            # In seconds (RFC 9110, 10.2.3). Until then the circuit is open, and Redis is not asked.
            headers["Retry-After"] = str(ceil(circuit.longest_pause))
        self.response = JsonResponse(
            {"error": {"code": code, "message": message}}, status=status, headers=headers
        )


def unavailable() -> RefusalError:
    return RefusalError("unavailable", gettext("Try again later."), status=503)


def not_our_page() -> HttpResponse:
    """Returns the answer to a script with a token that is not ours, or too old."""
    return JsonResponse({}, status=403)


def not_our_link() -> HttpResponse:
    message = gettext("This link is not one of ours, or it is incomplete.")
    return HttpResponse(message, status=404, content_type="text/plain")
