"""Trending: views by subject in the last minutes, in lists that a task keeps up to date.

One list, of the last hour and of all models, slides from minute to minute (trend.lua). Lists of fewer
minutes are computed in one go, and only while somebody asks for them.
"""

import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from readtrack import buckets
from readtrack.store import keys, scripts
from readtrack.store.connection import connect
from readtrack.store.scripts import Call

MINUTES = 60  # the longest window: a minute's bucket is kept little longer
GAP = 8  # minutes without a refresh that the list can slide over; longer ones have it computed anew
LIFE = 600  # seconds that a list outlives the task that refreshes it
COPY_LIFE = 4800  # seconds: the window, the gap, and some more
LOCK_LIFE = 30  # seconds after which a refresher is taken for dead
ASKED = 600  # seconds that a list is kept up after it was asked for
MOST_LISTS = 16  # lists beside the hour's
LOOKED_AT = 10_000  # subjects that are looked through for those of one model


Result = TypeVar("Result")


def top_subjects(limit: int, *, at: datetime, minutes: int = MINUTES, label: str = "") -> list[tuple[str, int]]:
    """Subjects and views, most viewed first, of one model (`blog.post`) or of all.

    Where there is no list yet, one caller computes it, and all others go on with an empty one.
    """
    if minutes != MINUTES:
        _ask(minutes, at)
    call = _head(minutes, limit, label)

    def begin() -> list[tuple[str, int]] | None:
        found = scripts.run(call)
        if found is not None:  # somebody finished it meanwhile
            return found
        _compute(minutes, at, patient=False)
        return scripts.run(call)

    found = scripts.run(call)
    return (found if found is not None else _alone(begin)) or []


def refresh_lists(*, at: datetime) -> int:
    """Brings all lists up to date, unless another refresher is at it; gives how many subjects the hour's list has."""

    def work() -> int:
        for minutes in _asked(at):
            _compute(minutes, at, patient=True)
        return _compute(MINUTES, at, patient=True)

    return _alone(work) or 0


def _head(minutes: int, limit: int, label: str) -> Call[list[tuple[str, int]] | None]:
    def decode(found: list[bytes] | None) -> list[tuple[str, int]] | None:
        if found is None:
            return None
        return [(member.decode(), int(score)) for member, score in zip(found[::2], found[1::2], strict=True)]

    start = f"{label}:" if label else ""
    return Call("top", [keys.trending_top(_name(minutes))], (max(0, limit), start, LOOKED_AT), decode)


def _name(minutes: int) -> str:
    """The list's name in keys; "" for the hour's."""
    return "" if minutes == MINUTES else str(minutes)


def _compute(minutes: int, at: datetime, *, patient: bool) -> int:
    slots = [buckets.minute_bucket(slot) for slot in buckets.minute_starts(MINUTES + GAP, until=at)]
    names = [keys.trending_bucket(slot) for slot in slots[-minutes:]]
    if minutes == MINUTES:
        number = int(at.timestamp()) // 60
        names += [keys.trending_copy(slot) for slot in slots]
        call = Call("trend", [keys.trending_top(_name(minutes)), *names], (number, MINUTES, GAP, LIFE, COPY_LIFE), int)
    else:
        call = Call("sum_minutes", [keys.trending_top(_name(minutes)), *names], (LIFE,), int)
    return scripts.run(call, patient=patient)


def _alone(work: Callable[[], Result]) -> Result | None:
    """What the work gives; None while somebody else is at it. One who dies holds nobody up for long."""
    word = secrets.token_hex(8)
    if not connect().set(keys.trending_lock(), word, nx=True, ex=LOCK_LIFE):
        return None
    try:
        return work()
    finally:
        scripts.run(Call("release", [keys.trending_lock()], (word,), int))


def _ask(minutes: int, at: datetime) -> None:
    """Has the task keep up this list, too; the least recently asked for makes room."""
    pipeline: Any = connect().pipeline(transaction=False)
    pipeline.zadd(keys.trending_asked(), {str(minutes): at.timestamp()})
    pipeline.zremrangebyrank(keys.trending_asked(), 0, -MOST_LISTS - 1)
    pipeline.expire(keys.trending_asked(), ASKED)
    pipeline.execute()


def _asked(at: datetime) -> list[int]:
    client: Any = connect(patient=True)
    found: list[bytes] = client.zrange(keys.trending_asked(), f"({at.timestamp() - ASKED}", "+inf", byscore=True)
    return [int(minutes) for minutes in found]
