"""The HTTP endpoints that readtrack answers itself: the page's script, JSON, links out of the site,
the honeypot.
"""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from math import ceil
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from django.contrib.auth import SESSION_KEY
from django.core.exceptions import PermissionDenied, RequestDataTooBig, ValidationError
from django.core.signing import BadSignature, Signer
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.module_loading import import_string
from django.utils.translation import gettext, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt, csrf_protect, ensure_csrf_cookie
from django.views.decorators.http import (
    require_GET,
    require_http_methods,
    require_POST,
    require_safe,
)

from readtrack import buckets, reports, tracker
from readtrack.conf import conf
from readtrack.hits import hit, origins, readers, visitors
from readtrack.hits.reading import Reading
from readtrack.page import honeypot as trap
from readtrack.page import shown
from readtrack.page.placeholders import KEY, PAGE, Placeholder
from readtrack.reports.page_state import page_state
from readtrack.request import Told
from readtrack.store import day_keys, keys, recording
from readtrack.store.circuit import fail_open
from readtrack.subjects import (
    check_stage,
    has_read_state,
    parse_subject,
    read_state_models,
    subject_of,
    subject_of_row,
)
from readtrack.texts import is_web

LONGEST_REFERRER = 2_048  # characters
LONGEST_BODY = (
    60_000  # bytes of what a script tells; browsers send no more than 65,536 once a page is left
)
MOST = 200  # categories in one request


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
    recorder = getattr(request, "readtrack", None)  # missing without the middleware
    is_own = not origins.is_foreign(request.META)
    token, referrer, state, *_ = (*_text_of(request).split("\n", 2), "", "")
    page = shown.told(token) if recorder is not None and token and is_own else None
    if recorder is None or page is None:
        return JsonResponse({}, status=403)
    named = shown.parse(page.name)
    reading = shown.reading(state, page.text, made=page.made)
    # From here on this is the page's own request.
    request.path = named.path
    request.META["HTTP_REFERER"] = referrer[:LONGEST_REFERRER]
    recorder.told = Told(named.as_of, page.language, reading)
    recorder.is_shared = False
    if _is_view(state):
        recorder.views.update(dict.fromkeys(named.views))
    if _is_read(state, reading, has_text=bool(page.text)):
        recorder.reads.update(dict.fromkeys(named.reads))
    # A cookie proves itself by coming back: only then its owner is told apart from others with the
    # same address.
    user = visitors.signed_in(request)
    asks_again = bool(recorder.views) and bool(visitors.visitor(request, user).new_cookie)
    placeholders = [str(Placeholder(*place)) for place in page.places]
    answer = {
        "html": {text[KEY]: text for text in placeholders},
        "page": str(Placeholder(PAGE, shown.ANSWER)),
        "again": asks_again,
    }
    return JsonResponse(answer)


def _text_of(request: HttpRequest) -> str:
    """Returns the body of a request; "" for one that is too long, or breaks off."""
    try:
        if int(request.META.get("CONTENT_LENGTH") or 0) > LONGEST_BODY:
            return ""
        return request.body.decode(errors="replace")
    except (ValueError, OSError, RequestDataTooBig):
        return ""


def _is_view(state: str) -> bool:
    """Returns True if a script tells of a view: its first message does, unless the server counts."""
    return not state and conf.COUNT_BY != "server"


def _is_read(state: str, reading: Reading | None, *, has_text: bool) -> bool:
    """Returns True if a script's message puts dots out."""
    if has_text and (conf.READ_WHEN == "read") != bool(state):
        return False
    return reading.is_read if reading else _is_view(state)


class RefusalError(Exception):
    """A request cannot be answered; the response says why in JSON."""

    def __init__(self, code: str, message: str, *, status: int = 400) -> None:
        # Until then Redis is not asked again (RFC 9110, 10.2.3).
        later = {"Retry-After": str(ceil(conf.CIRCUIT))} if status == 503 else {}
        self.response = JsonResponse(
            {"error": {"code": code, "message": message}}, status=status, headers=later
        )


def _in_json(
    work: Callable[[HttpRequest, readers.Reader], dict[str, Any]],
) -> Callable[[HttpRequest], JsonResponse]:
    """Makes a view of a function of the request and its reader, which may raise RefusalError."""

    @wraps(work)
    def view(request: HttpRequest) -> JsonResponse:
        try:
            reader = visitors.reader(request, visitors.signed_in(request))
            if reader is None:
                raise RefusalError("not_signed_in", gettext("Sign in first."), status=401)
            return JsonResponse(work(request, reader))
        except RefusalError as refusal:
            return refusal.response

    return view


