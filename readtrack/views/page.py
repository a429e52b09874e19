"""The script of pages, and the address where it tells that its page is looked at."""

from urllib.parse import urlsplit

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from readtrack.conf import conf
from readtrack.hits import visitors
from readtrack.page import shown
from readtrack.page.filling import PAGE, Placeholder

LONGEST_BODY = 60_000  # bytes; browsers send no more than 65,536 once a page is left
LONGEST_REFERRER = 2_048


@csrf_exempt  # because pages in caches have no token of a session; only pages of this site are heard
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """`GET`: the script. `POST`: counts the view of the page whose token it is, and answers with counts and dots."""
    if request.method == "POST":
        return _told(request)
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    script = shown.SCRIPTS.get(request.META.get("QUERY_STRING", ""), shown.PLAIN)
    return HttpResponse(script, content_type="text/javascript; charset=utf-8", headers=headers)


@never_cache
def _told(request: HttpRequest) -> HttpResponse:
    recorder = getattr(request, "readtrack", None)  # missing without the middleware
    token, referrer, state, *_ = (*_body(request).split("\n", 2), "", "")
    known = shown.told(token) if recorder is not None and token and _is_own(request) else None
    if recorder is None or known is None:
        return JsonResponse({}, status=403)
    page, recorder.language, places, text, _ = known
    # From here on this is the page's own request, for the middleware to judge, count and fill in.
    recorder.is_script = True
    request.path, request.META["HTTP_REFERER"] = page.path, referrer[:LONGEST_REFERRER]
    if state:  # the page was counted when it was shown
        recorder.reading = known.reading(state)
        page = page._replace(views=(), reads=page.reads if recorder.reading and recorder.reading.is_read else ())
    if text and (conf.READ_WHEN == "read") != bool(state):
        page = page._replace(reads=())
    if state or conf.COUNT_BY != "server":
        page.tell(recorder)
    placed = [Placeholder(*place) for place in places]
    # A cookie proves itself by coming back: only then its owner is told apart from others with the same address.
    again = bool(page.views) and bool(visitors.visitor(request, visitors.signed_in(request)).new_cookie)
    answer = {"html": {place.key: str(place) for place in placed}, "page": str(Placeholder(PAGE, shown.ANSWER))}
    return JsonResponse({**answer, "again": again})


def _body(request: HttpRequest) -> str:
    """Returns the body; "" for one that is too long or breaks off."""
    try:
        size = int(request.META.get("CONTENT_LENGTH") or 0)
        return request.body.decode(errors="replace") if size <= LONGEST_BODY else ""
    except (ValueError, OSError, RequestDataTooBig):
        return ""


def _is_own(request: HttpRequest) -> bool:
    """Returns False for a page of another site. A browser sends one of the headers with each POST, an app neither."""
    site, origin = request.META.get("HTTP_SEC_FETCH_SITE"), request.META.get("HTTP_ORIGIN")
    if site is not None or origin is None:
        return site in {None, "same-origin"}
    try:
        return bool(urlsplit(origin).netloc == request.get_host())
    except ValueError:
        return False
