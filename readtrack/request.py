"""`request.readtrack`: the views, reads and funnel steps of one request."""

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import Model
from django.http import HttpRequest
from django.views.generic.detail import BaseDetailView, DetailView
from django.views.generic.edit import DeletionMixin

from readtrack.conf import cached_setting, logger
from readtrack.subjects import (
    check_stage,
    has_read_state,
    is_counted,
    is_derived,
    subject_of,
    why_no_read_state,
    why_not_counted,
    why_not_saved,
)

if TYPE_CHECKING:
    from readtrack.hits.hit import PartRecord


class Report(NamedTuple):
    """What a request tells about a page that was sent before."""

    as_of: int  # Redis's clock (µs) when the page was made
    language: str  # of the page
    part_record: "PartRecord | None" = None  # what is recorded of it beside views and reads


class Recorder:
    """Collects the views, reads and steps of a request. The middleware records them once the page
    is made.
    """

    is_reported_later = False  # a later request may tell of the page again
    has_placeholders = False  # tags have left some
    is_closed = False  # the middleware is done with the request
    varies_by_reader = False  # a tag of a part shows something else to each reader
    is_personal = False  # such a tag shows what is known of this reader
    is_shared = False  # the page is the same for everybody, so that its reader is not known
    language = ""  # of the request; "" until a tag asks for it
    report: Report | None = None  # set if the request tells of an earlier page

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.views: dict[str, None] = {}
        self.reads: dict[str, None] = {}
        self.steps: dict[tuple[str, str], None] = {}
        # Subjects whose counts tags show outside of loops; only while responses explain themselves.
        self.main_subjects: set[str] = set()

    @property
    def has_anything(self) -> bool:
        """Returns True if there is anything to record."""
        if self.views or self.reads or self.steps:
            return True
        return self.report is not None and self.report.part_record is not None

    def view(self, obj: Model) -> None:
        """Adds a view of the object.

        If its views cannot be counted, the log says once what to do, and the page goes on.
        """
        problem = why_not_counted(obj.__class__) or why_not_saved(obj)
        if problem:
            _log_mistake(f"view() counts nothing: {problem}")
            return
        self.views[subject_of(obj)] = None

    def read(self, obj: Model) -> None:
        """Marks the object read for the signed-in user.

        If it has no read state, the log says once what to do, and the page goes on.
        """
        problem = why_no_read_state(obj.__class__) or why_not_saved(obj)
        if problem:
            _log_mistake(f"read() marks nothing: {problem}")
            return
        self.reads[subject_of(obj)] = None

    def step(self, obj: Model, stage: str) -> None:
        """Adds a step to a stage of the object's funnel.

        If the funnel lacks the stage, or the object cannot have one, the log says once what to do,
        and the page goes on.
        """
        try:
            check_stage(stage)
        except ValueError as error:
            _log_mistake(f"step() counts nothing: {error}")
            return
        if not isinstance(obj, Model):
            _log_mistake(f"step() counts nothing: {why_not_counted(obj.__class__)}")
            return
        problem = why_not_saved(obj)
        if problem:
            _log_mistake(f"step() counts nothing: {problem}")
            return
        self.steps[subject_of(obj), stage] = None

    def see(self, context: Any) -> None:
        """Adds a view, and a read, of the object that a DetailView renders with this context.

        Does nothing for the context of another view, and for an object that is not tracked.
        """
        if not shows_an_object(type(context.get("view"))):
            return
        obj = context.get("object")
        # A preview shows an object that is not saved yet, though it may have a key.
        if not isinstance(obj, Model) or obj.pk is None or obj._state.adding:
            return
        if is_counted(obj.__class__):
            self.view(obj)
        if has_read_state(obj.__class__) and not is_derived(obj.__class__):
            self.read(obj)


@cached_setting()  # once in a process
def _log_mistake(message: str) -> None:
    """Logs a mistake of the site's code, with the lines that made it."""
    logger.error("request.readtrack.%s", message, stack_info=True)


def shows_an_object(view: type[Any]) -> bool:
    """Returns True for Django's views of one object, DetailView and DateDetailView."""
    if issubclass(view, DetailView):
        return True
    # A DeleteView shows it, too, and asks whether to delete it.
    return issubclass(view, BaseDetailView) and not issubclass(view, DeletionMixin)


class MissingRecorder:
    """Stands in for `request.readtrack` in a request that did not come through the middleware."""

    def __get__(self, request: HttpRequest | None, owner: type[HttpRequest]) -> "MissingRecorder":
        if request is None:
            return self
        raise AttributeError(
            "This request has no `readtrack`, because it did not come through"
            " readtrack.middleware.ReadTrackMiddleware. If it is a RequestFactory's, set"
            " request.readtrack = readtrack.request.Recorder(), or use Django's test client."
            " Otherwise add the middleware to MIDDLEWARE, or call tracker.view(obj, visitor=…)."
        )


class TrackedRequest(HttpRequest):
    """A request that came through the middleware, for annotations."""

    readtrack: Recorder
