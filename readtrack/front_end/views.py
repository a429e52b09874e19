"""JSON for front ends and apps: what is unread, and marking it read."""

import json
import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.module_loading import import_string
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt, csrf_protect, ensure_csrf_cookie
from django.views.decorators.http import require_GET, require_POST

from readtrack import reports, tracker
from readtrack.conf import conf
from readtrack.front_end import errors
from readtrack.front_end.errors import RefusalError
from readtrack.front_end.options import front_end_options
from readtrack.hits import origins, readers, visitors
from readtrack.reports.page_state import page_state
from readtrack.store.circuit import fail_open
from readtrack.subjects import has_read_state, parse_subject, read_state_models, subject_of_row
from readtrack.views.bodies import body_of

MOST = 200  # categories in one request
LONGEST_BODY = 2_000_000  # bytes of JSON, enough for MOST names however they are encoded
LONGEST_NAME = 1_000  # characters; a longer name must not enter a cache
AS_OF = re.compile("[0-9]{1,16}")  # microseconds, until the year 2286

Category = tuple[type[Model], Any]  # a model and a primary key


class Marking(NamedTuple):
    """What a request asks to be marked read."""

    category_names: list[str]
    as_of: int | None  # Redis's clock (µs) when the reader got the categories; None for now


def _in_json(
    answer: Callable[[HttpRequest, readers.Reader], dict[str, Any]],
) -> Callable[[HttpRequest], JsonResponse]:
    """Makes a view of `answer`, a function that returns the content of the JSON response.

    The function takes the request and its reader, and may raise RefusalError.
    """

    @wraps(answer)
    def view(request: HttpRequest) -> JsonResponse:
        try:
            reader = visitors.reader(request, visitors.signed_in(request))
            if reader is None:
                raise errors.not_signed_in()
            return JsonResponse(answer(request, reader))
        except RefusalError as refusal:
            return refusal.response

    return view


@login_not_required  # it says itself, in JSON, that nobody is signed in
@never_cache
@ensure_csrf_cookie
@require_GET
@_in_json
def unread(request: HttpRequest, reader: readers.Reader) -> dict[str, Any]:
    """`GET unread/?category=…`: returns the number of new items in each category."""
    # Asked before the counts, so that nothing published in between is marked read by mistake.
    as_of = fail_open(reports.as_of, 0)
    categories = _categories(request.GET.getlist("category"))
    if front_end_options().queryset:
        categories = _visible(request, categories)
    subjects = {name: subject_of_row(*category) for name, category in categories.items()}
    items = page_state(dots=list(subjects.values()), reader=reader).unread
    has_all = len(items) >= len(set(subjects.values()))
    if not as_of or not has_all:
        raise errors.unavailable()
    answers = {}
    for name, subject in subjects.items():
        answers[name] = {"unread": items[subject] > 0, "count": items[subject]}
    return {"as_of": as_of, "categories": answers}


@login_not_required
@never_cache
@csrf_exempt
@require_POST
def read(request: HttpRequest) -> HttpResponse:
    """Marks categories read: answers pages of this site and of CSRF_TRUSTED_ORIGINS, and apps.

    The request needs the CSRF token if a cookie of Django's or of readtrack names the reader.
    """
    # Also without those cookies: a site may sign users in by a cookie of its own, which the browser
    # sends with another site's form.
    if origins.is_foreign(request.META):
        # Not PermissionDenied, of which Django logs a traceback each time.
        return errors.foreign().response
    is_anonymous = conf.DOTS.anonymous and visitors.signed_in(request) is None
    is_by_cookie = is_anonymous or SESSION_KEY in getattr(request, "session", ())
    if is_by_cookie:
        return csrf_protect(_read)(request)
    return _read(request)


@_in_json
def _read(request: HttpRequest, reader: readers.Reader) -> dict[str, Any]:
    """`POST read/`: marks the categories read, but not those published to since `as_of`."""
    marking = _marking_of(request)
    # Categories that do not exist are left out, so that nobody can make up keys.
    categories = _visible(request, _categories(marking.category_names))
    subjects = {name: subject_of_row(*category) for name, category in categories.items()}
    marked = fail_open(
        tracker.mark_subjects_read, None, reader, list(subjects.values()), as_of=marking.as_of
    )
    if marked is None:  # Redis does not answer
        raise errors.unavailable()
    names_read = [name for name, subject in subjects.items() if subject in marked]
    different_names = dict.fromkeys(marking.category_names)
    names_unread = [name for name in different_names if name not in names_read]
    return {"read": names_read, "unread": names_unread}


def _marking_of(request: HttpRequest) -> Marking:
    """Returns what a request asks for, in JSON or as a form. Raises RefusalError."""
    if request.content_type == "application/json":
        category_names, as_of = _json_of(request)
    else:
        category_names = request.POST.getlist("category")
        as_of = request.POST.get("as_of")
    if as_of is None:
        return Marking(category_names, None)
    if not AS_OF.fullmatch(str(as_of)):
        raise errors.bad_as_of()
    return Marking(category_names, int(as_of))


def _json_of(request: HttpRequest) -> tuple[list[str], Any]:
    """Returns the names of categories and the value of `as_of` in JSON. Raises RefusalError."""
    try:
        body = json.loads(body_of(request, most=LONGEST_BODY) or b"")
        category_names = [str(name) for name in body["categories"] if isinstance(name, (str, int))]
        return category_names, body.get("as_of")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise errors.bad_json() from error


def _categories(category_names: Sequence[str]) -> dict[str, Category]:
    """Returns the categories by name, whether they exist or not. Raises RefusalError."""
    if not category_names:
        raise errors.no_category()
    if len(category_names) > MOST:
        raise errors.too_many(MOST)
    models = read_state_models()
    return {name: _category(name, models) for name in category_names}


def _category(name: str, models: Sequence[type[Model]]) -> Category:
    """Returns the category called `name`: a subject, or the key of the only model with read state.

    Raises RefusalError.
    """
    if not _can_be_queried(name):
        raise errors.unknown_category(name)
    category = None
    if ":" in name:
        category = parse_subject(name)
    if category is None and len(models) == 1:
        [only_model] = models
        category = parse_subject(f"{only_model._meta.label_lower}:{quote(name)}")
    if category is None:
        raise errors.unknown_category(name)
    model, pk = category
    if not has_read_state(model):
        raise errors.unknown_category(name)
    try:
        model._meta.pk.run_validators(pk)
    except ValidationError as error:
        raise errors.unknown_category(name) from error
    return model, pk


def _can_be_queried(name: str) -> bool:
    """Returns False for text that no query takes: lone surrogates, which JSON allows, and NUL."""
    if len(name) > LONGEST_NAME or "\0" in unquote(name):
        return False
    return not any("\ud800" <= char <= "\udfff" for char in name)


def _visible(request: HttpRequest, categories: dict[str, Category]) -> dict[str, Category]:
    """Returns the categories that exist and that the `queryset` of FRONT_END shows, by one query a
    model.
    """
    pks_by_model: dict[type[Model], set[Any]] = {}
    for model, pk in categories.values():
        pks_by_model.setdefault(model, set()).add(pk)
    visible: set[Category] = set()
    for model, pks in pks_by_model.items():
        queryset = model._default_manager.filter(pk__in=pks)
        if front_end_options().queryset:
            limit_to_visible = import_string(front_end_options().queryset)
            queryset = limit_to_visible(request, queryset)
        visible.update((model, pk) for pk in queryset.values_list("pk", flat=True))
    return {name: category for name, category in categories.items() if category in visible}
