"""What a reader opened lately: a sorted set of subjects for each reader, by when they were opened.

A repeat within the window is an opening, too, so this is no matter of counted views. The commands
run in the round trip that records the hit.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from time import perf_counter, time
from typing import Any, NamedTuple

from readtrack import buckets
from readtrack.hits.hit import Hit
from readtrack.hits.visitors import Visitor, user_id
from readtrack.recent import keys
from readtrack.recent.options import recent_options
from readtrack.store import clock, scripts
from readtrack.store.circuit import fail_open
from readtrack.store.keys import DAY
from readtrack.store.scripts import Call
from readtrack.subjects import label_in


class Opening(NamedTuple):
    """An object that a reader opened."""

    subject: str
    at: datetime  # the last time, aware UTC


def calls_of_hit(hit: Hit) -> Sequence[Call[Any]]:
    """Returns the calls that put what the hit views at the front of the visitor's list."""
    visitor_id = id_of(hit.visitor)
    options = recent_options()
    subjects = [subject for subject in hit.views if label_in(subject) in options.labels]
    if not visitor_id or not subjects:
        return ()
    name = keys.recent(visitor_id)
    at = _opened_at(hit)
    entries: list[str | int] = []
    for subject in subjects:
        entries += (at, subject)
    expired = at - options.days * DAY * 1_000_000
    return (
        # GT, because hits that waited in a buffer may come late.
        Call("ZADD", [name], ("GT", *entries), absent=0),
        Call("ZREMRANGEBYRANK", [name], (0, -options.kept - 1), absent=0),
        Call("ZREMRANGEBYSCORE", [name], ("-inf", expired), absent=0),
        Call("EXPIRE", [name], (options.days * DAY,), absent=0),
    )


def id_of(visitor: Visitor) -> str:
    """Returns the id by which the visitor has a list; "" for a visitor who has none.

    A visitor who opted out has none, nor has one who is known by a hash. A new cookie has to come
    back first, or else each page for a program without cookies would leave a list.
    """
    if visitor.opted_out:
        return ""
    if visitor.kind == "user":
        return visitor.id
    is_known = visitor.kind == "cookie" and not visitor.new_cookie
    return visitor.id if is_known and recent_options().visitors else ""


def _opened_at(hit: Hit) -> int:
    """Returns when the page was opened, by Redis's clock (µs).

    The time of a hit is a whole second. A reader may open two pages in one, so the present time is
    taken, less the time since the page began.
    """
    now = time() + clock.skew
    if hit.began is not None:
        now -= perf_counter() - hit.began
    second = hit.at.timestamp()
    is_present = abs(now - second) < 1.5
    return int((now if is_present else second) * 1_000_000)


def openings(visitor_id: str) -> list[Opening]:
    """Returns what the visitor with that id opened, the last one first, in one round trip.

    Raises redis.RedisError.
    """
    options = recent_options()
    if not visitor_id or not options.labels:
        return []
    name = keys.recent(visitor_id)
    entries = scripts.run(
        Call("ZRANGE", [name], (0, options.kept - 1, "REV", "WITHSCORES"), scripts.pairs)
    )
    since = buckets.now() - timedelta(days=options.days)
    found = [Opening(subject, buckets.time_of(at)) for subject, at in entries]
    return [
        opening
        for opening in found
        if opening.at >= since and label_in(opening.subject) in options.labels
    ]


def forget(pk: Any) -> None:
    """Removes the list of a user whose row is gone. If Redis fails, it expires by itself."""
    call: Call[int] = Call("UNLINK", [keys.recent(user_id(pk))], absent=0)
    fail_open(scripts.run, 0, call)
