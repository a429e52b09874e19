"""What is read for display. Nothing here writes.

`views` and `unread` are for pages: with Redis gone they fall back to what SQL stores, and to no dots.
"""

from collections import ChainMap, Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

from asgiref.sync import sync_to_async
from django.db.models import Model, Sum

from readtrack import buckets, readers, subjects
from readtrack.hits import REASONS, Reason
from readtrack.models import FlushRun, Tracked
from readtrack.readers import Reader
from readtrack.store import clock, counters, reads, scripts
from readtrack.store import skips as skips_store
from readtrack.store import trending as trending_store
from readtrack.store.connection import fail_open
from readtrack.store.counters import Total

AnyModel = TypeVar("AnyModel", bound=Model)
AnyTracked = TypeVar("AnyTracked", bound=Tracked)


class Glance(NamedTuple):
    """What Redis holds for one page: totals by token, and how much is new to the reader by token."""

    totals: dict[str, Total]
    unread: dict[str, int]


class Trend(NamedTuple):
    """A subject that is trending, and its views in the last hour."""

    obj: Model
    views: int


class Point(NamedTuple):
    """Views in the hour that starts then, aware UTC."""

    start: datetime
    views: int


def views(objs: Iterable[AnyTracked]) -> dict[AnyTracked, int]:
    """The live count of each object, in one round trip and without a query."""
    tokens = {obj: subjects.token(obj) for obj in objs}
    totals = glance(counts=list(tokens.values())).totals
    return {obj: live(totals.get(token), stored=obj.view_count) for obj, token in tokens.items()}


def unread(user: Any, objs: Iterable[AnyModel]) -> set[AnyModel]:
    """Those of the objects that the user has not read, in one round trip. None for anonymous users."""
    return {obj for obj, items in unread_counts(user, objs).items() if items}


def unread_counts(user: Any, objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """How much is new to the user in each object, in one round trip; with a bitmap 1 stands for something.

    Nothing for anonymous users. Raises readers.ReaderError for a user id out of bounds.
    """
    tokens = {obj: subjects.token(obj) for obj in objs}
    if not user.is_authenticated:
        return dict.fromkeys(tokens, 0)
    found = glance(dots=list(tokens.values()), reader=readers.reader_of(user)).unread
    return {obj: found.get(token, 0) for obj, token in tokens.items()}


def reader_counts(objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """How many have read each object since there was last something new. Raises redis.RedisError."""
    tokens = {obj: subjects.token(obj) for obj in objs}
    found = reads.count_readers(list(tokens.values()))
    return {obj: found[token] for obj, token in tokens.items()}


def as_of() -> int:
    """Redis's time (µs): taken before a query, it lets `mark_read` leave unread what came later.

    Raises redis.RedisError.
    """
    return clock.at(perf_counter())


aunread = sync_to_async(unread)
aunread_counts = sync_to_async(unread_counts)
areader_counts = sync_to_async(reader_counts)


def glance(*, counts: Sequence[str] = (), dots: Sequence[str] = (), reader: Reader | None = None) -> Glance:
    """Totals and read state of many tokens in one round trip; empty with Redis gone."""
    return fail_open(_glance, Glance({}, {}), counts, dots, reader)


def _glance(counts: Sequence[str], dots: Sequence[str], reader: Reader | None) -> Glance:
    totals = [counters.totals(some) for some in scripts.sliced(counts)]
    read = [reads.unread(reader, some) for some in scripts.sliced(dots)] if reader is not None else []
    answers = scripts.run_all(*totals, *read)
    return Glance(dict(ChainMap(*answers[: len(totals)])), dict(ChainMap(*answers[len(totals) :])))


def live(total: Total | None, *, stored: int) -> int:
    """The number to show, from Redis's total and SQL's snapshot: never less than either."""
    if total is None:
        return stored
    return max(total.views, stored) if total.is_based else total.views + stored


def trending(limit: int = 10, *, at: datetime | None = None) -> list[Trend]:
    """The most viewed subjects of the last hour, most viewed first. Deleted ones are left out."""
    found = fail_open(trending_store.top, [], limit, at=buckets.now(at))
    objs = _objects([token for token, _ in found])
    return [Trend(objs[token], views) for token, views in found if token in objs]


def _objects(tokens: Sequence[str]) -> dict[str, Model]:
    """The rows that the tokens name, one query for each model."""
    wanted: dict[type[Model], list[Any]] = {}
    for token in tokens:
        if parsed := subjects.parse(token):
            wanted.setdefault(parsed[0], []).append(parsed[1])
    rows = (row for model, pks in wanted.items() for row in model._default_manager.filter(pk__in=pks))
    return {subjects.token(row): row for row in rows}


def hourly(hours: int = 24, *, at: datetime | None = None) -> list[Point]:
    """Views of the whole site in each of the last hours (48 at most), without gaps, oldest first."""
    starts = buckets.hours(hours, until=buckets.now(at))
    counts = fail_open(counters.hours, [0] * hours, starts)
    return [Point(*pair) for pair in zip(starts, counts, strict=True)]


def skips(hours: int = 24, *, at: datetime | None = None) -> dict[Reason, int]:
    """How many hits of the last hours (48 at most) did not count, by every reason there is."""
    starts = buckets.hours(hours, until=buckets.now(at))
    totals: Counter[Reason] = Counter()
    for (_, reason), count in fail_open(skips_store.hours, Counter(), starts).items():
        totals[reason] += count
    return {reason: totals[reason] for reason in REASONS}


def stored_views() -> int:
    """All views that SQL holds, of all Tracked models."""
    models = subjects.tracked_models()
    return sum(model._default_manager.aggregate(views=Sum("view_count", default=0))["views"] for model in models)


def top(limit: int = 10) -> list[Tracked]:
    """The most viewed rows by SQL's count, of all Tracked models, most viewed first."""
    rows = [row for model in subjects.tracked_models() for row in _most_viewed(model, limit)]
    return sorted(rows, key=lambda row: row.view_count, reverse=True)[:limit]


def _most_viewed(model: type[Tracked], limit: int) -> Iterable[Tracked]:
    return model._default_manager.filter(view_count__gt=0).order_by("-view_count", "-pk")[:limit]


def last_flush() -> FlushRun | None:
    """The newest flush that ended, well or not."""
    return FlushRun.objects.filter(ended__isnull=False).first()
