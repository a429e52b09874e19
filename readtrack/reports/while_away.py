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
    candidates: list[Any] = []
    for source in read_state_models() if models is None else models:
        rows: Any = source
        if isinstance(source, type):
            rows = source._default_manager.order_by("-pk")  # type: ignore[attr-defined]
        candidates += rows.all()[:MOST_IN_TOTAL]
    items = unread_counts(user, candidates)
    unread = [category for category in candidates if items[category]]
    times = _times_published([subject_of(category) for category in unread])
    categories = [
        Unread(
            category,
            items=items[category] if _has_numbers(category) else None,
            published=times.get(subject_of(category)),
        )
        for category in unread
    ]
    categories.sort(key=_time_of, reverse=True)
    return categories[:limit]


def _has_numbers(category: Model) -> bool:
    """Returns True if the form of the category's read state knows how many items are new."""
    return read_state.strategy_of(subject_of(category)).has_numbers


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
    return unread.published.timestamp() if unread.published else 0.0
