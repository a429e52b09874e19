"""The address of the page's script, to which the script also reports that a page is looked at."""

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from readtrack.conf import conf
from readtrack.hits import origins, visitors
from readtrack.hits.reading import Reading
from readtrack.page import shown
from readtrack.page.placeholders import KEY, PAGE, Placeholder
from readtrack.request import Recorder, ScriptReport
from readtrack.views import errors
from readtrack.views.bodies import body_of

LONGEST_REFERRER = 2_048  # characters
LONGEST_BODY = 60_000  # bytes of a report; browsers send no more than 65,536 once a page is left


class Report(NamedTuple):
    """What a page's script sends: three lines."""

    token: str  # of the page
    referrer: str  # of the page; the browser's own header names the page itself
    state: str  # of the page's text, see `shown.STATE`; "" in the first report


# Exempt, because a page in a cache cannot have the CSRF token of each session. Reports of other
# sites' pages are refused by their origin.
@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """`GET`: the script. `POST`: counts the view of the page whose token it is, and answers with
    counts and dots.
    """
    if request.method == "POST":
        return _answer_report(request)
    script = shown.SCRIPTS.get(request.META.get("QUERY_STRING", ""))
    # While servers are updated one by one, a page of a new server may ask an old one, which does
    # not have that version. A cache must not keep the old script by the new script's address.
    keeping = "public, max-age=31536000, immutable" if script else "no-cache"
    return HttpResponse(
        script or shown.PLAIN,
        content_type="text/javascript; charset=utf-8",
        headers={"Cache-Control": keeping},
    )


@never_cache
def _answer_report(request: HttpRequest) -> HttpResponse:
    """Returns the answer to a script: placeholders, which the middleware fills in.

    The middleware also records what the script reports.
    """
    recorder: Recorder | None = getattr(request, "readtrack", None)  # None without the middleware
    if recorder is None or origins.is_foreign(request.META):
        return errors.not_our_page()
    report = _report_of(request)
    page = shown.page_of(report.token) if report.token else None
    if page is None:
        return errors.not_our_page()
    _hand_over(request, recorder, page, state=report.state)
    request.META["HTTP_REFERER"] = report.referrer[:LONGEST_REFERRER]
    placeholders = [str(Placeholder(*fields)) for fields in page.elements]
    answer = {
        "html": {text[KEY]: text for text in placeholders},
        "page": str(Placeholder(PAGE, shown.ANSWER)),
        "again": bool(recorder.views) and _has_new_cookie(request),
    }
    return JsonResponse(answer)


def _report_of(request: HttpRequest) -> Report:
    """Returns what the script sends, with "" for lines that are missing."""
    body = body_of(request, most=LONGEST_BODY) or b""
    token, _, other_lines = body.decode(errors="replace").partition("\n")
    referrer, _, state = other_lines.partition("\n")
    return Report(token, referrer, state)


def _hand_over(
    request: HttpRequest, recorder: Recorder, page: shown.TokenPage, *, state: str
) -> None:
    """Gives the request the path of the page, and the middleware what it is to record."""
    named = shown.parse(page.name)
    reading = shown.reading(state, page.text, made=page.made)
    request.path = named.path
    recorder.script_report = ScriptReport(named.as_of, page.language, reading)
    recorder.is_shared = False
    if _is_view(state):
        recorder.views.update(dict.fromkeys(named.views))
    if _is_read(state, reading, has_text=bool(page.text)):
        recorder.reads.update(dict.fromkeys(named.reads))


def _is_view(state: str) -> bool:
    """Returns True if the report is of a view: the first one is, unless the server counts."""
    is_first = not state
    return is_first and conf.COUNT_BY != "server"


def _is_read(state: str, reading: Reading | None, *, has_text: bool) -> bool:
    """Returns True if the report puts dots out.

    With READ_WHEN = "read", a page with a text is read once its text is read; then only reports on
    the text can put dots out. Otherwise only the first report can.
    """
    is_about_text = bool(state)
    has_to_be_about_text = conf.READ_WHEN == "read"
    if has_text and is_about_text != has_to_be_about_text:
        return False
    if reading is not None:
        return reading.is_read
    return _is_view(state)


def _has_new_cookie(request: HttpRequest) -> bool:
    """Returns True if the script is to report the page again, with the cookie that it gets now.

    A cookie proves itself by coming back. Only then is its owner told apart from visitors with the
    same address.
    """
    visitor = visitors.visitor(request, visitors.signed_in(request))
    return bool(visitor.new_cookie)
