"""The address of the page's script, to which the script also reports that a page is looked at."""

import json
import re
from collections.abc import Mapping
from functools import cache
from time import time
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from readtrack.conf import conf
from readtrack.hits import origins, visitors
from readtrack.page.placeholders import OF_DOTS, PAGE, TOLD, Placeholder
from readtrack.request import Recorder, Report
from readtrack.script import additions, options, shown
from readtrack.script.public import PublicResponse
from readtrack.script.reading import Reading
from readtrack.script.rendering import element_keys
from readtrack.views import errors
from readtrack.views.bodies import body_of

LONGEST_REFERRER = 2_048  # characters, also of the page's own address
LONGEST_BODY = 60_000  # bytes of a report; browsers send no more than 65,536 once a page is left

# In Cache-Control, as Django's `never_cache` has it.
NEVER_KEPT = "max-age=0, no-cache, no-store, must-revalidate, private"

MILLISECONDS = re.compile("[0-9]{1,12}")
# Seconds that a page, and the report on it, may take between the server and the browser.
LONGEST_WAY = 5


class SentReport(NamedTuple):
    """What a page's script sends: four lines."""

    token: str  # of the page
    referrer: str  # of the page; the browser's own header names the page itself
    state: str  # of the page's text, see `shown.STATE`; "" in the first report
    since: int  # milliseconds since the browser asked for the page, or shows it again


@login_not_required
# Exempt, because a page in a cache cannot have the CSRF token of each session. Reports of other
# sites' pages are refused by their origin.
@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """`GET`: the script. `POST`: counts the view of the page whose token it is, and answers with
    counts and dots.
    """
    if request.method == "POST":
        return answer_report(request)
    script = shown.scripts().get(request.META.get("QUERY_STRING", ""))
    # While servers are updated one by one, a page of a new server may ask an old one, which does
    # not have that version. A cache must not keep the old script by the new script's address.
    keeping = "public, max-age=31536000, immutable" if script else "no-cache"
    return PublicResponse(
        script or shown.PLAIN,
        content_type="text/javascript; charset=utf-8",
        headers={"Cache-Control": keeping},
    )


def answer_report(request: HttpRequest) -> HttpResponse:
    """Returns the answer to a script: placeholders, which the middleware fills in.

    The middleware also records what the script reports.
    """
    recorder: Recorder | None = getattr(request, "readtrack", None)  # None without the middleware
    if recorder is None or origins.is_foreign(request.META):
        return errors.not_our_page()
    report = _report_of(request)
    page = _page_of(report)
    if page is None:
        return errors.not_our_page()
    _hand_over(request, recorder, page, report)
    elements: dict[str, str] = {}
    for placeholder in _elements(page, report.state):
        elements.update(dict.fromkeys(element_keys(placeholder), str(placeholder)))
    added = additions.among(page.options)
    again = bool(recorder.views) and _is_view(report.state) and _has_new_cookie(request)
    if not (elements or added):
        return _answer(_nothing_to_fill_in(again))
    answer = {
        "elements": elements,
        # So that what is filled in is for a script.
        "page": str(Placeholder(PAGE, shown.ANSWER)),
        "again": again,
    }
    for addition in added:
        answer[addition.name] = str(Placeholder(TOLD, addition.name))
        answer.update(addition.answer(page))
    return _answer(_as_json(answer))


def _answer(content: bytes) -> HttpResponse:
    return HttpResponse(
        content, content_type="application/json", headers={"Cache-Control": NEVER_KEPT}
    )


# Once for each, because most reports are on pages without counts and dots, and Python makes an
# encoder anew for each text.
@cache
def _nothing_to_fill_in(again: bool) -> bytes:  # noqa: FBT001 - a keyword would slow the cache down
    """Returns the answer to a report on a page without counts and dots."""
    return _as_json({"elements": {}, "page": "", "again": again})


def _as_json(answer: Mapping[str, Any]) -> bytes:
    """Returns JSON. Not by a JsonResponse, whose encoder knows types that no answer has."""
    return json.dumps(answer).encode()


