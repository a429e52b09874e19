"""The middleware: records the views and reads of a page once it is made, then fills in its counts
and dots.

Five steps, in this order: `collect` what the page showed, `judge` what of it counts, `identify` who
looks at it, `record` that in Redis, `fill_in` the page.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.views.generic.edit import DeletionMixin, FormMixin

from readtrack import parts, tracker
from readtrack.conf import cached_setting, conf, explains_pages, logger
from readtrack.hits import bots, exclusions, readers, visitors
from readtrack.hits.hit import NO_OUTCOME, Hit, Outcome, PartRecord, Reason, refusal
from readtrack.page import contents, stream
from readtrack.page.filling import Filling
from readtrack.page.placeholders import MARK, MAY_QUERY, PANEL_MARK, READER_MARK
from readtrack.page.rendering import Delivery, in_language
from readtrack.page.reporting import Reporting
from readtrack.request import Recorder, Report, TrackedRequest, shows_an_object
from readtrack.store import clock, keys, recording, uniques
from readtrack.store.circuit import BusyError, fail_open, present_page
from readtrack.store.circuit import Page as WaitingPage
from readtrack.store.scripts import Call
from readtrack.store.sending import sending
from readtrack.store.skips import skip_buffer
from readtrack.subjects import label_in


class ReadTrackMiddleware:
    """Belongs after AuthenticationMiddleware. Works under WSGI and ASGI."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)
        sending().begin()

    def __call__(self, request: TrackedRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        recorder = request.readtrack = Recorder()
        reporting = parts.reporting()
        if reporting and reporting.is_shared(request):
            recorder.is_shared = True
        if self.is_async:
            return self._acall(request)
        # Without a context manager, whose two functions take each page 2,000 instructions of
        # 28,000.
        waiting = WaitingPage(request, conf.TIMEOUT)
        page_around = present_page.set(waiting)
        try:
            response: HttpResponseBase = self.get_response(request)
            page = collect(request, response)
            if page is not None:
                user = visitors.signed_in(request) if _needs_user(page, response) else None
                _finish(request, response, page, user)
        finally:
            present_page.reset(page_around)
            if waiting.seconds_left < conf.TIMEOUT:
                waiting.note_its_wait()
        _close(recorder, response)
        return response

    async def _acall(self, request: TrackedRequest) -> HttpResponseBase:
        """Does the same as `__call__` under ASGI."""
        waiting = WaitingPage(request, conf.TIMEOUT)
        page_around = present_page.set(waiting)
        try:
            response: HttpResponseBase = await self.get_response(request)
            page = collect(request, response)
            if page is not None:
                user = None
                if _needs_user(page, response):
                    user = await visitors.asigned_in(request)
                is_sensitive = _needs_thread_of_django(page)
                await stream.in_thread(
                    _finish, request, response, page, user, is_sensitive=is_sensitive
                )
        finally:
            present_page.reset(page_around)
            if waiting.seconds_left < conf.TIMEOUT:
                waiting.note_its_wait()
        _close(request.readtrack, response)
        return response


def _close(recorder: Recorder, response: HttpResponseBase) -> None:
    """Lets tags fill in at once from now on, in a page that a middleware around this one makes.
    Keeps a page with what tags of parts show of its reader out of caches.
    """
    if recorder.varies_by_reader:
        contents.keep_apart(response, is_personal=recorder.is_personal)
    # A stream may render templates until its end.
    recorder.is_closed = not response.streaming


class Activity(NamedTuple):
    """What a visitor does on a page, as far as it is tracked. `any(activity)` is False for
    nothing.
    """

    views: tuple[str, ...] = ()  # subjects
    reads: tuple[str, ...] = ()  # subjects
    steps: tuple[tuple[str, str], ...] = ()  # subjects and stages of their funnels
    part_record: PartRecord | None = None  # what a report tells beside that


NO_ACTIVITY = Activity()


class ShownPage(NamedTuple):
    """What a page shows, once it is made."""

    activity: Activity
    content: bytes | None  # b"" for a stream; None for a response that has nothing to fill in
    is_shared: bool  # the page is the same for everybody
    is_reported_later: bool  # a later request may tell of the page again
    report: Report | None  # what this request tells of an earlier page, if it does
    as_of: int | None  # Redis's clock (µs) when the page was made, if that was an earlier request
    is_left_to_report: bool = False  # only a report may record the views and reads of the page


class Verdict(NamedTuple):
    """What of a page is to be recorded."""

    activity: Activity
    reason: Reason | None = None  # why the page's views do not count


class Identity(NamedTuple):
    """Who looks at a page."""

    visitor: visitors.Visitor
    reader: readers.Reader | None
    stand_in: str  # the id that may have stood in for the visitor's cookie; "" for none


def _finish(
    request: TrackedRequest, response: HttpResponseBase, page: ShownPage, user: Any | None
) -> None:
    """Takes the steps after `collect`: judges the page, records it, and fills it in."""
    verdict = judge(request, response, page, user)
    outcome = _skip(request, page, verdict)
    filling = None
    is_counted = False
    if any(verdict.activity):
        sender = sending()
        identity = identify(
            request, response, page, verdict, user, named=sender.needs_named_visitors
        )
        hit = _hit_of(request, page, verdict, identity)
        recorded = sender.take(hit)  # None for a hit that this page records
        if recorded is None and page.report and page.content:
            # One round trip records what the report tells, and asks for the numbers of the
            # response to it.
            filling = Filling(page.content, _reader_finder(request, page, user))
            recorded = record(hit, *filling.question.calls)
        elif recorded is None:
            recorded = record(hit)
        if recorded is None:  # Redis failed
            recorded = tracker.skip(hit.views, "error")
        else:
            is_counted = bool(recorded.counted or recorded.queued)
            _give_cookie(request, response, verdict, identity, recorded)
        if verdict.reason:
            recorded = recorded._replace(skipped={**outcome.skipped, **recorded.skipped})
        outcome = recorded
    fill_in(request, response, page, user, filling, is_counted=is_counted)
    if explains_pages():
        explain(request, response, page, outcome)


# 1. Collect


def collect(request: TrackedRequest, response: HttpResponseBase) -> ShownPage | None:
    """Returns what a page that is made shows.

    Returns None if there is nothing to record, to fill in or to explain, which is so for most
    pages that a robot asks for.
    """
    recorder = request.readtrack
    content = contents.text_of(response)
    context = getattr(response, "context_data", None)
    if context:
        recorder.see(context)
    stays_as_it_is = content is None and not explains_pages()
    if stays_as_it_is and not recorder.has_anything:
        return None
    if stays_as_it_is and _skips_robot(request, response):
        return None
    page = _shown_by(recorder, content)
    reporting = parts.reporting()
    return page if reporting is None else _with_reports(page, request, reporting)


def _skips_robot(request: TrackedRequest, response: HttpResponseBase) -> bool:
    """Counts the views of a robot's page as skips. Returns False for a page that the other steps
    have to judge: one of a person, one that is reported, or one with which skips are due.

    All the steps do the same. They take a robot a third longer, and robots come in floods.
    """
    recorder = request.readtrack
    if recorder.report or recorder.is_shared or recorder.is_reported_later:
        return False
    agent = bots.user_agent_of(request)
    is_likely = bots.reason_of(agent) is not None
    if not is_likely or perf_counter() >= skip_buffer.due or not visitors.is_nobody(request):
        return False
    reason = refusal(request.method, response.status_code, request.META)
    if reason is None:
        return False
    tracker.count_skips(len(recorder.views), reason, at=clock.now(), agent=agent)
    return True


def _with_reports(page: ShownPage, request: HttpRequest, reporting: Reporting) -> ShownPage:
    """Returns the page as it is on a site with reports: what it says of itself if it comes out of a
    cache, and without the views and reads that are left to a report.
    """
    if not (any(page.activity) or page.is_reported_later or page.report):
        page = _with_cached(page, reporting, path=request.path)
    may_be_left = any(page.activity) and (page.is_shared or page.is_reported_later)
    if may_be_left and reporting.takes_over(request, is_shared=page.is_shared):
        activity = page.activity._replace(views=(), reads=())
        page = page._replace(activity=activity, is_left_to_report=True)
    return page


def _shown_by(recorder: Recorder, content: bytes | None) -> ShownPage:
    """Returns the page with what the recorder has collected."""
    report = recorder.report
    as_of = None
    part_record = None
    if report is not None:
        as_of = report.as_of
        part_record = report.part_record
    activity = Activity(
        tuple(recorder.views), tuple(recorder.reads), tuple(recorder.steps), part_record
    )
    return ShownPage(
        activity, content, recorder.is_shared, recorder.is_reported_later, report, as_of
    )


def _with_cached(page: ShownPage, reporting: Reporting, *, path: str) -> ShownPage:
    """Returns the page, with its views and reads if it came out of `cache_page`.

    Its view did not run in that case, so the recorder knows nothing of it.
    """
    cached = reporting.page_in(page.content, path=path) if page.content else None
    if cached is None:
        return page
    return page._replace(
        activity=Activity(views=cached.views, reads=cached.reads),
        as_of=cached.as_of,
        is_shared=cached.is_shared,
        is_reported_later=True,
    )


def _needs_user(page: ShownPage, response: Any) -> bool:
    """Returns True if the reader is needed: to record, or to fill in dots."""
    if page.is_shared:
        return False
    if any(page.activity):
        return True
    if page.content:
        return READER_MARK.search(page.content) is not None
    is_stream = page.content is not None  # whose content is not known yet
    return is_stream and "html" in response.get("Content-Type", "")


def _needs_thread_of_django(page: ShownPage) -> bool:
    """Returns True if the steps may use the connection to SQL of Django's own thread.

    EXCLUDE may query groups, and a tenant may be that of the connection. Otherwise any thread will
    do, and pages do not queue.
    """
    if conf.EXCLUDE or keys.tenant_function():
        return True
    return MAY_QUERY.search(page.content or b"") is not None


# 2. Judge


def judge(
    request: HttpRequest, response: HttpResponseBase, page: ShownPage, user: Any | None
) -> Verdict:
    """Returns what of the page is to be recorded, and why its views do not count."""
    activity = page.activity
    if not any(activity):
        return Verdict(NO_ACTIVITY)
    reason = _refusal_of_views(request, response, page, user)
    if reason:
        if not activity.steps:
            return Verdict(NO_ACTIVITY, reason)
        activity = Activity(steps=activity.steps)
    if activity.steps and _refusal_of_steps(request, response, user):
        activity = activity._replace(steps=())
    verdict = Verdict(activity, reason)
    if any(activity) and _is_excluded(request, user):
        verdict = _excluded(verdict)
    reporting = parts.reporting()
    if reporting and page.is_reported_later:
        verdict = _without_reported(verdict, page, reporting)
    return verdict


def _excluded(verdict: Verdict) -> Verdict:
    """Returns the verdict on an excluded hit: its reads stay, so that the reader's dots go out,
    unless EXCLUDE leaves out reads as well.
    """
    activity = verdict.activity
    if exclusions.leaves_out_reads():
        return Verdict(NO_ACTIVITY, verdict.reason or "excluded")
    if not (activity.views or activity.steps or activity.part_record):
        return verdict
    return Verdict(Activity(reads=activity.reads), verdict.reason or "excluded")


def _without_reported(verdict: Verdict, page: ShownPage, reporting: Reporting) -> Verdict:
    """Returns the verdict without the views and reads that a later report has to tell."""
    activity = verdict.activity
    if reporting.takes_views():
        activity = activity._replace(views=())
    if reporting.takes_reads(page.content or b""):
        activity = activity._replace(reads=())
    return verdict._replace(activity=activity)


def _refusal_of_views(
    request: HttpRequest, response: HttpResponseBase, page: ShownPage, user: Any | None
) -> Reason | None:
    """Returns why the page's views, reads and reports cannot count; None if they can."""
    activity = page.activity
    if not (activity.views or activity.reads or activity.part_record):
        return None
    method = request.method
    status = response.status_code
    if page.report and status < 400:  # a report may come by POST
        method = "GET"
        status = 200
    return refusal(method, status, request.META, is_anonymous=user is None)


def _refusal_of_steps(
    request: HttpRequest, response: HttpResponseBase, user: Any | None
) -> Reason | None:
    """Returns why the page's steps cannot count; None if they can.

    A step may be a form that redirects, so neither its method nor its status has to be a page's.
    """
    if response.status_code >= 400:
        return "status"
    return refusal("GET", 200, request.META, is_anonymous=user is None)


def _is_excluded(request: HttpRequest, user: Any | None) -> bool:
    """Returns True if EXCLUDE, or a link of the admin, leaves the hit out."""
    may_be_excluded = conf.EXCLUDE or getattr(user, "is_staff", False)
    return bool(may_be_excluded) and exclusions.is_excluded(request, user)


def _skip(request: HttpRequest, page: ShownPage, verdict: Verdict) -> Outcome:
    """Counts the page's views as skips if they were refused. Returns the outcome of these views."""
    # The skips of a page that is reported were counted when the page was made.
    if not verdict.reason or page.report:
        return NO_OUTCOME
    agent = bots.user_agent_of(request)
    is_alone = not any(verdict.activity)
    return tracker.skip(page.activity.views, verdict.reason, is_alone=is_alone, agent=agent)


# 3. Identify


def identify(
    request: HttpRequest,
    response: HttpResponseBase,
    page: ShownPage,
    verdict: Verdict,
    user: Any | None,
    *,
    named: bool,
) -> Identity:
    """Returns who looks at the page. Removes a cookie that the site may not keep.

    Without `named`, a new visitor's fallback_id is left to `Hit.named`.
    """
    visitor = _visitor_of(request, response, page, user, named=named)
    is_unwanted = visitors.has_unwanted_cookie(request, visitor)
    if is_unwanted and not _may_be_shared(page, response):
        visitors.remove_cookie(request, response)
    reader = None
    if verdict.activity.reads or uniques.needs_readers():
        reader = visitors.reader(request, user)
    stand_in = ""
    if page.report:
        stand_in = _stand_in_of(request, visitor)
    return Identity(visitor, reader, stand_in)


def _visitor_of(
    request: HttpRequest,
    response: HttpResponseBase,
    page: ShownPage,
    user: Any | None,
    *,
    named: bool,
) -> visitors.Visitor:
    """Returns the visitor; by the address in place of a new cookie where none can be set."""
    visitor = visitors.visitor(request, user, named=named)
    if visitor.new_cookie and _may_be_shared(page, response):
        # A shared cache would give the new cookie to everybody, so none is set.
        stand_in_id = visitor.fallback_id or visitors.address_id(request)
        visitor = visitors.Visitor(stand_in_id, kind="address")
    return visitor


def _stand_in_of(request: HttpRequest, visitor: visitors.Visitor) -> str:
    """Returns the id by the address that may have counted a view of the reported page already,
    before the visitor's cookie came back. Returns "" if there is none.
    """
    cookie_came_back = visitor.kind == "cookie" and not visitor.new_cookie
    if cookie_came_back and visitors.has_recent_cookie(request):
        return visitors.address_id(request)
    return ""


def _may_be_shared(page: ShownPage, response: HttpResponseBase) -> bool:
    """Returns True if caches may give the response, with its cookies, to other visitors."""
    return page.is_shared or visitors.may_be_shared(response)


# 4. Record


def _hit_of(request: TrackedRequest, page: ShownPage, verdict: Verdict, identity: Identity) -> Hit:
    """Returns what is recorded of the page, at the present time of Redis's clock."""
    if not clock.due:  # once in a process: it has not learnt the time yet
        fail_open(clock.ask, None)
    activity = verdict.activity
    reads = activity.reads
    if identity.reader is None:
        reads = ()
    values: tuple[tuple[str, str], ...] = ()
    if activity.views and not identity.visitor.opted_out:
        for values_of in parts.values_functions():
            values += values_of(request)
    # A page that is reported was made by an earlier request, and `as_of` is its time.
    began = request.readtrack.began if page.as_of is None else None
    # Positional, because thirteen keyword arguments take as long as the hash of an address.
    return Hit(
        identity.visitor,
        clock.now(),
        activity.views,
        reads,
        values,
        activity.steps,
        activity.part_record,
        page.report is not None,
        page.report is not None and _is_seen(request, page, identity),
        identity.stand_in,
        identity.reader,
        began,
        page.as_of,
    )


def _is_seen(request: HttpRequest, page: ShownPage, identity: Identity) -> bool:
    """Returns True if a report says that its page was seen."""
    if not page.activity.views:
        return False
    reporting = parts.reporting()
    return reporting is not None and reporting.is_seen(request, identity.visitor)


def record(hit: Hit, *extra_calls: Call[Any]) -> Outcome | None:
    """Records the hit, with all ids of its visitor, and runs the extra calls in that round trip.

    Returns None if Redis fails.
    """
    return fail_open(_record, None, hit.named, *extra_calls)


def _record(hit: Hit, *extra_calls: Call[Any]) -> Outcome:
    """Returns the outcome of the hit, also where no connection was free."""
    try:
        return recording.record(hit, *extra_calls)
    except BusyError:
        return tracker.skip(hit.views, "busy")


def _give_cookie(
    request: TrackedRequest,
    response: HttpResponseBase,
    verdict: Verdict,
    identity: Identity,
    outcome: Outcome,
) -> None:
    """Sets the cookie of a new visitor who viewed something or took a step, and is no robot.

    Where anonymous visitors have dots, also that of one who read something.
    """
    if not identity.visitor.new_cookie:
        return
    # A person whose view was refused gets the cookie, too, and is a visitor of its own from then
    # on. A robot with a cookie would lose its mark.
    is_robot = "honeypot" in outcome.skipped.values()
    is_person = bool(verdict.activity.views or outcome.steps) and not is_robot
    reporting = parts.reporting() if request.readtrack.report else None
    if reporting and not reporting.counts_views():
        # The report counts no view, so it makes nobody a visitor whom the server would count anew.
        is_person = False
    if is_person or (conf.DOTS.anonymous and verdict.activity.reads):
        visitors.set_cookie(request, response, identity.visitor)


def explain(
    request: TrackedRequest, response: HttpResponseBase, page: ShownPage, outcome: Outcome
) -> None:
    """Sets the header X-Readtrack: the outcome of the page's views, reads and steps, or why it has
    none.
    """
    is_lost = request.readtrack.has_placeholders and _has_lost_placeholders(request, response, page)
    if is_lost:
        request.readtrack.main_subjects.clear()  # the page does not show them
    text = str(outcome) or _why_nothing_recorded(request, response, page)
    if is_lost:
        text = f"{text}, not filled in" if text else "not filled in"
    if text:
        response["X-Readtrack"] = text


def _has_lost_placeholders(request: HttpRequest, response: Any, page: ShownPage) -> bool:
    """Returns True, and logs it, if what tags have left could not be filled in."""
    if response.status_code != 200 or request.method != "GET":
        return False
    is_changed = not response.streaming and MARK in response.content  # by `truncatechars`, say
    if page.content is not None and not is_changed:
        return False
    logger.warning(
        "What tags have left for counts and dots of %s could not be filled in. Was a mail, a PDF or"
        " another file rendered with the request? Render it without the request. Was the page"
        " packed, or the text of a tag changed by a filter? Give the value a name by `as`.",
        request.path,
    )
    return True


def _why_nothing_recorded(
    request: TrackedRequest, response: HttpResponseBase, page: ShownPage
) -> str:
    """Returns why a page without an outcome has none; "" if nobody would expect one."""
    has_activity = any(page.activity)
    reporting = parts.reporting()
    is_left = page.is_left_to_report or (page.is_reported_later and has_activity)
    if reporting and is_left:
        return reporting.explanation(is_reported_later=page.is_reported_later)
    if page.activity.views or page.report or not _is_ordinary(request, response):
        return ""
    if not has_activity and shows_an_object(_view_class(request)):
        return "no subject"
    return _missing_view(request)


def _is_ordinary(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Returns True for a page as a visitor gets it: the answer to a GET, without an error."""
    return request.method == "GET" and response.status_code == 200


def _missing_view(request: TrackedRequest) -> str:
    """Returns that the page counts no view, if it shows the count of one object outside of loops;
    else "".
    """
    main_subjects = request.readtrack.main_subjects
    view_class = _view_class(request)
    is_form = issubclass(view_class, (FormMixin, DeletionMixin))  # which counts on purpose no view
    if len(main_subjects) != 1 or is_form:
        return ""
    (subject,) = main_subjects
    _warn_of_no_view(getattr(request.resolver_match, "view_name", ""), label_in(subject))
    return f"no view of {subject}; its view calls no request.readtrack.view()"


@cached_setting()  # once for each view
def _warn_of_no_view(view_name: str, label: str) -> None:
    logger.warning(
        "The page of the view %r shows the count of one %s and counts no view. If it is the page of"
        " that object, let the view call request.readtrack.view(object).",
        view_name,
        label,
    )


def _view_class(request: HttpRequest) -> type[Any]:
    """Returns the class of the request's view; `object` for a function."""
    view = getattr(getattr(request.resolver_match, "func", None), "view_class", None)
    return view if isinstance(view, type) else object


# 5. Fill in


def fill_in(
    request: HttpRequest,
    response: HttpResponseBase,
    page: ShownPage,
    user: Any | None,
    filling: Filling | None,
    *,
    is_counted: bool,
) -> None:
    """Fills in the counts, the dots and the panel of the page.

    `filling` is given where the round trip of the hit has asked its question already. A page
    `is_counted` if its views are.
    """
    if page.content is None:
        return
    find_reader = _reader_finder(request, page, user)
    delivery = Delivery(request, is_counted)
    if response.streaming and not page.content:
        stream.fill(response, find_reader, delivery=delivery)
        return
    if filling is None:
        content = page.content
        if PANEL_MARK in content and not page.is_shared:
            content = _with_panel(response, content, user)
        filling = Filling(content, find_reader)
        filling.question.ask()
    with in_language(page.report.language if page.report else ""):
        filled = filling.filled(
            is_json=contents.is_json(response),
            charset=contents.charset_of(response),
            delivery=delivery,
        )
    contents.put(response, filled, request)
    if filling.dots and not page.is_shared:
        contents.keep_apart(response, is_personal=filling.reader is not None)


def _with_panel(response: HttpResponseBase, content: bytes, user: Any | None) -> bytes:
    """Returns the content with the panel of a part.

    It comes after the page's own view is recorded, so that the panel and the page show the same
    count.
    """
    for part in parts.installed():
        content = part.place_panel(response, content, user)
    return content


def _reader_finder(
    request: HttpRequest, page: ShownPage, user: Any | None
) -> Callable[[], readers.Reader | None]:
    """Returns a function that returns the reader whose dots the page shows, or None."""
    if page.is_shared:  # its reader is not known
        return lambda: None
    return partial(visitors.reader, request, user)
