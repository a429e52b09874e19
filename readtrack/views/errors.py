"""The answers of the endpoints to requests that they refuse."""

from math import ceil

from django.http import HttpResponse, JsonResponse
from django.utils.translation import gettext, ngettext

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


def not_signed_in() -> RefusalError:
    return RefusalError("not_signed_in", gettext("Sign in first."), status=401)


def foreign() -> RefusalError:
    message = gettext("This request comes from a page of another site.")
    return RefusalError("foreign", message, status=403)


def unavailable() -> RefusalError:
    return RefusalError("unavailable", gettext("Try again later."), status=503)


def bad_json() -> RefusalError:
    return RefusalError("bad_json", gettext('Send {"categories": ["1", "2"]}.'))


def bad_as_of() -> RefusalError:
    message = gettext("as_of is a number of microseconds out of an earlier answer.")
    return RefusalError("bad_as_of", message)


def no_category() -> RefusalError:
    return RefusalError("no_category", gettext("Name at least one category."))


def too_many(most: int) -> RefusalError:
    message = ngettext("Name at most %(most)s category.", "Name at most %(most)s categories.", most)
    return RefusalError("too_many", message % {"most": most})


def unknown_category(name: str) -> RefusalError:
    message = gettext("There is no category %(name)s.") % {"name": name[:100]}
    return RefusalError("unknown_category", message)


def not_our_page() -> HttpResponse:
    """Returns the answer to a script with a token that is not ours, or too old."""
    return JsonResponse({}, status=403)


def not_our_link() -> HttpResponse:
    message = gettext("This link is not one of ours, or it is incomplete.")
    return HttpResponse(message, status=404, content_type="text/plain")


def no_web_page() -> HttpResponse:
    message = gettext("This link leads to no web page.")
    return HttpResponse(message, status=400, content_type="text/plain")
