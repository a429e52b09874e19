"""Counting the views of many hits by one script: what lua/record_batch.lua takes.

Hot path of BUFFER: a thread makes a batch of the views that waited, and what it makes for each
view it makes beside the pages. So a view that waits is a plain tuple, and what the views of one
model and minute have in common is looked up.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from readtrack.hits.hit import Hit, Outcome, Reason
from readtrack.hits.visitors import Caller, Kind, Visitor, id_of
from readtrack.store import effects, keys
from readtrack.store.counting import (
    COUNTED,
    REASONS,
    common_arguments,
    newcomers_of,
    prefix_length,
    teller_of,
)
from readtrack.store.scripts import Call
from readtrack.subjects import label_in


class PlainView(NamedTuple):
    """A hit with a single view and nothing else to count.

    It waits as `tuple(view)`, which the garbage collector stops looking at: each named tuple that
    waits costs a page 3 µs.
    """

    visitor_id: str
    fallback_id: str
    kind: Kind  # of the visitor
    caller: Caller | None  # whose id becomes the fallback_id
    has_new_cookie: bool
    at: datetime
    subject: str
    by_script: bool
    stand_in: str

    @staticmethod
    def plain(hit: Hit) -> tuple[Any, ...] | None:
        """Returns the hit as the tuple that waits; None for a hit that has more to count."""
        if len(hit.views) != 1 or hit.dimensions:
            return None
        subject = hit.views[0]
        if effects.profile_of(label_in(subject)):
            return None
        visitor = hit.visitor
        # In the order of the fields. A named tuple would take four times as long.
        return (
            visitor.id,
            visitor.fallback_id,
            visitor.kind,
            visitor.caller,
            bool(visitor.new_cookie),
            hit.at,
            subject,
            hit.by_script,
            hit.stand_in,
        )

    @property
    def named(self) -> "PlainView":
        """The view of the visitor with both ids."""
        if self.caller is None:
            return self
        return self._replace(fallback_id=id_of(self.caller), caller=None)

    @property
    def hit(self) -> Hit:
        """The view as a hit of the visitor with both ids."""
        view = self.named
        visitor = Visitor(
            view.visitor_id,
            fallback_id=view.fallback_id,
            new_cookie="new" if view.has_new_cookie else "",
            kind=view.kind,
        )
        return Hit(
            visitor,
            view.at,
            views=(view.subject,),
            by_script=view.by_script,
            stand_in=view.stand_in,
        )


class Run(NamedTuple):
    """What hits of one model, minute and kind have in common in a batch."""

    keys: tuple[str, str, str, str]  # unsettled, bucket, model's hour, model's visitors
    arguments: tuple[str, ...]  # behind the kind and the number of hits


class Part(NamedTuple):
    """What a batch takes of one hit; `run` is None for a hit with several views or with options."""

    run: Run | None
    keys: Sequence[str]
    arguments: Sequence[str | int | bytes] = ()


def part_of_view(view: PlainView, *, prefix: str) -> Part:
    """Returns what a batch takes of a view, without partitions."""
    minute = int(view.at.timestamp()) // keys.MINUTE
    starts = keys.of_minute(minute, prefix, "", label_in(view.subject))
    rate_id = view.visitor_id
    if view.fallback_id and view.kind != "user":
        rate_id = view.fallback_id
    names = [
        starts.rate + rate_id,
        starts.total + view.subject,
        starts.hour + view.subject,
        starts.hll + view.subject,
        f"{starts.window}{view.visitor_id}:{view.subject}",
    ]
    second_id = view.fallback_id or view.stand_in
    if second_id:
        names.append(f"{starts.window}{second_id}:{view.subject}")
    run = _run(
        starts,
        0,
        prefix_length(prefix),
        newcomers_of(has_new_cookie=view.has_new_cookie),
        teller_of(by_script=view.by_script, has_stand_in=bool(view.stand_in)),
        len(names),
    )
    return Part(run, names)


def part_of_call(call: Call[Outcome]) -> Part:
    """Returns what a batch takes of a call of `count_views`."""
    common = len(common_arguments())
    own: Sequence[Any] = call.args[common:]
    hits, length, newcomers, teller, _, _, visitor, *subjects = own
    if len(subjects) > 1:  # several views, or one with options
        return Part(None, call.keys, own)
    [subject] = subjects
    rate, unsettled, bucket, total, hour, model_hour, minute_visitors, hll, *windows = call.keys
    own_keys = [rate, total, hour, hll, *windows]
    total_start = total.removesuffix(subject)
    window_start = windows[0].removesuffix(f"{visitor}:{subject}")
    run = Run(
        (unsettled, bucket, model_hour, minute_visitors),
        (
            hits,
            length,
            newcomers,
            teller,
            str(len(own_keys)),
            str(_bytes(total_start) + 1),
            str(_bytes(window_start) + 1),
        ),
    )
    return Part(run, own_keys)


@lru_cache(maxsize=1024)
def _run(starts: keys.ViewKeys, *numbers: int) -> Run:
    places = (_bytes(starts.total) + 1, _bytes(starts.window) + 1)
    return Run(
        (starts.unsettled, starts.bucket, starts.model_hour, starts.minute_visitors),
        tuple(map(str, (*numbers, *places))),
    )


def _bytes(text: str) -> int:
    return len(text.encode())


def count_batch(parts: Iterable[Part]) -> Call[list[Sequence[Reason]] | None]:
    """Counts hits of one partition by one script.

    The result has, for each hit, the reasons why views of it do not count; it is None if the
    server of the partition is silent.
    """
    names: list[str] = []
    arguments: list[Any] = [*common_arguments()]
    last_keys: Sequence[str] = ()
    for run, run_parts in groupby(parts, attrgetter("run")):
        number_at = len(arguments) + 1  # the number of hits is known once they were looked at
        if run is None:
            arguments += ("other", 0)
        elif run.keys == last_keys:
            arguments += ("same", 0, *run.arguments)
        else:
            arguments += ("alike", 0, *run.arguments)
            names += run.keys
            last_keys = run.keys
        for part in run_parts:
            arguments[number_at] += 1
            names += part.keys
            if run is None:
                arguments += (len(part.keys), len(part.arguments), *part.arguments)
    return Call("record_batch", names, arguments, _reasons, absent=None)


def _reasons(answers: Sequence[Any]) -> list[Sequence[Reason]]:
    """Returns for each hit of an answer the reasons why views of it did not count."""
    reasons: list[Sequence[Reason]] = []
    for answer in answers:
        codes = [answer] if isinstance(answer, int) else answer
        reasons.append([REASONS[code] for code in codes if code != COUNTED])
    return reasons
