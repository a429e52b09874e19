"""The middleware: lets the page be made, then records what it showed and fills in its counts and dots."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from readtrack import tracker
from readtrack.conf import conf
from readtrack.hits import dimensions, readers, visitors
from readtrack.hits.hit import Outcome, refusal, step_refusal
from readtrack.page import filling
from readtrack.request import Recorder, TrackedRequest
from readtrack.store import uniques
from readtrack.store.circuit import fail_open


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
    if (recorder.views or recorder.reads) and (reason := refusal(request, response, is_refused=is_refused)):
        # An app's own browser may look like a robot, but whoever signed in has seen what is new.
        skipped = recorder.drop(spares_reads=reason == "bot" and user is not None)
    if recorder.steps and step_refusal(request, response, is_refused=is_refused):
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
