"""Reading the counts that SQL stores: in a Tracked model's own rows, or in SubjectCount for all
other models.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from typing import Any, NamedTuple

from django.db.models import Model, Q, QuerySet

from readtrack.models import SubjectCount, Tracked
from readtrack.models.rows import past_caches
from readtrack.models.tracked import COUNTS
from readtrack.sql import databases
from readtrack.store import scripts
from readtrack.subjects import label_of, subject_column, subject_of_row, subjects_by_model

FEW = 10_000  # rows of a queryset up to which the counts of all its rows are read


class RowCounts(NamedTuple):
    """The counts of one row."""

    views: int
    visitors: int


def rows_with_counts(model: type[Model], rows: "QuerySet[Any] | None" = None) -> "QuerySet[Any]":
    """Returns the rows that hold the model's counts, which have `view_count` and `visitor_count`.

    For a Tracked model they are the given rows, by default those of its manager. For any other
    model they are rows of SubjectCount, whose primary key is the subject.
    """
    if not issubclass(model, Tracked):
        return SubjectCount.objects.filter(subject__startswith=f"{label_of(model)}:")
    if rows is None:
        rows = model._default_manager.all()
    return past_caches(rows)


def table_of(model: type[Model]) -> type[Model]:
    """Returns the model whose table holds the counts."""
    if issubclass(model, Tracked):
        return model
    return SubjectCount


def keys_of(model: type[Model], pks: Iterable[Any]) -> list[Any]:
    """Returns the primary keys by which `table_of(model)` has the counts of these rows.

    `pks` are the primary keys of the rows of the model. The order is the same.
    """
    if issubclass(model, Tracked):
        return [*pks]
    return [subject_column(subject_of_row(model, pk)) for pk in pks]


def stored(model: type[Model], pks: Sequence[Any]) -> dict[Any, RowCounts]:
    """Returns the stored counts of those rows that exist, by primary key.

    The model may be SubjectCount itself.
    """
    has_own_counts = issubclass(model, (Tracked, SubjectCount))
    counts: dict[Any, RowCounts] = {}
    for rows in databases.with_keys(model, pks):
        if has_own_counts:
            counts.update(_own_counts(rows))
        else:
            counts.update(_separate_counts(model, rows))
    # MySQL also returns keys that differ in case.
    return {pk: counts[pk] for pk in pks if pk in counts}


def _own_counts(rows: "QuerySet[Any]") -> dict[Any, RowCounts]:
    """Returns the counts in the rows themselves."""
    return {
        pk: RowCounts(views, visitors) for pk, views, visitors in rows.values_list("pk", *COUNTS)
    }


def _separate_counts(model: type[Model], rows: "QuerySet[Any]") -> dict[Any, RowCounts]:
    """Returns the counts that SubjectCount has for these rows, by their primary keys.

    A row without an entry in SubjectCount has zero counts.
    """
    pks = [*rows.values_list("pk", flat=True)]
    keys = keys_of(model, pks)
    counts = stored(SubjectCount, keys)
    zero = RowCounts(0, 0)
    return {pk: counts.get(key, zero) for pk, key in zip(pks, keys, strict=True)}


def subjects(model: type[Model]) -> list[str]:
    """Returns the subjects of the model that have counts in SQL."""
    every_row = databases.rows(model)  # also the rows that the model's own manager hides
    rows = rows_with_counts(model, every_row)
    counted_rows = rows.filter(Q(view_count__gt=0) | Q(visitor_count__gt=0))
    pks = counted_rows.values_list("pk", flat=True)
    if table_of(model) is model:
        return [subject_of_row(model, pk) for pk in pks]
    return list(pks)  # a row of SubjectCount has the subject as its primary key


def by_subject(subjects: Iterable[str]) -> dict[str, RowCounts]:
    """Returns the stored counts of the subjects, by subject.

    Makes one query for each Tracked model, and one for all other models together. A subject without
    stored counts is left out.
    """
    counts: dict[str, RowCounts] = {}
    subject_by_column: dict[str, str] = {}  # subjects whose counts are in SubjectCount
    for model, subjects_by_pk in subjects_by_model(subjects).items():
        if issubclass(model, Tracked):
            for pk, row in stored(model, list(subjects_by_pk)).items():
                counts[subjects_by_pk[pk]] = row
        else:
            for subject in subjects_by_pk.values():
                subject_by_column[subject_column(subject)] = subject
    for column, row in stored(SubjectCount, list(subject_by_column)).items():
        counts[subject_by_column[column]] = row
    return counts


def most_viewed_first(rows: "QuerySet[Any]") -> "QuerySet[Any]":
    """Returns those of the rows that have views, most viewed first."""
    return rows.filter(view_count__gt=0).order_by("-view_count", "-pk")


def most_viewed(queryset: "QuerySet[Any]", limit: int) -> list[tuple[Any, RowCounts]]:
    """Returns the rows of the queryset with the most stored views, each with its counts, most
    viewed first.

    SubjectCount has no foreign key to the rows of other models, so these are not joined in SQL: if
    a filter leaves few rows, all their counts are read. Otherwise the counts are read, highest
    first, until enough of them have a row in the queryset.
    """
    if issubclass(queryset.model, Tracked):
        best_rows = most_viewed_first(queryset)[:limit]
        return [(row, RowCounts(row.view_count, row.visitor_count)) for row in best_rows]
    has_filter = bool(queryset.query.where)
    if has_filter:
        pks = [*queryset.order_by().values_list("pk", flat=True)[: FEW + 1]]
        if len(pks) <= FEW:
            return _most_viewed_of(queryset, pks, limit=limit)
    rows_with_counts_of_model: list[tuple[Any, RowCounts]] = []
    for counts_by_subject in _portions_of_counts(queryset.model):
        row_by_subject = _rows_of_subjects(queryset, counts_by_subject)
        for subject, counts in counts_by_subject.items():
            if subject in row_by_subject:
                rows_with_counts_of_model.append((row_by_subject[subject], counts))
        if len(rows_with_counts_of_model) >= limit:
            break
    return rows_with_counts_of_model[:limit]


def _rows_of_subjects(queryset: "QuerySet[Any]", subjects: Iterable[str]) -> dict[str, Any]:
    """Returns the rows of the queryset that have these subjects, by subject."""
    subject_by_pk: dict[Any, str] = {}
    for subjects_by_pk in subjects_by_model(subjects).values():
        subject_by_pk.update(subjects_by_pk)
    return {subject_by_pk[row.pk]: row for row in queryset.filter(pk__in=list(subject_by_pk))}


def _most_viewed_of(
    queryset: "QuerySet[Any]", pks: Sequence[Any], *, limit: int
) -> list[tuple[Any, RowCounts]]:
    """Returns the most viewed rows of the queryset, each with its counts.

    `pks` are the primary keys of all rows of the queryset.
    """
    model = queryset.model
    pk_by_subject = {subject_of_row(model, pk): pk for pk in pks}
    counts_by_pk: dict[Any, RowCounts] = {}
    for subject, counts in by_subject(pk_by_subject).items():
        if counts.views:
            counts_by_pk[pk_by_subject[subject]] = counts

    def rank(pk: Any) -> tuple[int, str]:
        return counts_by_pk[pk].views, subject_of_row(model, pk)

    best_pks = nlargest(limit, counts_by_pk, key=rank)
    rows = queryset.order_by().in_bulk(best_pks)
    return [(rows[pk], counts_by_pk[pk]) for pk in best_pks if pk in rows]


def _portions_of_counts(model: type[Model]) -> Iterator[dict[str, RowCounts]]:
    """Yields the stored counts of a model without own counts, by subject, most viewed first.

    Each portion has as many subjects as one call takes.
    """
    most_viewed_rows = most_viewed_first(rows_with_counts(model)).values_list("pk", *COUNTS)
    start = 0
    while portion := most_viewed_rows[start : start + scripts.SLICE]:
        yield {subject: RowCounts(views, visitors) for subject, views, visitors in portion}
        start += scripts.SLICE
