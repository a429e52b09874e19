"""The page's script, and the address to which it tells that a page is looked at."""

import re
from time import time
from typing import NamedTuple

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from readtrack.conf import conf
from readtrack.hits import origins, visitors
from readtrack.hits.reading import Reading
from readtrack.page import shown
from readtrack.page.placeholders import PAGE, Placeholder
from readtrack.request import Recorder, Told
from readtrack.views import errors
from readtrack.views.bodies import body_of

LONGEST_REFERRER = 2_048  # characters
# Bytes of what a script tells; browsers send no more than 65,536 once a page is left.
LONGEST_BODY = 60_000
MILLISECONDS = re.compile("[0-9]{1,12}")
# Seconds that a page, and what its script tells, may take between the server and the browser.
LONGEST_WAY = 5


@login_not_required
# because pages in caches have no token of a session; only pages of this site are heard
@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """`GET`: the script. `POST`: counts the view of the page whose token it is, and answers with
    counts and dots.
    """
    if request.method == "POST":
        return _told(request)
    script = shown.SCRIPTS.get(request.META.get("QUERY_STRING", ""))
    # While servers are updated one by one, a page of a new one asks an old one. A cache must not
    # keep today's script by the address of tomorrow's.
    keeping = "public, max-age=31536000, immutable" if script else "no-cache"
    return HttpResponse(
        script or shown.PLAIN,
        content_type="text/javascript; charset=utf-8",
        headers={"Cache-Control": keeping},
    )


@never_cache
def _told(request: HttpRequest) -> HttpResponse:
    """Answers a page's script: hands what it tells to the middleware, which counts and fills in."""
    recorder: Recorder | None = getattr(request, "readtrack", None)  # None without the middleware
    if recorder is None or origins.is_foreign(request.META):
        return errors.not_our_page()
    message = _message_of(request)
    page = shown.told(message.token) if message.token else None
    if page is None:
        return errors.not_our_page()
    _hand_over(request, recorder, page, message)
    request.META["HTTP_REFERER"] = message.referrer[:LONGEST_REFERRER]
    html: dict[str, str] = {}
    for place in page.places:
        placeholder = Placeholder(*place)
        html.update(dict.fromkeys(placeholder.element_keys, str(placeholder)))
    answer = {
        "html": html,
        "page": str(Placeholder(PAGE, shown.ANSWER)),
        "again": bool(recorder.views) and _has_new_cookie(request),
    }
    return JsonResponse(answer)


class Message(NamedTuple):
    """What a page's script says."""

    token: str  # of the page
    referrer: str
    state: str  # of the page's text; "" in a message that the page is looked at
    since: int  # milliseconds since the browser asked for the page, or shows it again


def _message_of(request: HttpRequest) -> Message:
    body = body_of(request, most=LONGEST_BODY) or b""
    lines = body.decode(errors="replace").split("\n", 3)
    token, referrer, state, since = [*lines, "", "", ""][:4]
    milliseconds = MILLISECONDS.match(since)
    return Message(token, referrer, state, int(milliseconds[0]) if milliseconds else 0)


def _hand_over(
    request: HttpRequest, recorder: Recorder, page: shown.ToldPage, message: Message
) -> None:
    """Makes the request that of the page itself, and says what of the page is to be recorded."""
    named = shown.parse(page.name)
    state = message.state
    reading = shown.reading(state, page.text, made=page.made)
    request.path = named.path
    recorder.told = Told(named.as_of, page.language, reading)
    recorder.is_shared = False
    if _is_view(state) and not _is_counted(page, since=message.since):
        recorder.views.update(dict.fromkeys(named.views))
    if _is_read(state, reading, has_text=bool(page.text)):
        recorder.reads.update(dict.fromkeys(named.reads))


def _is_view(state: str) -> bool:
    """Returns True if a script tells of a view: its first message does, unless the server counts."""
    return not state and conf.COUNT_BY != "server"


def _is_counted(page: shown.ToldPage, *, since: int) -> bool:
    """Returns True for a tab that was opened in the background and is looked at after WINDOW: the
    server has counted it.

    Within WINDOW Redis knows it, and tells apart readers with one address.
    """
    age = int(time()) - page.made
    # A page that the browser has kept, or shows again, is older than that.
    is_as_sent = since / 1_000 >= max(age - LONGEST_WAY, age / 2)
    return page.is_counted and is_as_sent and age >= max(1, conf.WINDOW)


def _is_read(state: str, reading: Reading | None, *, has_text: bool) -> bool:
    """Returns True if a script's message puts dots out."""
    if has_text and (conf.READ_WHEN == "read") != bool(state):
        return False
    return reading.is_read if reading else _is_view(state)


def _has_new_cookie(request: HttpRequest) -> bool:
    """Returns True if the script is to tell again.

    A cookie proves itself by coming back: only then its owner is told apart from visitors with the
    same address.
    """
    visitor = visitors.visitor(request, visitors.signed_in(request))
    return bool(visitor.new_cookie)
