"""`request.readtrack`: the views, reads and funnel steps of one request."""

import time

from django.db.models import Model
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.generic import DetailView

from readtrack.models import Tracked
from readtrack.subjects import check_read_state, check_stage, has_read_state, subject_of


class Recorder:
    """Collects the views, reads and steps of a request. The middleware records them once the page is made."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.views: dict[str, None] = {}
        self.reads: dict[str, None] = {}
        self.steps: dict[tuple[str, str], None] = {}

    def view(self, obj: Tracked) -> None:
        """Adds a view of the object. Raises TypeError for a model that is not Tracked."""
        if not isinstance(obj, Tracked):
            raise TypeError(f"{type(obj).__name__} has no counts; let it extend readtrack.models.Tracked.")
        self.views[subject_of(obj)] = None

    def read(self, obj: Model) -> None:
        """Marks the object read for the signed-in user. Raises TypeError for a model without read state."""
        check_read_state(obj.__class__)
        self.reads[subject_of(obj)] = None

    def step(self, obj: Tracked, stage: str) -> None:
        """Adds a step to a stage of the object's funnel. Raises ValueError for a stage that FUNNEL lacks."""
        check_stage(stage)
        self.steps[subject_of(obj), stage] = None

    def see(self, response: HttpResponseBase) -> bool:
        """Adds a view and a read of the object that a DetailView rendered. Returns True if there is a hit to record."""
        context = getattr(response, "context_data", None) or {}
        obj = context.get("object") if isinstance(context.get("view"), DetailView) else None
        if isinstance(obj, Model) and obj.pk is not None:  # a preview shows an object that is not saved yet
            if isinstance(obj, Tracked):
                self.view(obj)
            if has_read_state(obj.__class__):
                self.read(obj)
        return self.has_seen

    @property
    def has_seen(self) -> bool:
        """Returns True if there is anything to record."""
        return bool(self.views or self.reads or self.steps)


class MissingRecorder:
    """Stands in for `request.readtrack` in a request that did not come through the middleware."""

    def __get__(self, request: HttpRequest | None, owner: type[HttpRequest]) -> "MissingRecorder":
        if request is None:
            return self
        raise AttributeError(
            "This request has no `readtrack`, because it did not come through readtrack.middleware.ReadTrackMiddleware."
            " If it is a RequestFactory's, set request.readtrack = readtrack.request.Recorder(), or use Django's test"
            " client. Otherwise add the middleware to MIDDLEWARE, or call tracker.view(obj, visitor=…)."
        )


class TrackedRequest(HttpRequest):
    """A request that came through the middleware, for annotations."""

    readtrack: Recorder