@never_cache
@ensure_csrf_cookie
@require_GET
@_in_json
def unread(request: HttpRequest, reader: readers.Reader) -> dict[str, Any]:
    """`GET unread/?category=…`: returns the number of new items in each category."""
    as_of = fail_open(reports.as_of, 0)
    subjects = _subjects(
        request, request.GET.getlist("category"), are_checked=bool(conf.READ_QUERYSET)
    )
    found = page_state(dots=list(subjects.values()), reader=reader).unread
    if not as_of or len(found) < len(set(subjects.values())):
        raise RefusalError("unavailable", gettext("Try again later."), status=503)
    answers = {
        name: {"unread": found[one] > 0, "count": found[one]} for name, one in subjects.items()
    }
    return {"as_of": as_of, "categories": answers}


@_in_json
def _read(request: HttpRequest, reader: readers.Reader) -> dict[str, Any]:
    """`POST read/`: marks the categories read, except those that were published to since `as_of`."""
    names, as_of = request.POST.getlist("category"), request.POST.get("as_of")
    if request.content_type == "application/json":
        try:
            body = json.loads(request.body)
            names, as_of = (
                [str(name) for name in body["categories"] if isinstance(name, (str, int))],
                body.get("as_of"),
            )
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise RefusalError("bad_json", gettext('Send {"categories": ["1", "2"]}.')) from error
    if as_of is not None and not re.fullmatch("[0-9]{1,16}", str(as_of)):  # until the year 2286
        raise RefusalError(
            "bad_as_of", gettext("as_of is a number of microseconds out of an earlier answer.")
        )
    # Only categories that exist, so that nobody can make up keys.
    visible = _subjects(request, names, are_checked=True)
    moment = None if as_of is None else int(as_of)
    done = fail_open(tracker.mark_subjects_read, None, reader, list(visible.values()), as_of=moment)
    if done is None:
        raise RefusalError("unavailable", gettext("Try again later."), status=503)
    is_read = [name for name in visible if visible[name] in done]
    return {
        "read": is_read,
        "unread": [name for name in dict.fromkeys(names) if name not in is_read],
    }


@never_cache
@csrf_exempt
@require_POST
def read(request: HttpRequest) -> HttpResponse:
    """Answers pages of this site and of CSRF_TRUSTED_ORIGINS, and apps. Needs the CSRF token where a
    cookie of Django's or readtrack's own names the reader.
    """
    # Whatever else signs in may be a cookie of the site's own, which a foreign form brings along.
    if origins.is_foreign(request.META):
        raise PermissionDenied
    is_anonymous = conf.ANONYMOUS_READERS and visitors.signed_in(request) is None
    is_by_cookie = is_anonymous or SESSION_KEY in getattr(request, "session", ())
    return (csrf_protect(_read) if is_by_cookie else _read)(request)


def _subjects(request: HttpRequest, names: Sequence[str], *, are_checked: bool) -> dict[str, str]:
    """Returns the subjects by name, with `are_checked` of those that exist and READ_QUERYSET shows.

    It checks them by one query for each model. Raises RefusalError.
    """
    if not names:
        raise RefusalError("no_category", gettext("Name at least one category."))
    if len(names) > MOST:
        message = ngettext(
            "Name at most %(most)s category.", "Name at most %(most)s categories.", MOST
        )
        raise RefusalError("too_many", message % {"most": MOST})
    models = read_state_models()
    wanted = {name: _category(name, models) for name in names}
    if are_checked:
        allow = import_string(conf.READ_QUERYSET) if conf.READ_QUERYSET else None
        seen = set()
        for model in {model for model, _ in wanted.values()}:
            queryset = model._default_manager.filter(
                pk__in={pk for kind, pk in wanted.values() if kind is model}
            )
            queryset = allow(request, queryset) if allow else queryset
            seen |= {(model, pk) for pk in queryset.values_list("pk", flat=True)}
        wanted = {name: category for name, category in wanted.items() if category in seen}
    return {name: subject_of_row(*category) for name, category in wanted.items()}


