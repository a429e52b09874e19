"""`request.readtrack`: what one request views and reads."""

import time

from django.db.models import Model
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.generic import DetailView

from readtrack import buckets
from readtrack.hits import visitors
from readtrack.hits.hit import Hit
from readtrack.hits.readers import Reader
from readtrack.models import Tracked
from readtrack.subjects import check_stage, subject_of
from readtrack.unread import categories


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
        self.views[subject_of(obj)] = None

    def read(self, obj: Model) -> None:
        """This page shows the signed-in user what is new in the object. Raises TypeError without read state."""
        if not isinstance(obj, Model) or not categories.has_read_state(obj.__class__):
            name = obj.__class__.__name__
            raise TypeError(
                f"{name} has no read state; name it in READTRACK['READ_STATE_MODELS'] or a model's news_for."
            )
        self.reads[subject_of(obj)] = None

    def step(self, obj: Tracked, stage: str) -> None:
        """This request takes the visitor to a stage of the object's funnel. Raises ValueError for an unknown stage."""
        check_stage(stage)
        self.steps[subject_of(obj), stage] = None

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
