"""The objects that a reader opened lately."""

from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import Model

from readtrack import subjects
from readtrack.hits import readers, visitors
from readtrack.recent.openings import Opening, openings
from readtrack.store.circuit import fail_open


def recently_viewed(
    user: Any,
    limit: int = 10,
    *,
    model: type[Model] | None = None,
    besides: Iterable[Model] = (),
) -> list[Any]:
    """Returns the objects that the user opened last, of one model or of all models in RECENT, the
    last one first. Each has the time as `opened_at`.

    Leaves out the objects `besides`, deleted objects, and those that the model's default manager
    leaves out. Takes one round trip, and a query for each model. Returns none for an anonymous
    user, and while Redis is down. Raises TypeError if `user` is no user of this site.
    """
    pk = readers.id_of(user)
    if pk is None:
        return []
    found = fail_open(openings, [], visitors.user_id(pk))
    left_out = {subjects.subject_of(obj) for obj in besides}
    return objects_of(found, limit, model=model, left_out=left_out)


def objects_of(
    found: Iterable[Opening],
    limit: int,
    *,
    model: type[Model] | None = None,
    left_out: Collection[str] = (),
) -> list[Any]:
    """Returns the objects that were opened, without the subjects that are left out."""
    label = subjects.label_of(model) if model else ""
    wanted = {}
    for opening in found:
        is_of_model = not label or subjects.label_in(opening.subject) == label
        if is_of_model and opening.subject not in left_out:
            wanted[opening.subject] = opening.at
    objs: dict[str, Any] = {}
    for model_of_rows, pks in subjects.subjects_by_model(wanted).items():
        for obj in model_of_rows._default_manager.filter(pk__in=pks):
            subject = subjects.subject_of(obj)
            obj.opened_at = wanted[subject]  # type: ignore[attr-defined]
            objs[subject] = obj
    return [objs[subject] for subject in wanted if subject in objs][:limit]
