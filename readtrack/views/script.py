"""The page's script, and the address to which it tells that a page is looked at."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from readtrack.conf import conf
from readtrack.hits import origins, visitors
from readtrack.hits.reading import Reading
from readtrack.page import shown
from readtrack.page.placeholders import KEY, PAGE, Placeholder
from readtrack.request import Recorder, Told
from readtrack.views import errors
from readtrack.views.bodies import body_of

LONGEST_REFERRER = 2_048  # characters
# Bytes of what a script tells; browsers send no more than 65,536 once a page is left.
LONGEST_BODY = 60_000


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
    token, referrer, state = _lines_of(request)
    page = shown.page_of(token) if token else None
    if page is None:
        return errors.not_our_page()
    _hand_over(request, recorder, page, state=state)
    request.META["HTTP_REFERER"] = referrer[:LONGEST_REFERRER]
    placeholders = [str(Placeholder(*place)) for place in page.places]
    answer = {
        "html": {text[KEY]: text for text in placeholders},
        "page": str(Placeholder(PAGE, shown.ANSWER)),
        "again": bool(recorder.views) and _has_new_cookie(request),
    }
    return JsonResponse(answer)


def _lines_of(request: HttpRequest) -> tuple[str, str, str]:
    """Returns a page's token, its referrer, and what the script tells of the page's text."""
    body = body_of(request, most=LONGEST_BODY) or b""
    token, _, rest = body.decode(errors="replace").partition("\n")
    referrer, _, state = rest.partition("\n")
    return token, referrer, state


def _hand_over(
    request: HttpRequest, recorder: Recorder, page: shown.ToldPage, *, state: str
) -> None:
    """Makes the request that of the page itself, and says what of the page is to be recorded."""
    named = shown.parse(page.name)
    reading = shown.reading(state, page.text, made=page.made)
    request.path = named.path
    recorder.told = Told(named.as_of, page.language, reading)
    recorder.is_shared = False
    if _is_view(state):
        recorder.views.update(dict.fromkeys(named.views))
    if _is_read(state, reading, has_text=bool(page.text)):
        recorder.reads.update(dict.fromkeys(named.reads))


def _is_view(state: str) -> bool:
    """Returns True if a script tells of a view: its first message does, unless the server counts."""
    return not state and conf.COUNT_BY != "server"


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