def _page_of(report: SentReport) -> shown.TokenPage | None:
    """Returns the page that the script reports; None if its token is not ours, or too old to
    count.
    """
    if not report.token:
        return None
    # Dots may be asked for as long as a tab is open.
    max_age = None if report.state == shown.ASKS_FOR_DOTS else shown.LONGEST_AGE
    return shown.page_of(report.token, max_age=max_age)


def _elements(page: shown.TokenPage, state: str) -> list[Placeholder]:
    """Returns the placeholders of the counts and dots that the script fills in."""
    elements = [Placeholder(*fields) for fields in page.elements]
    if state == shown.ASKS_FOR_DOTS:
        return [element for element in elements if element.kind in OF_DOTS]
    return elements


def _report_of(request: HttpRequest) -> SentReport:
    """Returns what the script sends, with "" for lines that are missing."""
    body = body_of(request, most=LONGEST_BODY) or b""
    token, _, after_token = body.decode(errors="replace").partition("\n")
    referrer, _, after_referrer = after_token.partition("\n")
    state, _, since = after_referrer.partition("\n")
    milliseconds = MILLISECONDS.match(since)
    if milliseconds is None:
        return SentReport(token, referrer, state, since=0)
    return SentReport(token, referrer, state, since=int(milliseconds[0]))


def _hand_over(
    request: HttpRequest, recorder: Recorder, page: shown.TokenPage, report: SentReport
) -> None:
    """Gives the request the address of the page and its referrer, and the middleware what it is to
    record.
    """
    named = shown.parse(page.name)
    state = report.state
    reading = shown.reading(state, page.text, made=page.made)
    request.path = named.path
    request.META["QUERY_STRING"] = _query_of_page(request, path=named.path)
    request.META["HTTP_REFERER"] = report.referrer[:LONGEST_REFERRER]
    recorder.report = Report(named.as_of, page.language, reading)
    recorder.is_shared = False
    # Where only the server counts, the views are those that the page was seen for.
    if _is_first(state) and not _is_counted(page, since=report.since):
        recorder.views.update(dict.fromkeys(named.views))
    if _is_read(state, reading, has_text=bool(page.text)):
        recorder.reads.update(dict.fromkeys(named.reads))


def _query_of_page(request: HttpRequest, *, path: str) -> str:
    """Returns the parameters of the address at which the page with that path is open.

    The browser's own referrer is that address. Returns "" if the browser keeps the parameters to
    itself, because of the page's Referrer-Policy, or has gone on to another page.
    """
    address: str = request.META.get("HTTP_REFERER", "")[:LONGEST_REFERRER]
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    is_of_page = unquote(parts.path)[: shown.LONGEST_PATH] == path
    return parts.query if is_of_page else ""


def _is_first(state: str) -> bool:
    """Returns True for the report that the page came to life."""
    return not state


def _is_view(state: str) -> bool:
    """Returns True if the report is of a view: the first one is, unless the server counts."""
    return _is_first(state) and options.count_by() != "server"


def _is_counted(page: shown.TokenPage, *, since: int) -> bool:
    """Returns True for a tab that was opened in the background and is looked at after WINDOW: the
    server has counted it.

    Within WINDOW Redis knows that, and tells apart readers with one address.
    """
    age = int(time()) - page.made
    # A page that the browser has kept, or shows again, is older than that.
    is_as_sent = since / 1_000 >= max(age - LONGEST_WAY, age / 2)
    return page.is_counted and is_as_sent and age >= max(1, conf.WINDOW)


def _is_read(state: str, reading: Reading | None, *, has_text: bool) -> bool:
    """Returns True if the report puts dots out.

    If reads wait for that, a page with a text is read once its text is read; then only reports on
    the text can put dots out. Otherwise only the first report can.
    """
    is_about_text = bool(state)
    has_to_be_about_text = options.reads_when_read()
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
    return visitors.gets_cookie(request, visitors.signed_in(request))
