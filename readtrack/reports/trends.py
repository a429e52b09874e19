"""Trending objects: the most viewed ones of the last hour."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import Model

from readtrack import buckets, subjects
from readtrack.store.circuit import fail_open
from readtrack.store.trending import top_subjects


class Trend(NamedTuple):
    """A trending object, and its views in the hours that were asked for."""

    obj: Model
    views: int


def trending(
    limit: int = 10,
    *,
    model: type[Model] | None = None,
    at: datetime | None = None,
) -> list[Trend]:
    """Returns the most viewed objects of the last hour, of one model or of all models, most viewed
    first. Leaves out deleted objects.

    The list may be 30 seconds old, because a task computes it.
    """
    label = ""
    if model is not None:
        label = subjects.label_of(model)
    top = fail_open(top_subjects, [], limit, at=buckets.now(at), label=label)
    obj_by_subject = _objects([subject for subject, _views in top])
    trends = []
    for subject, views in top:
        if subject in obj_by_subject:
            trends.append(Trend(obj_by_subject[subject], views))
    return trends


def _objects(subject_names: Sequence[str]) -> dict[str, Model]:
    """Returns the objects of the subjects, if they exist, by subject. Makes one query for each
    model.
    """
    objs: dict[str, Model] = {}
    for model, pks in subjects.subjects_by_model(subject_names).items():
        for row in model._default_manager.filter(pk__in=pks):
            objs[subjects.subject_of(row)] = row
    return objs
