"""Trending: views by subject in the last minutes, in lists that a task keeps up to date.

One list, of the last hour and of all models, slides from minute to minute (trend.lua). Lists of other windows or
with a half-life are computed in one go, and only while somebody asks for them.
"""

import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

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


class Window(NamedTuple):
    """What a list is of: how many minutes, and after how many a view is worth half (0: never)."""

    minutes: int = MINUTES
    half_life: float = 0

    @property
    def name(self) -> str:
        """The list's name in keys; "" for the hour's."""
        return "" if self == Window() else f"{self.minutes}:{self.half_life:g}"

    @classmethod
    def of(cls, name: str) -> "Window":
        """The window that a list's name says."""
        minutes, _, half_life = name.partition(":")
        return cls(int(minutes), float(half_life))


def top_subjects(limit: int, *, at: datetime, window: Window = Window(), label: str = "") -> list[tuple[str, float]]:  # noqa: B008 - immutable
    """Tokens and views, most viewed first, of one model (`blog.post`) or of all.

    Where there is no list yet, one caller computes it, and all others go on with an empty one.
    """
    if window != Window():
        _ask(window, at)
    call = _head(window, limit, label)

    def begin() -> list[tuple[str, float]] | None:
        found = scripts.run(call)
        if found is not None:  # somebody finished it meanwhile
            return found
        _compute(window, at, patient=False)
        return scripts.run(call)

    found = scripts.run(call)
    return (found if found is not None else _alone(begin)) or []


def refresh_lists(*, at: datetime) -> int:
    """Brings all lists up to date, unless another refresher is at it; gives how many subjects the hour's list has."""

    def work() -> int:
        for window in _asked(at):
            _compute(window, at, patient=True)
        return _compute(Window(), at, patient=True)

    return _alone(work) or 0


def _head(window: Window, limit: int, label: str) -> Call[list[tuple[str, float]] | None]:
    def decode(found: list[bytes] | None) -> list[tuple[str, float]] | None:
        if found is None:
            return None
        return [(member.decode(), float(score)) for member, score in zip(found[::2], found[1::2], strict=True)]

    start = f"{label}:" if label else ""
    return Call("top", [keys.trending_top(window.name)], (max(0, limit), start, LOOKED_AT), decode)


def _compute(window: Window, at: datetime, *, patient: bool) -> int:
    slots = [buckets.minute(slot) for slot in buckets.minutes(MINUTES + GAP, until=at)]
    names = [keys.trending_bucket(slot) for slot in slots[-window.minutes :]]
    if window == Window():
        number = int(at.timestamp()) // 60
        names += [keys.trending_copy(slot) for slot in slots]
        call = Call("trend", [keys.trending_top(window.name), *names], (number, MINUTES, GAP, LIFE, COPY_LIFE), int)
    else:
        ages = range(window.minutes - 1, -1, -1)
        weights = [repr(0.5 ** (age / window.half_life)) if window.half_life else "1" for age in ages]
        call = Call("weigh", [keys.trending_top(window.name), *names], [LIFE, *weights], int)
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


def _ask(window: Window, at: datetime) -> None:
    """Has the task keep up this list, too; the least recently asked for makes room."""
    pipeline: Any = connect().pipeline(transaction=False)
    pipeline.zadd(keys.trending_asked(), {window.name: at.timestamp()})
    pipeline.zremrangebyrank(keys.trending_asked(), 0, -MOST_LISTS - 1)
    pipeline.expire(keys.trending_asked(), ASKED)
    pipeline.execute()


def _asked(at: datetime) -> list[Window]:
    client: Any = connect(patient=True)
    found: list[bytes] = client.zrange(keys.trending_asked(), f"({at.timestamp() - ASKED}", "+inf", byscore=True)
    return [Window.of(name.decode()) for name in found]