def _category(name: str, models: Sequence[type[Model]]) -> tuple[type[Model], Any]:
    # Lone surrogates, which JSON allows, fit into no query; a long name must not enter a cache.
    if len(name) <= 1_000 and not any("\ud800" <= char <= "\udfff" for char in name):
        parsed = parse_subject(name) if ":" in name else None
        if parsed is None and len(models) == 1:
            parsed = parse_subject(f"{models[0]._meta.label_lower}:{quote(name)}")
        if parsed and "\0" not in unquote(name) and has_read_state(parsed[0]):
            with suppress(ValidationError):
                parsed[0]._meta.pk.run_validators(parsed[1])
                return parsed
    raise RefusalError(
        "unknown_category", gettext("There is no category %(name)s.") % {"name": name[:100]}
    )


def outbound_url(obj: Any, url: str, stage: str = "click") -> str:
    """`{% outbound_url post "https://example.com/" stage="click" %}` is a link that counts the
    stage and redirects.
    """
    if not (isinstance(obj, Model) and obj.pk is not None):
        return str(url) if is_web(str(url)) else ""
    check_stage(stage)
    # Signed without the time, so that pages with the link can be cached.
    signed = _link_signer().sign_object([subject_of(obj), stage, url])
    return reverse("readtrack:outbound", args=[signed])


def _link_signer() -> Signer:
    return Signer(salt=keys.salt("outbound"))


@never_cache
@require_safe
def follow(request: HttpRequest, signed: str) -> HttpResponse:
    """Redirects to the signed URL; the middleware counts the step."""
    try:
        subject, stage, url = _link_signer().unsign_object(signed)
    except (BadSignature, ValueError):
        words = gettext("This link is not one of ours, or it is incomplete.")
        return HttpResponse(words, status=404, content_type="text/plain")
    if not is_web(url):
        return HttpResponse(
            gettext("This link leads to no web page."), status=400, content_type="text/plain"
        )
    recorder = getattr(request, "readtrack", None)
    # A link may outlive the stage it was made for.
    if recorder is not None and request.method == "GET" and stage in conf.FUNNEL:
        recorder.steps[subject, stage] = None
    return HttpResponseRedirect(url, headers={"X-Robots-Tag": "noindex, nofollow"})


@never_cache
@require_safe
def honeypot(request: HttpRequest, name: str = "") -> HttpResponse:
    """Marks the visitor as a robot if this is the address of today or yesterday, and no person can
    have been led here. Always answers the same.
    """
    could_count = hit.refusal("GET", 200, request.META) in {None, "anonymous"}
    is_robot = trap.is_current(name) and could_count and _followed_our_link(request)
    if is_robot and visitors.signed_in(request) is None:
        fail_open(_mark_robot, None, request)
    return HttpResponse(status=204, headers={"X-Robots-Tag": "noindex"})


def _followed_our_link(request: HttpRequest) -> bool:
    """Returns False for an image, for a click, and for a link on another site: by these, anybody
    could lead people here.
    """
    headers = request.headers
    is_page = headers.get("Sec-Fetch-Dest", "document") == "document"
    if not is_page or headers.get("Accept", "").startswith("image/"):
        return False
    site = headers.get("Sec-Fetch-Site")
    if site == "same-origin":
        # A person clicks on a link that somebody wrote into a comment. Ours has no size.
        return "Sec-Fetch-User" not in headers
    if site is not None:
        return site == "none"
    # An old browser, any browser on plain http, or a program.
    try:
        return urlsplit(headers.get("Referer", "")).netloc == request.get_host()
    except ValueError:
        return False


def _mark_robot(request: HttpRequest) -> None:
    """Marks a visitor without a cookie, by address and browser: today, and tomorrow, because the
    hashes of visitors by the day change then.
    """
    seen, now = visitors.visitor(request, None), buckets.now()
    if seen.kind == "cookie" and not seen.new_cookie:
        return  # a person may be led here once, and robots keep no cookies
    address = visitors.Visitor(visitors.network_id(request), kind="hash")
    visits = recording.honeypot_visits(day_keys.resolve(address, at=now).id)
    if visits > recording.VISITS_OF_ADDRESS:
        return
    ids = set()
    for at in (now, now + buckets.DAY):
        visitor = day_keys.resolve(seen, at=at)
        ids |= {visitor.fallback_id, "" if visitor.new_cookie else visitor.id}
    recording.mark_robots(ids - {""})
