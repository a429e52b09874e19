"""Trending objects."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Model

from readtrack import buckets
from readtrack.store.circuit import fail_open
from readtrack.store.trending import MINUTES, top_subjects
from readtrack.subjects import label_of, parse_subject, subject_of


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
    objs = _objects([subject for subject, _ in found])
    return [Trend(objs[subject], views) for subject, views in found if subject in objs]


def _objects(subjects: Sequence[str]) -> dict[str, Model]:
    """Returns the rows by subject, with one query for each model."""
    wanted: dict[type[Model], list[Any]] = {}
    for subject in subjects:
        if parsed := parse_subject(subject):
            wanted.setdefault(parsed[0], []).append(parsed[1])
    rows = (row for model, pks in wanted.items() for row in model._default_manager.filter(pk__in=pks))
    return {subject_of(row): row for row in rows}
