"""Numbers of the whole site."""

from collections import Counter
from datetime import datetime
from typing import NamedTuple

from django.db.models import Model, Sum

from readtrack import buckets
from readtrack.hits.hit import REASONS, Reason
from readtrack.models import FlushRun, Tracked
from readtrack.sql import runs
from readtrack.store.circuit import fail_open
from readtrack.store.skips import skips_by_reason
from readtrack.store.trending import MINUTES, top_subjects
from readtrack.subjects import label_of, rows_by_model, subject_of, tracked_models


class Trend(NamedTuple):
    """A trending object, and its views in the last hour or minutes."""

    obj: Model
    views: int


def trending(
    limit: int = 10, *, minutes: int = MINUTES, model: type[Model] | None = None, at: datetime | None = None
) -> list[Trend]:
    """Returns the most viewed objects of the last hour or of fewer minutes, most viewed first; none that are deleted.

    The list is some 30 seconds old, because a task computes it. Raises ValueError unless `minutes` is 1 to 60.
    """
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
    """Returns the sum of all views that SQL stores, of all Tracked models."""
    models = tracked_models()
    return sum(model._default_manager.aggregate(views=Sum("view_count", default=0))["views"] for model in models)


def top(limit: int = 10) -> list[Tracked]:
    """Returns the rows with the highest stored counts, of all Tracked models, most viewed first."""
    rows: list[Tracked] = []
    for model in tracked_models():
        rows += model._default_manager.filter(view_count__gt=0).order_by("-view_count", "-pk")[:limit]
    return sorted(rows, key=lambda row: row.view_count, reverse=True)[:limit]


def last_flush() -> FlushRun | None:
    """Returns the newest flush that ended, with or without an error."""
    return FlushRun.objects.filter(ended__isnull=False).first()


def is_late(run: FlushRun, *, at: datetime | None = None) -> bool:
    """Returns True if the flush ended too long ago: beat or its worker may be down."""
    return buckets.now(at) - buckets.now(run.ended) > runs.late_after()
