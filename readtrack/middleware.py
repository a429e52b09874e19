"""The middleware: records the views and reads of a page once it is made, then fills in its counts
and dots.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import unquote

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import override
from django.views.generic import DetailView

from readtrack import tracker
from readtrack.conf import cached_setting, conf, patterns
from readtrack.hits import bots, dimensions, exclusions, visitors
from readtrack.hits.hit import NO_OUTCOME, Hit, Outcome, refusal
from readtrack.page import filling, panel, shown
from readtrack.page.filling import MAY_QUERY, PAGE_MARK, PANEL_MARK, READER_MARK, TEXT_MARK
from readtrack.request import Recorder, TrackedRequest
from readtrack.store import clock, keys, recording, scripts, uniques
from readtrack.store.buffer import hit_buffer
from readtrack.store.circuit import Page, fail_open


class ReadTrackMiddleware:
    """Belongs after AuthenticationMiddleware. Works under WSGI and ASGI."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)
        if conf.BUFFER:
            hit_buffer.close_on_sigterm()

    def __call__(self, request: TrackedRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        request.readtrack = Recorder()
        if conf.SHARED_PATHS and any(
            pattern.search(request.path) for pattern in patterns("SHARED_PATHS")[0]
        ):
            request.readtrack.is_shared = True
        if self.is_async:
            return self._acall(request)
        with Page(request, conf.TIMEOUT):
            response: HttpResponseBase = self.get_response(request)
            if _is_ours(request, response):
                _finish(
                    request,
                    response,
                    visitors.signed_in(request) if request.readtrack.needs_user else None,
                )
        return response

    async def _acall(self, request: TrackedRequest) -> HttpResponseBase:
        with Page(request, conf.TIMEOUT):
            response: HttpResponseBase = await self.get_response(request)
            if _is_ours(request, response):
                seen = request.readtrack
                user = await visitors.asigned_in(request) if seen.needs_user else None
                # A tenant is that of the connection to SQL of Django's own thread. EXCLUDE may
                # query groups. Otherwise any thread will do, and pages do not queue.
                is_sensitive = bool(
                    conf.EXCLUDE or keys.tenant_function() or MAY_QUERY.search(seen.content or b"")
                )
                await filling.in_thread(_finish, request, response, user, is_sensitive=is_sensitive)
        return response


def _is_ours(request: TrackedRequest, response: HttpResponseBase) -> bool:
    """Looks through a page that is made. Returns True if there is anything to record, to fill in or
    to explain.
    """
    seen, content = request.readtrack, filling.text_of(response)
    if context := getattr(response, "context_data", None):
        seen.see(context)
    has_seen = seen.has_seen
    if (
        content
        and not has_seen
        and PAGE_MARK in content
        and not (seen.has_script or seen.is_script)
    ):
        # It came out of `cache_page`, and its view did not run.
        for name in (
            entry.subject for entry in filling.found(content).values() if entry.kind == filling.PAGE
        ):
            # Otherwise a fragment was cached with the script of another page in it.
            if unquote(name.partition("|")[0]) == request.path[: shown.LONGEST_PATH]:
                shown.tell(name, seen)
                seen.has_script = True
        has_seen = seen.has_seen
    if has_seen and seen.is_shared and conf.COUNT_BY != "server":
        seen.is_left, seen.views, seen.reads = True, {}, {}
        has_seen = seen.has_seen
    seen.content, seen.is_ours = content, has_seen
    if not seen.is_shared:
        # A stream, whose content is empty here, may have dots if it is HTML.
        may_have_dots = content == b"" and "html" in response.get("Content-Type", "")
        seen.needs_user = has_seen or bool(
            READER_MARK.search(content) if content else may_have_dots
        )
    return has_seen or content is not None or _explains()


@cached_setting(
    "DEBUG"
)  # to look it up in `settings` takes as long as all that a page without a subject needs
def _explains() -> bool:
    return settings.DEBUG or conf.DEBUG_HEADER


def _finish(request: TrackedRequest, response: HttpResponseBase, user: Any | None) -> None:
    seen, content = request.readtrack, request.readtrack.content
    if content is not None:
        find_reader = None if seen.is_shared else partial(visitors.reader, request, user)
        seen.fill = partial(filling.fill, response, content, find_reader)
        if seen.language:
            seen.fill = override(seen.language)(seen.fill)
    outcome = _record(request, response, user) if seen.is_ours else NO_OUTCOME
    # what became of the page's views, reads and steps, or why a page that looks like it has none
    if _explains():
        text = str(outcome)
        view = getattr(getattr(request.resolver_match, "func", None), "view_class", None)
        if not text and (seen.is_left or (seen.has_script and seen.is_ours)):
            text = "left to the script" if seen.has_script else "no script"
        elif not (text or seen.is_ours) and isinstance(view, type) and issubclass(view, DetailView):
            text = "no subject" if request.method == "GET" and response.status_code == 200 else ""
        if text:
            response["X-Readtrack"] = text
    if content and PANEL_MARK in content and not seen.is_shared:
        # Once the page's own view is recorded, so that the panel and the page show the same count.
        seen.fill = partial(
            filling.fill, response, panel.placed(response, content, user), find_reader
        )
    if seen.fill:
        seen.fill()


def _record(request: TrackedRequest, response: HttpResponseBase, user: Any | None) -> Outcome:
    """Drops what cannot count, and records the rest."""
    seen, status, is_anonymous = request.readtrack, response.status_code, user is None
    reason, views = None, seen.views
    if seen.views or seen.reads or seen.reading:
        # What a script tells comes by POST, as a step may.
        method, code = ("GET", 200) if seen.is_script and status < 400 else (request.method, status)
        if reason := refusal(method, code, request.META, is_anonymous=is_anonymous):
            seen.views, seen.reads, seen.reading = {}, {}, None
    # A form that redirects may be a step.
    if seen.steps and (
        status >= 400 or refusal("GET", 200, request.META, is_anonymous=is_anonymous)
    ):
        seen.steps = {}
    may_be_own = conf.EXCLUDE or getattr(user, "is_staff", False)
    if (
        may_be_own
        and (seen.views or seen.steps or seen.reading)
        and exclusions.is_excluded(request, user)
    ):
        reason = reason or "excluded"
        seen.views, seen.steps, seen.reading = (
            {},
            {},
            None,
        )  # what they have read stays, so that their dots go out
    if seen.has_script and conf.COUNT_BY == "script":
        seen.views, seen.reads = {}, {}
    if seen.has_script and conf.READ_WHEN == "read" and TEXT_MARK in (seen.content or b""):
        seen.reads = {}
    is_left, outcome = seen.has_seen, NO_OUTCOME
    if reason and not seen.is_script:  # the page itself was skipped already
        outcome = tracker.skip(
            views, reason, is_alone=not is_left, agent=bots.user_agent_of(request)
        )
    if not is_left:
        return outcome
    counted = _count(request, response, user)
    return counted._replace(skipped={**outcome.skipped, **counted.skipped}) if reason else counted


def _count(request: TrackedRequest, response: HttpResponseBase, user: Any | None) -> Outcome:
    seen, stand_in = request.readtrack, ""
    # The thread of the buffer names a new visitor, in a loop: within a request that takes four
    # times as long.
    visitor = visitors.visitor(request, user, named=not conf.BUFFER)
    if visitor.new_cookie and (seen.is_shared or visitors.may_be_shared(response)):
        visitor = visitors.Visitor(
            visitor.fallback_id or visitors.address_id(request), kind="address"
        )
    if seen.is_script and visitor.kind == "cookie" and not visitor.new_cookie:
        stand_in = visitors.address_id(request)
    reader = visitors.reader(request, user) if seen.reads or uniques.needs_readers() else None
    if not clock.due:  # once in a process
        fail_open(clock.ask, None)
    values = (
        dimensions.values(request)
        if conf.DIMENSIONS and seen.views and not visitor.opted_out
        else ()
    )
    views, reads, steps = (
        tuple(seen.views),
        tuple(seen.reads) if reader is not None else (),
        tuple(seen.steps),
    )
    began, as_of = seen.began if seen.as_of is None else None, seen.as_of
    at, reading, by_script = clock.now(), seen.reading, seen.is_script
    # By place, because twelve names take as long as the hash of an address.
    hit = Hit(
        visitor, at, views, reads, values, steps, reading, by_script, stand_in, reader, began, as_of
    )
    outcome = hit_buffer.add(hit) if conf.BUFFER else None
    if not outcome:
        hit = hit.named if visitor.caller else hit
        outcome = _answer(hit, seen) if seen.is_script else fail_open(recording.record, None, hit)
    if outcome is None:
        return tracker.skip(views, "error")
    if visitor.new_cookie:
        # A refused person gets the cookie, too, and is told apart later. A robot with it would
        # leave the honeypot.
        is_person = bool(views or outcome.steps) and "honeypot" not in outcome.skipped.values()
        if is_person or (conf.ANONYMOUS_READERS and seen.reads):
            visitors.set_cookie(request, response, visitor)
    return outcome


def _answer(hit: Hit, seen: Recorder) -> Outcome | None:
    """Records what a script tells, and fills in the answer, in one round trip. Returns None if
    Redis fails.
    """
    outcomes: list[Outcome] = []

    def run(*calls: scripts.Call[Any]) -> list[Any]:
        outcomes.append(recording.record(hit, *calls))
        return [call.result for call in calls]

    fill, seen.fill = seen.fill, None
    if fill:
        fill(run=run)
    return outcomes[0] if outcomes else None
