"""Numbers of the whole site."""

from collections import Counter
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from django.db.models import Model, Sum

from readtrack import buckets
from readtrack.hits.hit import REASONS, Reason
from readtrack.models import FlushRun
from readtrack.reports.popular import most_viewed
from readtrack.sql import row_counts, runs
from readtrack.sql.popular import DAYS
from readtrack.store.circuit import fail_open
from readtrack.store.skips import skips_by_reason
from readtrack.store.trending import MINUTES, top_subjects
from readtrack.subjects import counted_models, label_of, rows_by_model, subject_of


class Trend(NamedTuple):
    """A trending object, and its views in these hours or minutes."""

    obj: Model
    views: int


def trending(
    limit: int = 10,
    *,
    minutes: int = MINUTES,
    hours: int | None = None,
    model: type[Model] | None = None,
    at: datetime | None = None,
) -> list[Trend]:
    """Returns the most viewed objects of the last hour or of fewer minutes, most viewed first; none that are deleted.

    The list is some 30 seconds old, because a task computes it. With `hours` (24, 168, 720 or 2160) they are those of
    `most_viewed` in the last days, of one model or of all. Raises ValueError for others, or unless `minutes` is 1 to
    60.
    """
    if hours is not None:
        if hours not in [days * 24 for days in DAYS]:
            raise ValueError(f"Trending is kept for {', '.join(str(days * 24) for days in DAYS)} hours, not {hours}.")
        models = [model] if model else counted_models()
        lists: list[Any] = [most_viewed(one, limit, days=hours // 24) for one in models]
        trends = (Trend(obj, obj.in_period) for objs in lists for obj in objs)
        return sorted(trends, key=attrgetter("views"), reverse=True)[:limit]
    if not 1 <= minutes <= MINUTES:
        raise ValueError(f"Trending is kept for 1 to {MINUTES} minutes.")
    label = label_of(model) if model else ""
    found = fail_open(top_subjects, [], limit, at=buckets.now(at), minutes=minutes, label=label)
    pks_by_model = rows_by_model(subject for subject, _ in found)
    rows = [row for model, pks in pks_by_model.items() for row in model._default_manager.filter(pk__in=pks)]
    objs = {subject_of(row): row for row in rows}
    return [Trend(objs[subject], views) for subject, views in found if subject in objs]


def skips(hours: int = 24, *, at: datetime | None = None) -> dict[Reason, int]:
    """Returns the number of hits that did not count in the last hours (48 at most), by reason."""
    found = fail_open(skips_by_reason, Counter(), hours, at=buckets.now(at))
    return {reason: found[reason] for reason in REASONS}


def stored_views() -> int:
    """Returns the sum of all views that SQL stores, of all counted models."""
    all_held = map(row_counts.held, counted_models())
    return sum(held.rows.aggregate(sum=Sum(held.views, default=0))["sum"] for held in all_held)


def top(limit: int = 10) -> list[tuple[Any, int]]:
    """Returns the rows with the highest counts in SQL, of all counted models, and their views, most viewed first."""
    rows: list[tuple[Any, int]] = []
    for model in counted_models():
        rows += row_counts.most_viewed(model._default_manager.all(), limit)
    return sorted(rows, key=lambda row: row[1], reverse=True)[:limit]


def last_flush() -> FlushRun | None:
    """Returns the newest flush that ended, with or without an error."""
    return FlushRun.objects.filter(ended__isnull=False).first()


def is_late(run: FlushRun, *, at: datetime | None = None) -> bool:
    """Returns True if the flush ended too long ago: beat or its worker may be down."""
    return buckets.now(at) - buckets.now(run.ended) > runs.late_after()
