"""What is new to a reader since the last visit, as data for a mail that the site writes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Model

from readtrack import buckets
from readtrack.reports.dots import MOST_IN_TOTAL, unread_counts
from readtrack.store import read_state, scripts
from readtrack.store.circuit import fail_open
from readtrack.subjects import read_state_models, subject_of


@dataclass(frozen=True, slots=True)
class Unread:
    """A category with something that is new to a reader."""

    category: Model
    items: int | None  # how many are new; None for a form of read state that does not know it
    published: datetime | None  # the last publication (aware UTC); None if Redis does not know it


def unread_digest(
    user: Any, *, models: Iterable[Any] | None = None, limit: int = 20
) -> list[Unread]:
    """Returns the categories with something that is new to the user, what was published last first.

    `models` are models or querysets of categories, by default all models with read state. Of each,
    the first 10,000 rows are looked at: of a model those with the highest keys, of a queryset those
    in its order. At most `limit` categories are returned. Nothing is marked read.

    Makes a query for each model, and at most two round trips. Returns none for an anonymous user,
    and while Redis is down. Raises TypeError if `user` is no user of this site.
    """
    if models is None:
        models = read_state_models()
    candidates: list[Any] = []
    for model_or_rows in models:
        rows: Any = model_or_rows
        if isinstance(model_or_rows, type):
            rows = model_or_rows._default_manager.order_by("-pk")  # type: ignore[attr-defined]
        candidates += rows.all()[:MOST_IN_TOTAL]
    items_by_category = unread_counts(user, candidates)
    unread_categories = [category for category in candidates if items_by_category[category]]
    times = _times_published([subject_of(category) for category in unread_categories])
    unread: list[Unread] = []
    for category in unread_categories:
        items: int | None = None
        if _has_numbers(category):
            items = items_by_category[category]
        unread.append(Unread(category, items, published=times.get(subject_of(category))))
    unread.sort(key=_time_of, reverse=True)
    return unread[:limit]


def _has_numbers(category: Model) -> bool:
    """Returns True if the form of the category's read state knows how many items are new."""
    return read_state.form_of(subject_of(category)).has_numbers


def _times_published(subjects: Sequence[str]) -> dict[str, datetime]:
    """Returns the times of the last publications, by subject; without those that are not known."""
    if not subjects:
        return {}
    answers: list[dict[str, int]] = fail_open(
        scripts.run_all, [], *read_state.last_published(subjects)
    )
    return {
        subject: buckets.time_of(time) for answer in answers for subject, time in answer.items()
    }


def _time_of(unread: Unread) -> float:
    """Returns the time by which categories are sorted; 0 if it is not known."""
    if unread.published is None:
        return 0.0
    return unread.published.timestamp()
