"""What is read for display. Nothing here writes.

`views` and `unread` are for pages: with Redis gone they fall back to what SQL stores, and to no dots.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from asgiref.sync import sync_to_async
from django.db.models import Model, Sum

from readtrack import beats, buckets, readers, subjects
from readtrack.audiences import UniquesError as UniquesError
from readtrack.audiences import has_seen as has_seen
from readtrack.audiences import visitors as visitors
from readtrack.audiences import visitors_together as visitors_together
from readtrack.breakdowns import Stage as Stage
from readtrack.breakdowns import breakdown as breakdown
from readtrack.breakdowns import funnel as funnel
from readtrack.glances import Glance as Glance
from readtrack.glances import glance as glance
from readtrack.glances import live as live
from readtrack.glances import views as views
from readtrack.hits import REASONS, Reason
from readtrack.models import FlushRun, Tracked
from readtrack.runs import last_good as last_good
from readtrack.store import clock, reads
from readtrack.store import skips as skips_store
from readtrack.store import trending as trending_store
from readtrack.store.connection import fail_open
from readtrack.store.trending import MINUTES, Window
from readtrack.timelines import Overview as Overview
from readtrack.timelines import Point as Point
from readtrack.timelines import ReaderPoint as ReaderPoint
from readtrack.timelines import hourly as hourly
from readtrack.timelines import overview as overview
from readtrack.timelines import reader_series as reader_series
from readtrack.timelines import series as series

AnyModel = TypeVar("AnyModel", bound=Model)


class Trend(NamedTuple):
    """A subject that is trending, and its views in the last hour."""

    obj: Model
    views: int


def unread(user: Any, objs: Iterable[AnyModel]) -> set[AnyModel]:
    """Those of the objects that the user has not read, in one round trip. None for anonymous users."""
    return {obj for obj, items in unread_counts(user, objs).items() if items}


def unread_counts(user: Any, objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """How much is new to the user in each object, in one round trip; with a bitmap 1 stands for something.

    Nothing for anonymous users. Raises readers.ReaderError for a user id out of bounds.
    """
    tokens = subjects.tokens(objs)
    if user is None or not user.is_authenticated:
        return dict.fromkeys(tokens, 0)
    found = glance(dots=list(tokens.values()), reader=readers.reader_of(user)).unread
    return {obj: found.get(token, 0) for obj, token in tokens.items()}


def reader_counts(objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """How many have read each object since there was last something new. Raises redis.RedisError."""
    tokens = subjects.tokens(objs)
    found = reads.count_readers(list(tokens.values()))
    return {obj: found[token] for obj, token in tokens.items()}


def as_of() -> int:
    """Redis's time (µs): taken before a query, it lets `mark_read` leave unread what came later.

    Raises redis.RedisError.
    """
    return clock.recent()


aunread = sync_to_async(unread)
aunread_counts = sync_to_async(unread_counts)
areader_counts = sync_to_async(reader_counts)
areader_series = sync_to_async(reader_series)


def trending(
    limit: int = 10,
    *,
    minutes: int = MINUTES,
    half_life: float = 0,
    model: type[Model] | None = None,
    at: datetime | None = None,
) -> list[Trend]:
    """The most viewed subjects of the last hour, or of fewer minutes, most viewed first. Deleted ones are left out.

    With a half-life (minutes) a view is worth half after that time, and the views are rounded. What the task
    computed last is read, so this is some 30 seconds old. Raises ValueError for a window that is not kept.
    """
    if not 1 <= minutes <= MINUTES or half_life < 0:
        raise ValueError(f"Trending is kept for 1 to {MINUTES} minutes, and a half-life is positive.")
    window, label = Window(minutes, half_life), subjects.label_of(model) if model else ""
    found = fail_open(trending_store.top, [], limit, at=buckets.now(at), window=window, label=label)
    objs = _objects([token for token, _ in found])
    return [Trend(objs[token], round(views)) for token, views in found if token in objs]


def _objects(tokens: Sequence[str]) -> dict[str, Model]:
    """The rows that the tokens name, one query for each model."""
    wanted: dict[type[Model], list[Any]] = {}
    for token in tokens:
        if parsed := subjects.parse(token):
            wanted.setdefault(parsed[0], []).append(parsed[1])
    rows = (row for model, pks in wanted.items() for row in model._default_manager.filter(pk__in=pks))
    return {subjects.token(row): row for row in rows}


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


def is_late(run: FlushRun | None, *, at: datetime | None = None) -> bool:
    """Whether the last flush is older than three of beat's intervals, so that beat or its worker may be down."""
    return run is None or run.ended is None or buckets.now(at) - run.ended > 3 * beats.interval()
