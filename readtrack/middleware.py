"""The middleware: lets the page be made, then records what it showed and fills in its counts and dots."""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.conf import settings
from django.db.models import Model
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.generic import DetailView

from readtrack import buckets, categories, dimensions, filling, hits, readers, subjects, tracker, visitors
from readtrack.conf import conf
from readtrack.hits import Hit, Outcome
from readtrack.models import Tracked
from readtrack.readers import Reader
from readtrack.store import uniques
from readtrack.store.connection import fail_open


class Recorder:
    """`request.readtrack`: what this request views and reads. Recorded once the page is made."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.views: dict[str, None] = {}
        self.reads: dict[str, None] = {}
        self.steps: dict[tuple[str, str], None] = {}

    def view(self, obj: Tracked) -> None:
        """This page shows the object. Raises TypeError for a model that is not Tracked."""
        if not isinstance(obj, Tracked):
            raise TypeError(f"{type(obj).__name__} has no counts; let it extend readtrack.models.Tracked.")
        self.views[subjects.token(obj)] = None

    def read(self, obj: Model) -> None:
        """This page shows the signed-in user what is new in the object. Raises TypeError without read state."""
        if not isinstance(obj, Model) or not categories.has_read_state(obj.__class__):
            name = obj.__class__.__name__
            raise TypeError(f"{name} has no read state; name it in READTRACK['CATEGORIES'] or a model's news_for.")
        self.reads[subjects.token(obj)] = None

    def step(self, obj: Tracked, stage: str) -> None:
        """This request takes the visitor to a stage of the object's funnel. Raises ValueError for an unknown stage."""
        subjects.check_stage(stage)
        self.steps[subjects.token(obj), stage] = None

    def see(self, response: HttpResponseBase) -> None:
        """Takes up the object that a DetailView rendered."""
        context = getattr(response, "context_data", None) or {}
        if not isinstance(context.get("view"), DetailView):
            return
        obj = context.get("object")
        if not isinstance(obj, Model) or obj.pk is None:  # a preview of what is not saved yet
            return
        if isinstance(obj, Tracked):
            self.view(obj)
        if categories.has_read_state(obj.__class__):
            self.read(obj)

    def drop(self, *, spares_reads: bool) -> tuple[str, ...]:
        """Forgets what is viewed and read, for none of it counts; gives what was viewed."""
        views = tuple(self.views)
        self.views.clear()
        if not spares_reads:
            self.reads.clear()
        return views

    @property
    def has_seen(self) -> bool:
        """Whether there is anything to record."""
        return bool(self.views or self.reads or self.steps)

    def hit(self, visitor: visitors.Visitor, reader: Reader | None) -> Hit:
        """All of it as one hit."""
        return Hit(
            visitor,
            buckets.now(),
            views=tuple(self.views),
            reads=tuple(self.reads) if reader is not None else (),
            reader=reader,
            began=self.started,
            steps=tuple(self.steps),
        )


class TrackedRequest(HttpRequest):
    """For annotations: a request that came through the middleware."""

    readtrack: Recorder


class ReadTrackMiddleware:
    """Belongs after AuthenticationMiddleware. Works under WSGI and ASGI."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: TrackedRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        request.readtrack = Recorder()
        if self.is_async:
            return self._acall(request)
        response: HttpResponseBase = self.get_response(request)
        _finish(request, response, visitors.signed_in(request) if _needs_user(request, response) else None)
        return response

    async def _acall(self, request: TrackedRequest) -> HttpResponseBase:
        response: HttpResponseBase = await self.get_response(request)
        user = await visitors.asigned_in(request) if _needs_user(request, response) else None
        await sync_to_async(_finish, thread_sensitive=False)(request, response, user)
        return response


def _needs_user(request: TrackedRequest, response: HttpResponseBase) -> bool:
    request.readtrack.see(response)
    return request.readtrack.has_seen or filling.needs_user(response)


def _finish(request: TrackedRequest, response: HttpResponseBase, user: Any | None) -> None:
    _record(request, response, user)
    filling.fill(response, partial(readers.find, request, user))


def _record(request: TrackedRequest, response: HttpResponseBase, user: Any | None) -> None:
    recorder = request.readtrack
    if not recorder.has_seen:
        return
    is_refused = visitors.is_refused(user)
    reason = None
    skipped: tuple[str, ...] = ()
    if (recorder.views or recorder.reads) and (reason := hits.refusal(request, response, is_refused=is_refused)):
        # An app's own browser may look like a robot, but whoever signed in has seen what is new.
        skipped = recorder.drop(spares_reads=reason == "bot" and user is not None)
    if recorder.steps and hits.step_refusal(request, response, is_refused=is_refused):
        recorder.steps.clear()
    outcome = tracker.skip(skipped, reason, is_alone=not recorder.has_seen) if reason else Outcome()
    if recorder.has_seen:
        counted = _count(request, response, user)
        outcome = counted._replace(skipped={**outcome.skipped, **counted.skipped})
    if (settings.DEBUG or conf.DEBUG_HEADER) and any(outcome):
        response["X-Readtrack"] = str(outcome)


def _count(request: TrackedRequest, response: HttpResponseBase, user: Any | None) -> Outcome:
    visitor = visitors.settled(visitors.visitor(request, user), response)
    seen = request.readtrack
    reader = readers.find(request, user) if seen.reads or uniques.need_reader(seen.views) else None
    hit = seen.hit(visitor, reader)
    if conf.DIMENSIONS and hit.views and not visitor.opted_out:
        hit = hit._replace(dimensions=dimensions.values(request))
    outcome = fail_open(tracker.record, None, hit)
    if outcome is None:
        return tracker.skip(seen.views, "error")
    if outcome.counted or outcome.steps or (conf.ANONYMOUS_READERS and seen.reads):
        visitors.remember(request, response, visitor)
    return outcome
