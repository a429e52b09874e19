"""The objects that are furthest below what is usual at their age, among what was published of
late.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from django.db.models import Model

from readtrack import buckets
from readtrack.conf import says_true
from readtrack.models import Tracked
from readtrack.numbers.published import published_field, time_published, value_of_time
from readtrack.numbers.reports.usual_views import Rated, question
from readtrack.numbers.scope import Scope
from readtrack.numbers.sql import peers, usual
from readtrack.sql import row_counts
from readtrack.subjects import (
    is_news_by_models_setting,
    label_in,
    label_of,
    option_of,
    subject_column,
    subject_of_row,
    subjects_by_model,
)

MOST_ASKED = 100  # rows of a model without a view that are asked whether they are drafts


class Publication(NamedTuple):
    """What was published: its subject, what it may be compared with, and its stored views."""

    subject: str
    rated: Rated
    views: int | None  # None where they have to be read


def lowest(
    scope: Scope, *, limit: int, most: int, known: Mapping[str, int | None] | None = None
) -> list[str] | None:
    """Returns the `limit` subjects that have the fewest times of their usual views, lowest first;
    None if nothing was published in the period.

    They are found among the `most` newest publications of the period of each model, by the views
    that SQL stores. Rows that may be drafts are left out, see `_maybe_drafts`. `known` has the
    views of the objects that filters name, which are found among these; it is None for a scope of
    whole models. Makes one query for each model with publications, one more for models whose rows
    have no counts, one for what is usual, and one for each model that tells which rows are drafts
    and has rows without a view.
    """
    found: list[Publication] = []
    for model in _models_of(scope, known):
        found += _published_in(scope, model, most=most)
    if not found:
        return None
    views = _views_of(found, known or {})
    asked = question(publication.rated for publication in found)
    stored = usual.stored(usual.AskedUsual(asked.names))
    at = buckets.now()
    ranks = {}
    for subject, rated, _own_views in found:
        comparison = rated.compared(views.get(subject, 0), stored, at=at)
        if comparison is not None:
            # Of those without a view the one that lacks most is the lowest.
            ranks[subject] = (comparison.times, -comparison.usual, subject)
    never_viewed = [subject for subject in ranks if not views.get(subject)]
    for subject in _maybe_drafts(scope, never_viewed):
        del ranks[subject]
    return sorted(ranks, key=lambda subject: ranks[subject])[:limit]


def _maybe_drafts(scope: Scope, never_viewed: Iterable[str]) -> Collection[str]:
    """Returns those of the subjects that are drafts, or may be some.

    The `is_news` of their models tells. Of the newest MOST_ASKED of a model the rows are asked;
    older ones are taken for drafts, and so is each row of a model without an `is_news` of its own.
    """
    drafts: set[str] = set()
    for model, subjects_by_pk in subjects_by_model(never_viewed).items():
        drafts.update(subjects_by_pk.values())
        if not _tells_news(model):
            continue
        newest = [*subjects_by_pk][:MOST_ASKED]  # the newest publications came first
        for row in scope.rows(model).filter(pk__in=newest):
            if _is_news_when_new(row):
                drafts.discard(subject_of_row(model, row.pk))
    return drafts


def _tells_news(model: type[Model]) -> bool:
    """Returns True if the model, or MODELS, has a function that says which of its rows are news."""
    if issubclass(model, Tracked):
        return model.is_news is not Tracked.is_news
    return bool(option_of(model, "is_news"))


def _is_news_when_new(row: Model) -> bool:
    """Returns True if the row would be news if it was saved for the first time: it is no draft."""
    if not isinstance(row, Tracked):
        return is_news_by_models_setting(row)
    return says_true(
        f"{row._meta.label}.is_news",
        lambda: bool(row.is_news(created=True, changed=frozenset())),
        otherwise="the row is taken for a draft",
    )


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
