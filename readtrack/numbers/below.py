"""The objects that are furthest below what is usual at their age, among what was published of
late.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from django.db.models import Model

from readtrack import buckets
from readtrack.models import Tracked
from readtrack.numbers.reports.usual_views import Rated, question
from readtrack.numbers.scope import Scope
from readtrack.numbers.sql import peers, usual
from readtrack.published import time_published, value_of_time
from readtrack.sql import row_counts
from readtrack.subjects import (
    label_in,
    label_of,
    published_field,
    subject_column,
    subject_of_row,
)


class Publication(NamedTuple):
    """What was published: its subject, what it may be compared with, and its stored views."""

    subject: str
    rated: Rated
    views: int | None  # None where they have to be read


def lowest(
    scope: Scope, *, limit: int, most: int, known: Mapping[str, int | None] | None = None
) -> list[str]:
    """Returns the `limit` subjects that have the fewest times of their usual views, lowest first.

    They are found among the `most` newest publications of the period of each model, by the views
    that SQL stores; what has none may be a draft, and is left out. `known` has the views of the
    objects that filters name, which are found among these; it is None for a scope of whole models.
    Makes one query for each model with publications, one more for models whose rows have no counts,
    and one for what is usual.
    """
    found: list[Publication] = []
    for model in _models_of(scope, known):
        found += _published_in(scope, model, most=most)
    if not found:
        return []
    views = _views_of(found, known or {})
    asked = question(publication.rated for publication in found)
    stored = usual.stored(usual.AskedUsual(asked.names))
    at = buckets.now()
    times = {}
    for publication in found:
        total = views.get(publication.subject, 0)
        if not total:  # it may be a draft
            continue
        comparison = publication.rated.compared(total, stored, at=at)
        if comparison is not None:
            times[publication.subject] = comparison.times
    return sorted(times, key=lambda subject: (times[subject], subject))[:limit]


def _models_of(scope: Scope, known: Mapping[str, int | None] | None) -> list[type[Model]]:
    """Returns the models of the scope, without those of which no object is known."""
    if known is None:
        return [*scope.models]
    labels = {label_in(subject) for subject in known}
    return [model for model in scope.models if label_of(model) in labels]


def _published_in(scope: Scope, model: type[Model], *, most: int) -> Iterator[Publication]:
    """Yields the newest publications of the model in the period, without what is not public yet."""
    field = published_field(model)
    if field is None:
        return
    until = value_of_time(field, min(scope.span.until, buckets.now()))
    rows = scope.rows(model).filter(**{f"{field.name}__lte": until})
    if not scope.is_all_time:
        since = value_of_time(field, scope.span.since)
        rows = rows.filter(**{f"{field.name}__gte": since})
    section = peers.section_field(model)
    names = ["pk", field.name]
    names += [section.attname] if section else []
    names += ["view_count"] if issubclass(model, Tracked) else []
    for values in rows.order_by(f"-{field.name}", "-pk").values(*names)[:most]:
        published = time_published(values[field.name])
        if published is None:
            continue
        subject = subject_of_row(model, values["pk"])
        rated = Rated(
            column=subject_column(subject),
            published=published,
            label=label_of(model),
            section=peers.section_subject(section, values[section.attname]) if section else "",
        )
        yield Publication(subject, rated, values.get("view_count"))


def _views_of(
    publications: Iterable[Publication], known: Mapping[str, int | None]
) -> Mapping[str, int]:
    """Returns the stored views by subject. Makes a query only for views that are not at hand."""
    views: dict[str, int] = {}
    missing = []
    for subject, _rated, own_views in publications:
        at_hand = known.get(subject, own_views)
        if at_hand is None:
            missing.append(subject)
        else:
            views[subject] = at_hand
    if missing:
        counts = row_counts.by_subject(missing)
        views.update((subject, count.views) for subject, count in counts.items())
    return views
