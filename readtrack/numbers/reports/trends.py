"""Trending objects: the most viewed ones of the last hour, day, week, month or quarter."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Model

from readtrack import subjects
from readtrack.numbers.reports.rankings import most_viewed
from readtrack.numbers.sql.popular import DAYS
from readtrack.reports import trends
from readtrack.reports.trends import Trend


def trending(
    limit: int = 10,
    *,
    hours: int | None = None,
    model: type[Model] | None = None,
    at: datetime | None = None,
) -> list[Trend]:
    """Returns the most viewed objects of the last hour, of one model or of all models, most viewed
    first. Leaves out deleted objects.

    The list may be 30 seconds old, because a task computes it. With `hours` (24, 168, 720 or 2160)
    it has the objects that `most_viewed` returns for the same days. Raises ValueError for any other
    number of hours.
    """
    if hours is None:
        return trends.trending(limit, model=model, at=at)
    models = [model] if model else subjects.counted_models()
    return _trending_of_days(models, limit, hours=hours)


def _trending_of_days(models: Sequence[type[Model]], limit: int, *, hours: int) -> list[Trend]:
    """Returns the most viewed objects of these models in the last hours, which are whole days."""
    possible_hours = [days * 24 for days in DAYS]
    if hours not in possible_hours:
        listed = ", ".join(map(str, possible_hours))
        raise ValueError(f"Trending is kept for {listed} hours, not {hours}.")
    trends: list[Trend] = []
    for model in models:
        objs: Any = most_viewed(model, limit, days=hours // 24)
        trends += [Trend(obj, obj.in_period) for obj in objs]
    return sorted(trends, key=lambda trend: trend.views, reverse=True)[:limit]
