"""Counting the views of many hits by one script: what lua/record_batch.lua takes.

Hot path: while other threads make pages, one thread makes a batch of the views that
waited. So a view that waits is a plain tuple, and the keys that all views of one model and minute
share are computed once.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from readtrack.hits.hit import Hit, Outcome, Reason
from readtrack.hits.visitors import Caller, Kind, Visitor, id_of
from readtrack.store import effects, fragments, view_keys
from readtrack.store.counting import COUNTED, NEWCOMERS, REASONS, teller_of
from readtrack.store.scripts import Call
from readtrack.store.view_keys import ViewKeys
from readtrack.subjects import label_in


class PlainView(NamedTuple):
    """A hit with a single view and nothing else to count.

    It waits as a plain tuple of these fields, which the garbage collector stops looking at. A named
    tuple that waits would cost a page 3 µs.
    """

    visitor_id: str
    fallback_id: str
    visitor_kind: Kind
    caller: Caller | None  # its id becomes the fallback_id
    has_new_cookie: bool
    at: datetime
    subject: str
    is_report: bool
    is_seen: bool
    stand_in: str

    @staticmethod
    def fields_of(hit: Hit) -> tuple[Any, ...] | None:
        """Returns the fields of the hit as a plain tuple; None for a hit that has more to count."""
        if len(hit.views) != 1:
            return None
        subject = hit.views[0]
        if effects.effects_of_view(hit, subject):
            return None
        visitor = hit.visitor
        # In the order of the fields above. A named tuple would take four times as long.
        return (
            visitor.id,
            visitor.fallback_id,
            visitor.kind,
            visitor.caller,
            bool(visitor.new_cookie),
            hit.at,
            subject,
            hit.is_report,
            hit.is_seen,
            hit.stand_in,
        )

    @property
    def named(self) -> "PlainView":
        """The view with the fallback_id computed, where only the caller was known."""
        if self.caller is None:
            return self
        return self._replace(fallback_id=id_of(self.caller), caller=None)

    @property
    def hit(self) -> Hit:
        """The view as a hit, with the fallback_id computed."""
        view = self.named
        visitor = Visitor(
            view.visitor_id,
            fallback_id=view.fallback_id,
            new_cookie="new" if view.has_new_cookie else "",
            kind=view.visitor_kind,
        )
        return Hit(
            visitor,
            view.at,
            views=(view.subject,),
            is_report=view.is_report,
            is_seen=view.is_seen,
            stand_in=view.stand_in,
        )


class Group(NamedTuple):
    """The keys and arguments that a group of hits in a batch has in common.

    The hits have one view each, of one model and minute, and equal flags.
    """

    # unsettled, bucket, changed, the model's visitors, and what the parts need with the model
    keys: tuple[str, ...]
    arguments: tuple[str, ...]  # those of record_batch.lua after the number of hits


class Entry(NamedTuple):
    """The keys and arguments of one hit in a batch."""

    group: Group | None  # None for a hit with several views or with options
    keys: Sequence[str]  # without those of the group
    arguments: Sequence[str | int | bytes] = ()  # none for a hit of a group


def entry_of_view(view: PlainView, *, prefix: str) -> Entry:
    """Returns the entry of a view in a batch. For sites without partitions."""
    subject = view.subject
    starts = view_keys.at_time(view.at, prefix, "", label_in(subject))
    rate_id = view.visitor_id
    if view.fallback_id and view.visitor_kind != "user":
        rate_id = view.fallback_id
    key_names = [starts.rate + rate_id, starts.total + subject, starts.hll + subject]
    if view.is_seen:
        key_names += [start + subject for start in starts.of_seen]
    key_names.append(f"{starts.window}{view.visitor_id}:{subject}")
    second_id = view.fallback_id or view.stand_in
    if second_id:
        key_names.append(f"{starts.window}{second_id}:{subject}")
    for start in starts.of_subject:
        key_names.append(start + subject)
    group = _group_of_view(
        starts,
        0,  # hits that rate.lua counted, which runs only with partitions
        NEWCOMERS if view.has_new_cookie else 0,
        teller_of(is_report=view.is_report, has_stand_in=bool(view.stand_in)),
        int(view.is_seen),
        len(key_names),
    )
    return Entry(group, key_names)


def entry_of_call(call: Call[Outcome]) -> Entry:
    """Returns the entry in a batch of the hit that a call of `count_views` would count."""
    arguments: Sequence[Any] = call.args
    counted_hits, newcomers, teller, is_seen, _, _, visitor, *subjects = arguments
    if len(subjects) > 1:  # several views, or options behind the subject
        return Entry(None, call.keys, arguments)
    [subject] = subjects
    rate, unsettled, bucket, changed, total, minute_visitors, *others = call.keys
    part_keys = fragments.part_keys()
    keys_if_seen = len(part_keys.of_seen) if is_seen == "1" else 0
    own_window = others[1 + keys_if_seen]
    first_of_model = len(others) - len(part_keys.of_model)
    key_names = [rate, total, *others[:first_of_model]]
    group = _group(
        (unsettled, bucket, changed, minute_visitors, *others[first_of_model:]),
        (counted_hits, newcomers, teller, is_seen, len(key_names)),
        total_start=total.removesuffix(subject),
        window_start=own_window.removesuffix(f"{visitor}:{subject}"),
    )
    return Entry(group, key_names)


@lru_cache(maxsize=1024)
def _group_of_view(starts: ViewKeys, *numbers: int) -> Group:
    """Returns the group of all views with these keys and numbers: the same object each time."""
    return _group(
        (starts.unsettled, starts.bucket, starts.changed, starts.minute_visitors, *starts.of_model),
        numbers,
        total_start=starts.total,
        window_start=starts.window,
    )


def _group(
    group_keys: tuple[str, ...],
    numbers: Iterable[str | int],
    *,
    total_start: str,
    window_start: str,
) -> Group:
    """Returns a group. The script cuts subject and visitor out of keys that have these starts."""
    subject_position = _bytes(total_start) + 1  # in Lua, the first byte is 1
    visitor_position = _bytes(window_start) + 1
    return Group(group_keys, tuple(map(str, (*numbers, subject_position, visitor_position))))


def _bytes(text: str) -> int:
    """Returns the length of the text in Redis (bytes)."""
    return len(text.encode())


def count_batch(entries: Iterable[Entry]) -> Call[list[Sequence[Reason]] | None]:
    """Counts hits of one partition by one script.

    The result has, for each hit, the reasons why its views do not count. It is None if the server
    of the partition is silent.
    """
    key_names: list[str] = []
    arguments: list[Any] = []
    keys_of_last_group: Sequence[str] = ()
    for group, entries_of_group in groupby(entries, attrgetter("group")):
        # The index of the number of hits, which is known only after the loop over them.
        count_index = len(arguments) + 1
        if group is None:
            arguments += ("whole hits", 0)
        elif group.keys == keys_of_last_group:
            arguments += ("keys as before", 0, *group.arguments)
        else:
            arguments += ("new keys", 0, *group.arguments)
            key_names += group.keys
            keys_of_last_group = group.keys
        for entry in entries_of_group:
            arguments[count_index] += 1
            key_names += entry.keys
            if group is None:
                arguments += (len(entry.keys), len(entry.arguments), *entry.arguments)
    return Call("readtrack.buffer/record_batch", key_names, arguments, _reasons, absent=None)


def _reasons(answers: Sequence[Any]) -> list[Sequence[Reason]]:
    """Returns the reasons why views of each hit did not count.

    The script answers with one code for a hit of a group, and with a list of codes for another hit.
    """
    reasons: list[Sequence[Reason]] = []
    for answer in answers:
        codes = [answer] if isinstance(answer, int) else answer
        reasons.append([REASONS[code] for code in codes if code != COUNTED])
    return reasons
