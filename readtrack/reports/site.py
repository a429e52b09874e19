"""Numbers of the whole site."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from django.db.models import Sum

from readtrack import buckets
from readtrack.hits.hit import REASONS, Reason
from readtrack.models import FlushRun, Tracked
from readtrack.sql import runs
from readtrack.store.circuit import fail_open
from readtrack.store.skips import skips_by_reason
from readtrack.subjects import tracked_models


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
    rows = [row for model in tracked_models() for row in _most_viewed(model, limit)]
    return sorted(rows, key=lambda row: row.view_count, reverse=True)[:limit]


def _most_viewed(model: type[Tracked], limit: int) -> Iterable[Tracked]:
    return model._default_manager.filter(view_count__gt=0).order_by("-view_count", "-pk")[:limit]


def last_flush() -> FlushRun | None:
    """Returns the newest flush that ended, with or without an error."""
    return FlushRun.objects.filter(ended__isnull=False).first()


def is_late(run: FlushRun, *, at: datetime | None = None) -> bool:
    """Returns True if the flush ended too long ago: beat or its worker may be down."""
    return buckets.now(at) - buckets.now(run.ended) > runs.late_after()
