"""The demo's settings for tests beside other tests: on a busy machine Redis may take long to
answer.
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from demo_project.settings import *  # noqa: F403 - settings are names of a module
from demo_project.settings import MIDDLEWARE, READTRACK

READTRACK["TIMEOUT"] = 10.0
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.MD5PasswordHasher"
]  # a sign-in takes no half second


def policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Sends the content security policy that the request names, as a proxy may do for a whole site."""

    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if asked := request.headers.get("X-Policy"):
            response["Content-Security-Policy"] = asked
        return response

    return respond


MIDDLEWARE.insert(0, "tests.demo.settings.policy")
