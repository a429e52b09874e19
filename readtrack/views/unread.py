"""JSON for apps and single-page front ends: reads what is unread, and marks it read."""

import json
import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any
from urllib.parse import quote, unquote

from django.contrib.auth import SESSION_KEY
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.module_loading import import_string
from django.utils.translation import gettext, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt, csrf_protect, ensure_csrf_cookie
from django.views.decorators.http import require_GET, require_POST

from readtrack import reports, tracker
from readtrack.conf import conf
from readtrack.hits import visitors
from readtrack.hits.readers import Reader
from readtrack.reports import live
from readtrack.store.circuit import fail_open
from readtrack.subjects import has_read_state, parse_subject, read_state_models, subject_of_row

MOST = 200  # categories in one request
LONGEST_NAME = 1_000  # characters of a category's name
TIME = re.compile("[0-9]{1,16}")  # microseconds, until the year 2286

Category = tuple[type[Model], Any]


class RefusalError(Exception):
    """The reason why a request cannot be answered, which becomes the error in JSON."""

    def __init__(self, code: str, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.status = code, status


def _in_json(work: Callable[[HttpRequest, Reader], dict[str, Any]]) -> Callable[[HttpRequest], JsonResponse]:
    """Makes a view of a function of the request and its reader, whose RefusalError becomes the error in JSON."""

    @wraps(work)
    def view(request: HttpRequest) -> JsonResponse:
        try:
            reader = visitors.reader(request, visitors.signed_in(request))
            if reader is None:
                raise RefusalError("not_signed_in", gettext("Sign in first."), status=401)
            return JsonResponse(work(request, reader))
        except RefusalError as refusal:
            error = {"code": refusal.code, "message": str(refusal)}
            return JsonResponse({"error": error}, status=refusal.status)

    return view


@never_cache
@ensure_csrf_cookie
@require_GET
@_in_json
def unread(request: HttpRequest, reader: Reader) -> dict[str, Any]:
    """`GET unread/?category=…`: returns the number of new items in each category."""
    wanted = _named(request.GET.getlist("category"))
    as_of = fail_open(reports.as_of, 0)
    if conf.READ_QUERYSET:
        wanted = _visible(request, wanted)
    subjects = {name: subject_of_row(*category) for name, category in wanted.items()}
    found = live.page_state(dots=list(subjects.values()), reader=reader).unread
    if not as_of or len(found) < len(set(subjects.values())):
        raise RefusalError("unavailable", gettext("Try again later."), status=503)
    counts = {name: found[subject] for name, subject in subjects.items()}
    answers = {name: {"unread": count > 0, "count": count} for name, count in counts.items()}
    return {"as_of": as_of, "categories": answers}


@_in_json
def _read(request: HttpRequest, reader: Reader) -> dict[str, Any]:
    """`POST read/`: marks the categories read, except those that were published to since `as_of`."""
    names, as_of = _body(request)
    wanted = _named(names)
    # Only categories that exist, so that nobody can make up keys.
    visible = {name: subject_of_row(*category) for name, category in _visible(request, wanted).items()}
    done = fail_open(tracker.mark_subjects_read, None, reader, list(visible.values()), as_of=as_of)
    if done is None:
        raise RefusalError("unavailable", gettext("Try again later."), status=503)
    is_read = [name for name in wanted if visible.get(name) in done]
    return {"read": is_read, "unread": [name for name in wanted if name not in is_read]}


_read_by_cookie = csrf_protect(_read)


@never_cache
@csrf_exempt
@require_POST
def read(request: HttpRequest) -> HttpResponse:
    """Needs the CSRF token where a cookie names the reader. No other site can make a browser send a header."""
    is_anonymous = conf.ANONYMOUS_READERS and visitors.signed_in(request) is None
    is_by_cookie = is_anonymous or SESSION_KEY in getattr(request, "session", ())
    return (_read_by_cookie if is_by_cookie else _read)(request)


def _body(request: HttpRequest) -> tuple[list[str], int | None]:
    """Returns the names and `as_of` of a JSON body or of a form. Raises RefusalError."""
    if request.content_type != "application/json":
        return request.POST.getlist("category"), _time(request.POST.get("as_of"))
    try:
        body = json.loads(request.body)
        names = [str(name) for name in body["categories"] if isinstance(name, (str, int))]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise RefusalError("bad_json", gettext('Send {"categories": ["1", "2"]}.')) from error
    return names, _time(body.get("as_of"))


def _time(value: Any) -> int | None:
    if value is not None and not TIME.fullmatch(str(value)):
        raise RefusalError("bad_as_of", gettext("as_of is a number of microseconds out of an earlier answer."))
    return None if value is None else int(value)


def _named(names: Sequence[str]) -> dict[str, Category]:
    if not names:
        raise RefusalError("no_category", gettext("Name at least one category."))
    if len(names) > MOST:
        message = ngettext("Name at most %(most)s category.", "Name at most %(most)s categories.", MOST)
        raise RefusalError("too_many", message % {"most": MOST})
    models, wanted = read_state_models(), {}
    for name in names:
        category = _category(name, models)
        if category is None:
            raise RefusalError("unknown_category", gettext("There is no category %(name)s.") % {"name": name[:100]})
        wanted[name] = category
    return wanted


def _category(name: str, models: Sequence[type[Model]]) -> Category | None:
    # Lone surrogates, which JSON allows, fit into no query; a long name must not enter a cache.
    if len(name) > LONGEST_NAME or any("\ud800" <= char <= "\udfff" for char in name):
        return None
    parsed = parse_subject(name) if ":" in name else None
    if parsed is None and len(models) == 1:
        parsed = parse_subject(f"{models[0]._meta.label_lower}:{quote(name)}")
    if parsed is None or "\0" in unquote(name) or not has_read_state(parsed[0]):
        return None
    try:
        parsed[0]._meta.pk.run_validators(parsed[1])
    except ValidationError:
        return None
    return parsed


def _visible(request: HttpRequest, wanted: dict[str, Category]) -> dict[str, Category]:
    """Returns the categories that exist and that READ_QUERYSET lets the user see, with one query for each model."""
    allow = import_string(conf.READ_QUERYSET) if conf.READ_QUERYSET else None
    pks: dict[type[Model], set[Any]] = {}
    for model, pk in wanted.values():
        pks.setdefault(model, set()).add(pk)
    seen = set()
    for model, some in pks.items():
        queryset = model._default_manager.filter(pk__in=some)
        found = allow(request, queryset) if allow else queryset
        seen |= {(model, pk) for pk in found.values_list("pk", flat=True)}
    return {name: category for name, category in wanted.items() if category in seen}
