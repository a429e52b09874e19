"""Counting the views of one hit by one script. The rule by which a view counts is in lua/view.lua.

Hot path: each counted page runs `count_views`.
"""

from functools import partial
from typing import Any

from readtrack import parts
from readtrack.conf import cached_setting
from readtrack.hits.hit import Hit, Outcome, Reason
from readtrack.store import effects, keys, view_keys
from readtrack.store.scripts import Call
from readtrack.store.view_keys import ViewKeys
from readtrack.subjects import label_in

# A refused hit with a new cookie still opens the cookie's window, but only the first 100 of an
# address and browser in the seconds of RATE.
NEWCOMERS = 100

SHARED_KEYS = 4  # keys of a hit before the keys of each view

COUNTED = 1  # what record.lua returns for a view that counted
REASONS: dict[int, Reason] = {2: "rate", 3: "repeat", 4: "honeypot", 5: "error"}  # if it did not

# Who tells of a view: see lua/common.lua.
BY_PAGE = 0
BY_REPORT = 1
BY_REPORT_WITH_COOKIE = 2
BY_REPORT_WITHOUT_VIEW = 3


def teller_of(*, is_report: bool, has_stand_in: bool) -> int:
    """Returns who tells of a view, a number of lua/common.lua. Only a report has a stand-in."""
    if is_report:
        reporting = parts.reporting()
        if reporting and not reporting.counts_views():
            return BY_REPORT_WITHOUT_VIEW
    if has_stand_in:
        return BY_REPORT_WITH_COOKIE
    if is_report:
        return BY_REPORT
    return BY_PAGE


def count_views(hit: Hit, *, hits: int = 0) -> Call[Outcome]:
    """Returns the call that counts the hit's views, which are of one partition.

    `hits` is what rate.lua returned, which only runs with several partitions.
    """
    key_names, arguments = keys_and_arguments(hit, hits=hits)
    options = effects.options_of(hit)
    if options:
        key_names += options.keys
        arguments.append(options.json)
    absent: Any = ...
    if hits:
        # With several partitions, a silent server does not keep other partitions from counting.
        absent = Outcome(skipped=dict.fromkeys(hit.views, "error"))
    return Call("record", key_names, arguments, partial(outcome_of, hit.views), absent)


def keys_and_arguments(hit: Hit, *, hits: int = 0) -> tuple[list[str], list[str]]:
    """Returns the keys and arguments of record.lua, without those of the hit's effects."""
    visitor = hit.visitor
    prefix = keys.prefix()
    tag = ""
    if keys.is_divided():
        tag = keys.tag(hit.views[0])
    key_names: list[str] = []
    for subject in hit.views:
        starts = view_keys.at_time(hit.at, prefix, tag, label_in(subject))
        if not key_names:
            rate_key = starts.rate + visitor.rate_id
            if tag:  # then the rate is in another partition, which `unsettled` tells the script
                rate_key = starts.unsettled
            key_names = [rate_key, starts.unsettled, starts.bucket, starts.changed]
        _add_keys(key_names, hit, subject, starts)
    newcomers = 0
    if visitor.new_cookie:
        newcomers = NEWCOMERS
    numbers = _arguments(
        hits,
        newcomers,
        teller_of(is_report=hit.is_report, has_stand_in=hit.stand_in != ""),
        hit.is_seen,
        (len(key_names) - SHARED_KEYS) // len(hit.views),  # keys of each view
        len(hit.views),
    )
    return key_names, [*numbers, visitor.id, *hit.views]


def _add_keys(key_names: list[str], hit: Hit, subject: str, starts: ViewKeys) -> None:
    """Adds the keys of one view, as record.lua takes them."""
    visitor = hit.visitor
    key_names += (starts.total + subject, starts.minute_visitors, starts.hll + subject)
    if hit.is_seen:
        key_names += [start + subject for start in starts.of_seen]
    key_names.append(f"{starts.window}{visitor.id}:{subject}")
    second_id = visitor.fallback_id or hit.stand_in
    if second_id:
        key_names.append(f"{starts.window}{second_id}:{subject}")
    for start in starts.of_subject:
        key_names.append(start + subject)
    key_names += starts.of_model


@cached_setting()
def _arguments(*numbers: int) -> tuple[str, ...]:
    """Returns these numbers as texts, which hiredis packs in half the time."""
    return tuple([f"{number:d}" for number in numbers])


def outcome_of(views: tuple[str, ...], codes: list[int]) -> Outcome:
    """Returns the outcome of these views by the code that record.lua returned for each."""
    if codes == [COUNTED]:
        return Outcome(views)
    counted = []
    skipped = {}
    for subject, code in zip(views, codes, strict=True):
        if code == COUNTED:
            counted.append(subject)
        else:
            skipped[subject] = REASONS[code]
    return Outcome(tuple(counted), skipped)
