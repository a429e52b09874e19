"""The stored views of the objects that have most of them."""

from collections.abc import Sequence
from typing import Any

from django.db import connections
from django.db.models import CharField, F, IntegerField, Model, QuerySet
from django.db.models.functions import Cast

from readtrack.models import Tracked
from readtrack.sql import row_counts
from readtrack.sql.row_counts import most_viewed_first, rows_with_counts
from readtrack.subjects import label_of, subject_column, subject_of_row


def highest(model: type[Model], limit: int) -> list[tuple[str, int]]:
    """Returns the subjects with the most stored views, and these views, most viewed first.

    The subjects are as columns have them, which cut long subjects.
    """
    most_viewed_rows = most_viewed_first(rows_with_counts(model))[:limit]
    views_by_subject = []
    for pk, views in most_viewed_rows.values_list("pk", "view_count"):
        column = pk  # in SubjectCount the primary key is the subject
        if issubclass(model, Tracked):
            column = subject_column(subject_of_row(model, pk))
        views_by_subject.append((column, views))
    return views_by_subject


def by_model(querysets: "Sequence[QuerySet[Any]]") -> dict[type[Model], dict[str, int]]:
    """Returns the stored views of the rows of each queryset, by model and then by subject.

    The querysets are of different Tracked models. Each model has `row_counts.FEW` rows at most,
    most viewed first. Makes one query in each database.
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
    """Returns the SQL statement for the most viewed rows of each queryset, and its parameters.

    Its rows have the index of the queryset, the primary key as text, and the views.
    """
    selects: list[str] = []
    parameters: list[Any] = []
    for number, queryset in enumerate(querysets):
        rows = queryset.annotate(tracked_pk=Cast("pk", CharField()), tracked_views=F("view_count"))
        columns = rows.order_by("-view_count", "-pk").values_list("tracked_pk", "tracked_views")
        compiler = columns[: row_counts.FEW].query.get_compiler(using=alias, elide_empty=False)
        statement, parameters_of_queryset = compiler.as_sql()
        # By hand, because Django's union() takes no slices on SQLite, which needs the subquery.
        columns_of_row = f"{number}, tracked_pk, tracked_views"
        selects.append(f"SELECT {columns_of_row} FROM ({statement}) AS part")  # noqa: S608
        parameters += parameters_of_queryset
    return " UNION ALL ".join(selects), parameters


def _subject_of_text(model: type[Model], pk: str) -> str:
    """Returns the subject of the row whose primary key SQL writes as this text."""
    if isinstance(model._meta.pk, IntegerField):  # a short cut, because there are thousands of rows
        return f"{label_of(model)}:{pk}"
    return subject_of_row(model, model._meta.pk.to_python(pk))
