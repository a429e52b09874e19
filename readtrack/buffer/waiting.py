"""The forms in which a hit waits, and its calls if it has to be sent again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from readtrack import parts
from readtrack.buffer import batch
from readtrack.buffer.batch import Entry, PlainView
from readtrack.hits.hit import Hit, Outcome
from readtrack.store import clock, day_keys, keys, recording
from readtrack.store.counting import count_views
from readtrack.store.limits import rate_limit
from readtrack.store.scripts import Call
from readtrack.store.skips import key_of


@dataclass(slots=True, eq=False)
class Waiting:
    """A hit in the form of its calls, which may be sent again."""

    at: datetime
    view_groups: Sequence["ViewsOfPartition"]
    upkeep: Sequence[Call[Any]]  # also what parts run with the hit
    # Key of the counts of its skips; "" for a hit by a page's script, whose repeats are expected.
    skips_key: str
    # Counts the hit where the rate is in another partition than the views; None once it was run.
    rate: Call[int] | None
    take_back: Call[int] | None  # takes the hit back if none of its views counts
    # Looks for a robot's mark, if `rate` counts the hit at an earlier time.
    mark: Call[int] | None = None
    first_sent: float = 0.0  # seconds of the monotonic clock; 0 for a hit that was never sent

    @classmethod
    def of(cls, hit: Hit, part_calls: Sequence[Call[Any]] = ()) -> "Waiting":
        """Returns the hit in the form of its calls, and of those that parts run with it."""
        view_groups = [
            ViewsOfPartition(len(portion.views), count_views(portion))
            for portion in recording.by_partition(hit)
        ]
        return cls(
            at=hit.at,
            view_groups=view_groups,
            upkeep=[*_upkeep_of_day(hit), *part_calls],
            skips_key="" if hit.is_report else key_of(hit.at),
            rate=recording.rate(hit, 1) if keys.is_divided() else None,
            take_back=recording.rate(hit, -1) if recording.takes_back(hit) else None,
        )

    @property
    def rate_calls(self) -> list[Call[int]]:
        """The calls that return the visitor's hits: `rate` until it was run, and `mark`.

        The mark is last, because its result replaces that of the rate.
        """
        return [call for call in (self.rate, self.mark) if call is not None]

    def set_hits(self, hits: int) -> None:
        """Tells the calls that count the views the number of the visitor's hits, unless it is 0."""
        if hits:
            for views in self.view_groups:
                _set_hits(views.call, hits)

    def move_rate(self) -> None:
        """Counts the hit in a rate of the window in which it came, in place of the present rate.

        Otherwise the hits of several minutes would count as if they came at once.
        """
        counting: Call[Any] | None = self.view_groups[0].call
        if keys.is_divided():
            counting = self.rate
        if counting is None:  # the rate has counted the hit already
            return
        self.mark = _read_mark(counting.keys[0])
        window = int(self.at.timestamp()) // rate_limit().seconds
        for call in (counting, self.take_back):
            if call is not None:
                rate_key, *other_keys = call.keys
                call.keys = [f"{rate_key}:{window}", *other_keys]


class ViewsOfPartition(NamedTuple):
    """The views of a hit that are of one partition."""

    number: int  # how many views
    call: Call[Outcome]  # counts them


# The forms in which a hit waits: the fields of a PlainView for a hit of one view; the hit itself;
# or Waiting for a hit that was sent before, and for one whose tenant only its own request knows.
Queued = tuple[Any, ...] | Hit | Waiting


def queued_form(hit: Hit) -> Queued:
    """Returns the form in which the hit waits."""
    if keys.tenant_function() is not None:  # the thread knows no tenant
        return as_waiting(hit)
    if parts.calls_of_hit(hit):  # which need the whole hit
        return hit
    return PlainView.fields_of(hit) or hit


def _upkeep_of_day(hit: Hit) -> Sequence[Call[Any]]:
    """Returns the calls that keep the key of the day, for a visitor with ids of a day."""
    return day_keys.upkeep(hit.at) if hit.visitor.kind == "day" else ()


def with_names(queued: Any) -> PlainView | Hit:
    """Returns a queued hit that is not Waiting with names for its fields."""
    return queued if isinstance(queued, Hit) else PlainView._make(queued)


def entry_of(queued: Any, *, prefix: str) -> Entry:
    """Returns the entry in a batch of a queued hit that is not Waiting."""
    view = with_names(queued).named
    if isinstance(view, Hit):
        return batch.entry_of_call(count_views(view))
    return batch.entry_of_view(view, prefix=prefix)


def as_waiting(queued: Any) -> Waiting:
    """Returns a queued hit of any form as Waiting."""
    if isinstance(queued, Waiting):
        return queued
    if isinstance(queued, Hit):
        hit = queued.named
        return Waiting.of(hit, parts.calls_of_hit(hit))
    return Waiting.of(PlainView._make(queued).hit)  # with which parts run nothing


def is_of_a_day(queued: Any) -> bool:
    """Returns True for a queued hit, not Waiting, of a visitor whose ids are those of a day."""
    view = with_names(queued)
    if isinstance(view, Hit):
        return view.visitor.kind == "day"
    return view.visitor_kind == "day"


def rate_window_ago() -> datetime:
    """Returns the time one rate window before now. The rate of an older hit is gone from Redis."""
    return clock.now() - timedelta(seconds=rate_limit().seconds)


def _set_hits(views: Call[Outcome], hits: int) -> None:
    """Gives a call of `count_views` the hits that rate.lua returned.

    record.lua then does not read the rate. Its key may be in another partition, so another key of
    the call's own partition takes its place.
    """
    _rate, unsettled, *other_keys = views.keys
    views.keys = [unsettled, unsettled, *other_keys]
    arguments = list(views.args)
    arguments[0] = str(hits)
    views.args = arguments


def _read_mark(rate_key: str) -> Call[int]:
    """Reads whether the rate has the mark of a robot.

    The result is a number of hits beyond every limit for a robot, and 0 for anybody else.
    """

    def decode(hits: int) -> int:
        return hits + 1 if hits >= keys.ROBOT else 0

    only_read = (0, 1)  # no change, and a rate window that then is not used
    return Call("rate", [rate_key], only_read, decode, absent=0)
