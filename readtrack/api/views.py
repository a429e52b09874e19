"""The JSON API of the reports, for programs with a token.

A URLconf with `readtrack.urls` imports this module, so what answers questions, the dashboard's
tables among it, is imported with the first question.
"""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import SuspiciousOperation
from django.db import InterfaceError, OperationalError, connections, transaction
from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from readtrack.api.errors import QuestionError, bad_parameter
from readtrack.api.models import USE_NOTED_EVERY, ApiToken, digest_of
from readtrack.api.users import active_user
from readtrack.conf import logger
from readtrack.sql import databases

if TYPE_CHECKING:
    from readtrack.api.questions import Question

METHODS = ("GET", "HEAD")
#: The headers of every answer: it is for one user, who is known by another header.
HEADERS = {"Cache-Control": "private, no-store", "Vary": "Authorization"}

ContentOf = Callable[..., dict[str, Any]]


def _for_tokens(content_of: ContentOf) -> Callable[..., JsonResponse]:
    """Makes a view of `content_of`, a function that returns the content of the JSON response.

    The function takes the request, the user of its token, and the arguments of the address. It may
    raise QuestionError. No cookie is read, so that a page of another site cannot ask by a browser.
    """

    @wraps(content_of)
    def view(request: HttpRequest, **arguments: str) -> JsonResponse:
        headers = {**HEADERS}
        try:
            if request.method not in METHODS:
                headers["Allow"] = ", ".join(METHODS)
                raise QuestionError("bad_method", "Only GET is answered.", status=405)
            user = _user(request)
            content = content_of(request, user, **arguments)
        except QuestionError as error:
            if error.status == 401:
                headers["WWW-Authenticate"] = "Bearer"
            return JsonResponse(error.content, status=error.status, headers=headers)
        except (OperationalError, InterfaceError):
            logger.exception("The database does not answer a question of the JSON API.")
            unavailable = QuestionError("unavailable", "Try again later.", status=503)
            return JsonResponse(unavailable.content, status=503, headers=headers)
        return JsonResponse(content, headers=headers)

    # With ATOMIC_REQUESTS, a database that is down would keep Django from calling the view.
    for alias in connections:
        view = transaction.non_atomic_requests(using=alias)(view)
    exempt: Callable[..., JsonResponse] = csrf_exempt(login_not_required(view))
    return exempt


def _user(request: HttpRequest) -> Any:
    """Returns the user of the request's token. Raises QuestionError without a valid one."""
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    token = None
    user = None
    if scheme.lower() == "bearer":
        token = databases.rows(ApiToken).filter(digest=digest_of(text.strip())).first()
    if token is not None and token.is_valid():
        user = active_user(token.user_id)
    if token is None or user is None:
        message = "Send a valid token: Authorization: Bearer rt_…"
        raise QuestionError("bad_token", message, status=401)
    _note_use(token)
    return user


def _note_use(token: ApiToken) -> None:
    """Writes when the token was last used, unless it was written a short while ago."""
    now = timezone.now()
    if token.last_used is None or now - token.last_used >= USE_NOTED_EVERY:
        databases.rows(ApiToken).filter(pk=token.pk).update(last_used=now)


def _parameters(request: HttpRequest) -> dict[str, str]:
    """Returns the parameters of the address. Raises QuestionError for one that is there twice."""
    try:
        lists = dict(request.GET.lists())
    except SuspiciousOperation as error:  # too many
        raise bad_parameter("", "There are too many parameters.") from error
    for name, values in lists.items():
        if len(values) > 1:
            raise bad_parameter(name[:100], "Give each parameter once.")
    return {name: value for name, [value] in lists.items()}


@_for_tokens
def index(request: HttpRequest, user: Any) -> dict[str, Any]:
    """`GET api/`: returns the questions, with the parameters of each."""
    from readtrack.api.questions import questions

    described = [_in_index(question) for question in questions().values()]
    return {"questions": described, "openapi": reverse("readtrack:api_openapi")}


def _in_index(question: "Question") -> dict[str, Any]:
    """Returns what the index says of a question."""
    return {
        "name": question.name,
        "description": question.description,
        "url": reverse("readtrack:api_question", args=[question.name]),
        "parameters": [parameter.name for parameter in question.offered_parameters],
    }


@_for_tokens
def description(request: HttpRequest, user: Any) -> dict[str, Any]:
    """`GET api/openapi.json`: returns the description of the API for programs."""
    from readtrack.api import openapi

    return openapi.description(reverse("readtrack:api"))


@_for_tokens
def answer(request: HttpRequest, user: Any, name: str) -> dict[str, Any]:
    """`GET api/NAME?…`: returns the answer to a question."""
    from readtrack.api import answers

    return answers.answer(name, user, _parameters(request))
