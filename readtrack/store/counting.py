"""Counting the views of one hit by one script. The rule by which a view counts is in lua/view.lua.

Hot path: each counted page runs `count_views`. So the arguments that depend only on settings are
cached, as the texts that go to Redis.
"""

from functools import partial
from typing import Any, NamedTuple

from readtrack import parts
from readtrack.conf import cached_setting, conf
from readtrack.hits.hit import Hit, Outcome, Reason
from readtrack.store import effects, keys, view_keys
from readtrack.store.scripts import Call
from readtrack.store.view_keys import ViewKeys
from readtrack.subjects import label_in

NO_LIMIT = keys.ROBOT - 1  # hits
# A refused hit with a new cookie still opens the cookie's window, but only the first 100 of an
# address and browser in the seconds of RATE.
NEWCOMERS = 100

SHARED_KEYS = 3  # keys of a hit before the keys of each view

COUNTED = 1  # what record.lua returns for a view that counted
REASONS: dict[int, Reason] = {2: "rate", 3: "repeat", 4: "honeypot", 5: "error"}  # if it did not

# Who tells of a view: see lua/common.lua.
BY_PAGE = 0
BY_REPORT = 1
BY_REPORT_WITH_COOKIE = 2
BY_REPORT_WITHOUT_VIEW = 3


def newcomers_of(*, has_new_cookie: bool) -> int:
    """Returns how many refused hits of a rate window may open the window of a new cookie."""
    return NEWCOMERS if has_new_cookie else 0


def teller_of(*, is_report: bool, has_stand_in: bool) -> int:
    """Returns who tells of a view, as a number of lua/common.lua."""
    reporting = parts.reporting() if is_report else None
    if reporting and not reporting.counts_views():
        return BY_REPORT_WITHOUT_VIEW
    if has_stand_in:
        return BY_REPORT_WITH_COOKIE
    return BY_REPORT if is_report else BY_PAGE


class RateLimit(NamedTuple):
    """How many hits of one visitor count, and in how many seconds from the first of them."""

    hits: int
    seconds: int


@cached_setting()
def rate_limit() -> RateLimit:
    """Returns the setting RATE. In the setting, 0 hits mean no limit, and 0 seconds mean one."""
    hits, seconds = conf.RATE
    return RateLimit(hits or NO_LIMIT, seconds or 1)


@cached_setting("INSTALLED_APPS")
def common_arguments() -> tuple[str, ...]:
    """Returns the arguments that are the same for all hits, as in lua/common.lua."""
    numbers = (
        conf.WINDOW or 1,  # without a window, a hit that is sent again would count twice
        rate_limit().hits,
        keys.ROBOT,
        keys.trending_bucket.ttl,
        keys.minute_visitors.ttl,
        rate_limit().seconds,
        view_weight(),
    )
    return tuple(map(str, numbers))


def view_weight() -> int:
    """Returns what a view adds to what is trending: 0 where rankings go by views that were seen."""
    return 0 if parts.trend_by_seen() else 1


def count_views(hit: Hit, *, hits: int = 0) -> Call[Outcome]:
    """Counts the hit's views, which are of one partition.

    `hits` is what rate.lua returned, which only runs with several partitions.
    """
    visitor = hit.visitor
    prefix = keys.prefix()
    tag = keys.tag(hit.views[0]) if conf.PARTITIONS > 1 else ""
    minute = int(hit.at.timestamp()) // keys.MINUTE
    starts_of_views = [
        view_keys.of_minute(minute, prefix, tag, label_in(subject)) for subject in hit.views
    ]
    first = starts_of_views[0]
    # With several partitions the rate is in another one. `unsettled` in its place tells the script.
    rate = first.unsettled if tag else first.rate + visitor.rate_id
    key_names = [rate, first.unsettled, first.bucket]
    for subject, starts in zip(hit.views, starts_of_views, strict=True):
        key_names += _keys_of_view(hit, subject, starts)
    numbers = _arguments(
        hits,
        newcomers_of(has_new_cookie=bool(visitor.new_cookie)),
        teller_of(is_report=hit.is_report, has_stand_in=bool(hit.stand_in)),
        int(hit.is_seen),
        (len(key_names) - SHARED_KEYS) // len(hit.views),
        len(hit.views),
    )
    arguments = [*numbers, visitor.id, *hit.views]
    effects_by_view = effects.effects_of(hit)
    if effects_by_view:
        options = effects.options_of(effects_by_view, first_key=len(key_names) + 1)
        key_names += options.keys
        arguments.append(options.json)
    absent: Any = ...
    if hits:
        # With several partitions, a silent server does not keep other partitions from counting.
        absent = Outcome(skipped=dict.fromkeys(hit.views, "error"))
    return Call("record", key_names, arguments, partial(_outcome, hit), absent)


def _keys_of_view(hit: Hit, subject: str, starts: ViewKeys) -> list[str]:
    """Returns the keys of one view, as record.lua takes them."""
    key_names = [starts.total + subject, starts.minute_visitors, starts.hll + subject]
    if hit.is_seen:
        key_names += [start + subject for start in starts.of_seen]
    key_names.append(f"{starts.window}{hit.visitor.id}:{subject}")
    second_id = hit.visitor.fallback_id or hit.stand_in
    if second_id:
        key_names.append(f"{starts.window}{second_id}:{subject}")
    for start in starts.of_subject:
        key_names.append(start + subject)
    key_names += starts.of_model
    return key_names


@cached_setting()
def _arguments(*numbers: int) -> tuple[str, ...]:
    """Returns the common arguments and these numbers, as texts.

    hiredis packs texts in half the time that it needs for numbers.
    """
    return (*common_arguments(), *map(str, numbers))


def set_hits(views: Call[Outcome], hits: int) -> None:
    """Gives a call of `count_views` the hits that rate.lua returned.

    record.lua then does not read the rate. Its key may be in another partition, so another key of
    the call's own partition takes its place.
    """
    _rate, unsettled, *other_keys = views.keys
    views.keys = [unsettled, unsettled, *other_keys]
    arguments = list(views.args)
    place_of_hits = len(common_arguments())  # right behind the common arguments
    arguments[place_of_hits] = str(hits)
    views.args = arguments


def _outcome(hit: Hit, codes: list[int]) -> Outcome:
    """Returns the outcome by the code that record.lua returned for each view."""
    if codes == [COUNTED]:
        return Outcome(hit.views)
    counted = []
    skipped = {}
    for subject, code in zip(hit.views, codes, strict=True):
        if code == COUNTED:
            counted.append(subject)
        else:
            skipped[subject] = REASONS[code]
    return Outcome(tuple(counted), skipped)
