"""The counts that SQL stores, in a Tracked model's own rows or in SubjectCount: reading them."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from typing import Any, NamedTuple

from django.db import connections
from django.db.models import CharField, F, IntegerField, Model, QuerySet
from django.db.models.functions import Cast

from readtrack.models import SubjectCount, Tracked
from readtrack.models.tracked import COUNTS
from readtrack.sql import databases
from readtrack.store import scripts
from readtrack.subjects import label_of, rows_by_model, subject_column, subject_of_row

FEW = 10_000  # rows of a filter whose counts are looked up one by one


class RowCounts(NamedTuple):
    """The counts of one row."""

    views: int
    visitors: int


def held(model: type[Model], rows: "QuerySet[Any] | None" = None) -> "QuerySet[Any]":
    """Returns the rows that hold the model's counts.

    Of a Tracked model these are the given rows, or those that its manager shows.
    """
    if not issubclass(model, Tracked):
        return SubjectCount.objects.filter(subject__startswith=f"{label_of(model)}:")
    return model._default_manager.all() if rows is None else rows


def table_of(model: type[Model]) -> type[Model]:
    """Returns the model whose table holds the counts."""
    return model if issubclass(model, Tracked) else SubjectCount


def keys_of(model: type[Model], pks: Iterable[Any]) -> list[Any]:
    """Returns the primary keys, in the table that holds the counts, of rows of the model."""
    if issubclass(model, Tracked):
        return [*pks]
    return [subject_column(subject_of_row(model, pk)) for pk in pks]


def stored(model: type[Model], pks: Sequence[Any]) -> dict[Any, RowCounts]:
    """Returns the counts of rows that exist, by primary key. The model may be SubjectCount."""
    has_counts = issubclass(model, (Tracked, SubjectCount))
    counts: dict[Any, RowCounts] = {}
    for rows in databases.with_keys(model, pks):
        counts.update(_own_counts(rows) if has_counts else _separate_counts(model, rows))
    # MySQL also returns keys that differ in case.
    return {pk: counts[pk] for pk in pks if pk in counts}


def missing(subjects: Iterable[str]) -> set[str]:
    """Returns those of the subjects that have no row. A subject of no counted model is not among
    them, because an app may come back.
    """
    without_row: set[str] = set()
    for model, rows in rows_by_model(subjects).items():
        existing = stored(model, list(rows))
        without_row.update(subject for pk, subject in rows.items() if pk not in existing)
    return without_row


def _own_counts(rows: "QuerySet[Any]") -> dict[Any, RowCounts]:
    """Returns the counts in the rows themselves."""
    return {
        pk: RowCounts(views, visitors) for pk, views, visitors in rows.values_list("pk", *COUNTS)
    }


def _separate_counts(model: type[Model], rows: "QuerySet[Any]") -> dict[Any, RowCounts]:
    """Returns the counts that SubjectCount has of these rows, zero for those without."""
    pks = [*rows.values_list("pk", flat=True)]
    keys = keys_of(model, pks)
    counts = stored(SubjectCount, keys)
    zero = RowCounts(0, 0)
    return {pk: counts.get(key, zero) for pk, key in zip(pks, keys, strict=True)}


def by_subject(subjects: Iterable[str]) -> dict[str, RowCounts]:
    """Returns the stored counts of subjects, with one query for each Tracked model and one for all
    other models.
    """
    counts: dict[str, RowCounts] = {}
    by_column: dict[str, str] = {}  # subjects of which SubjectCount has the counts
    for model, rows in rows_by_model(subjects).items():
        if issubclass(model, Tracked):
            for pk, row in stored(model, list(rows)).items():
                counts[rows[pk]] = row
        else:
            by_column.update((subject_column(subject), subject) for subject in rows.values())
    for column, row in stored(SubjectCount, list(by_column)).items():
        counts[by_column[column]] = row
    return counts


def highest(model: type[Model], limit: int) -> list[tuple[str, RowCounts]]:
    """Returns the subjects with the highest stored counts of views."""
    best = _most_viewed_first(held(model)).values_list("pk", *COUNTS)[:limit]
    has_own_rows = issubclass(model, Tracked)
    subjects = []
    for key, views, visitors in best:
        # A row of SubjectCount has the subject as its key.
        subject = subject_column(subject_of_row(model, key)) if has_own_rows else key
        subjects.append((subject, RowCounts(views, visitors)))
    return subjects


def _most_viewed_first(rows: "QuerySet[Any]") -> "QuerySet[Any]":
    """Returns the viewed ones of these rows."""
    return rows.filter(view_count__gt=0).order_by("-view_count", "-pk")


def stored_views(querysets: "Sequence[QuerySet[Any]]") -> dict[type[Model], dict[str, int]]:
    """Returns the stored views of rows of Tracked models by subject, highest first and FEW at most.

    It sends one query to each database.
    """
    views_by_model: dict[type[Model], dict[str, int]] = {
        queryset.model: {} for queryset in querysets
    }
    for alias in {queryset.db for queryset in querysets}:
        in_database = [queryset for queryset in querysets if queryset.db == alias]
        statement, parameters = _highest_of_each(in_database, alias)
        with connections[alias].cursor() as cursor:
            cursor.execute(statement, parameters)
            for number, pk, views in cursor.fetchall():
                model = in_database[number].model
                views_by_model[model][_subject_of_text(model, pk)] = views
    return views_by_model


def _highest_of_each(querysets: "Sequence[QuerySet[Any]]", alias: str) -> tuple[str, list[Any]]:
    """Returns the statement for the most viewed rows of each queryset, and its parameters.

    Its rows have the number of the queryset, the primary key as text, and the views.
    """
    parts: list[str] = []
    parameters: list[Any] = []
    for number, queryset in enumerate(querysets):
        rows = queryset.annotate(tracked_pk=Cast("pk", CharField()), tracked_views=F("view_count"))
        best = rows.order_by("-view_count", "-pk").values_list("tracked_pk", "tracked_views")[:FEW]
        statement, given = best.query.get_compiler(using=alias, elide_empty=False).as_sql()
        # Django has no union of parts that are cut, because SQLite has none without a subquery.
        parts.append(f"SELECT {number}, tracked_pk, tracked_views FROM ({statement}) AS part")  # noqa: S608
        parameters += given
    return " UNION ALL ".join(parts), parameters


def _subject_of_text(model: type[Model], pk: str) -> str:
    """Returns the subject of the row whose primary key has this text in SQL."""
    if isinstance(model._meta.pk, IntegerField):  # the quick way for thousands of rows
        return f"{label_of(model)}:{pk}"
    return subject_of_row(model, model._meta.pk.to_python(pk))


def most_viewed(queryset: "QuerySet[Any]", limit: int) -> list[tuple[Any, int]]:
    """Returns those of the rows that have the highest stored counts, and their views, most viewed
    first.
    """
    if issubclass(queryset.model, Tracked):
        return [(row, row.view_count) for row in _most_viewed_first(queryset)[:limit]]
    if queryset.query.where:
        pks = [*queryset.order_by().values_list("pk", flat=True)[: FEW + 1]]
        if len(pks) <= FEW:
            return _most_viewed_of(queryset, pks, limit=limit)
    best: list[tuple[Any, int]] = []
    # In portions, because the queryset may leave most of them out.
    for views in _portions_of_counts(queryset.model):
        rows = _rows_of_subjects(queryset, views)
        best += [(rows[subject], count) for subject, count in views.items() if subject in rows]
        if len(best) >= limit:
            break
    return best[:limit]


def _rows_of_subjects(queryset: "QuerySet[Any]", subjects: Iterable[str]) -> dict[str, Any]:
    """Returns those rows of the queryset that have one of the subjects, by subject."""
    pks = {pk: subject for rows in rows_by_model(subjects).values() for pk, subject in rows.items()}
    return {pks[row.pk]: row for row in queryset.filter(pk__in=list(pks))}


def _most_viewed_of(
    queryset: "QuerySet[Any]", pks: Sequence[Any], *, limit: int
) -> list[tuple[Any, int]]:
    """Returns the most viewed rows of the queryset, each with its views.

    `pks` are the primary keys of all rows of the queryset.
    """
    model = queryset.model
    pk_of_subject = {subject_of_row(model, pk): pk for pk in pks}
    views = {
        pk_of_subject[subject]: counts.views
        for subject, counts in by_subject(pk_of_subject).items()
        if counts.views
    }
    best = nlargest(limit, views, key=lambda pk: (views[pk], subject_of_row(model, pk)))
    rows = queryset.order_by().in_bulk(best)
    return [(rows[pk], views[pk]) for pk in best if pk in rows]


def _portions_of_counts(model: type[Model]) -> Iterator[dict[str, int]]:
    """Yields the stored views of the model by subject, highest first, as many as one call takes."""
    counts = _most_viewed_first(held(model)).values_list("pk", "view_count")
    start = 0
    while portion := dict(counts[start : start + scripts.SLICE]):
        yield portion
        start += scripts.SLICE
