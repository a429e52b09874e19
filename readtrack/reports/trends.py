"""The subjects that are trending."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Model

from readtrack import buckets, subjects
from readtrack.store.circuit import fail_open
from readtrack.store.trending import MINUTES, top_subjects


class Trend(NamedTuple):
    """A subject that is trending, and its views in the last hour."""

    obj: Model
    views: int


def trending(
    limit: int = 10, *, minutes: int = MINUTES, model: type[Model] | None = None, at: datetime | None = None
) -> list[Trend]:
    """The most viewed subjects of the last hour, or of fewer minutes, most viewed first. Deleted ones are left out.

    Reads what the task computed last, so it is some 30 seconds old. Raises ValueError unless `minutes` is 1 to 60.
    """
    if not 1 <= minutes <= MINUTES:
        raise ValueError(f"Trending is kept for 1 to {MINUTES} minutes.")
    label = subjects.label_of(model) if model else ""
    found = fail_open(top_subjects, [], limit, at=buckets.now(at), minutes=minutes, label=label)
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
