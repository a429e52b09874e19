"""Lists of the most viewed subjects of the last days.

A full flush renews the list of so many days once it is as many hours old. So each list costs the
same: in an hour, to read the rows of history of one day.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal

from django.db import transaction
from django.db.models import (
    CharField,
    IntegerField,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    UUIDField,
    Value,
)
from django.db.models.functions import Cast, Coalesce, Concat

from readtrack import buckets
from readtrack.models import History, Popular
from readtrack.sql import databases, row_counts, vendors
from readtrack.sql.epochs import lock_epoch
from readtrack.sql.history import BASELINE, of_reads
from readtrack.sql.period_gains import OF_OBJECTS, gains_statement, rows_of
from readtrack.sql.row_counts import RowCounts
from readtrack.subjects import counted_models, label_of

DAYS = (1, 7, 30, 90)  # that have a list
EVER = 32_767  # days of the list of all time, which has views only
LISTED = 1_000  # subjects of each model by views, and by visitors

By = Literal["views", "visitors", "reads"]
COLUMNS: dict[By, str] = {
    "views": "views",
    "visitors": "visitors",
    "reads": "views",
}  # reads have rows of their own


def _listed(labels: Iterable[str], days: int) -> Any:
    """Returns the rows of the lists of so many days and fewer."""
    among = (Q(subject__startswith=f"{label}:") for label in labels)
    return databases.rows(Popular).filter(Q(*among, _connector=Q.OR), days__lte=days)


def entries(*labels: str, days: int, by: str) -> Any:
    """Returns listed subjects with upper bounds of their numbers by now, highest first.

    An entry has the subject, the bound, and the first hour, the end and the number of the subject
    in the list of so many days.
    """
    in_list = Q(days=days)
    subjects = _listed(labels, days).values("subject")
    subjects = subjects.annotate(
        first=Max("since", filter=in_list),
        end=Max("until", filter=in_list),
        number=Sum(by, filter=in_list),
    )
    # Shorter lists end later, so they have what came after this one.
    ordered = subjects.annotate(bound=Sum(by)).order_by("-bound", "subject")
    return ordered.values_list("subject", "bound", "first", "end", "number")


def renew(*, at: datetime) -> None:
    """Computes the lists that are due anew, each by one query; that of all time by one for each
    model.
    """
    if not counted_models():
        return
    until = buckets.hour_index(at)
    lists = databases.rows(Popular).values("days").annotate(end=Max("until"))
    end_of_list = dict(lists.values_list("days", "end"))
    has_lists = bool(end_of_list.keys() - {EVER})
    for days in (EVER, *reversed(DAYS)):
        age = until - end_of_list.get(days, 0)
        if 0 <= age < min(days, DAYS[-1]):
            continue
        since = max(BASELINE, until + 1 - days * 24)
        best = _best(days, since=since, until=until)
        if not best and days != EVER and not has_lists:
            return  # a shorter list has none either
        rows = [
            Popular(subject=subject, days=days, since=since, until=until, **counts._asdict())
            for subject, counts in best
        ]
        with transaction.atomic(using=databases.of(Popular).alias):
            lock_epoch()  # because another flush may do the same
            databases.rows(Popular).filter(days=days).delete()
            databases.rows(Popular).bulk_create(rows)


def _best(days: int, *, since: int, until: int) -> list[tuple[str, RowCounts]]:
    """Returns the subjects that the list of so many days is to have."""
    models = counted_models()
    if days == EVER:
        return [entry for model in models for entry in row_counts.highest(model, LISTED)]
    labels: list[str] = []
    for label in map(label_of, models):
        labels += [label, of_reads(label)]
    return most(labels, since=since, until=until)


def most(
    labels: Sequence[str], *, since: int, until: int, rows: "Sequence[QuerySet[Any]]" = ()
) -> list[tuple[str, RowCounts]]:
    """Returns each model's most viewed and most visited subjects in these hours.

    It reads all history of these hours. With `rows`, some of each model, PostgreSQL reads the
    history of these rows only, if it writes their keys as subjects do.
    """
    patterns = [f"{label}:%" for label in labels]
    if _can_join(rows):
        condition, parameters = _of_rows(labels, rows)
    else:
        condition = f"({' OR '.join('subject LIKE %s' for _ in labels)}) AND {OF_OBJECTS}"
        parameters = list(patterns)
    best: list[str] = []
    for pattern in patterns:
        for column in ("views", "visitors"):
            best.append(
                "SELECT * FROM (SELECT * FROM gains WHERE views > 0 AND subject LIKE %s"
                f" ORDER BY {column} DESC LIMIT {LISTED}) best"
            )
            parameters.append(pattern)
    gains = gains_statement(condition, since=since, until=until)
    statement = f"WITH gains AS ({gains}) {' UNION '.join(best)}"
    return [
        (subject, RowCounts(int(views), int(visitors)))
        for subject, _, views, visitors in rows_of(statement, parameters)
    ]


def _can_join(rows: "Sequence[QuerySet[Any]]") -> bool:
    """Returns True if one statement can join history with these rows."""
    connection = databases.of(History)
    if not rows or not vendors.vendor_of(connection).has_arrays:
        return False
    are_together = all(queryset.db == connection.alias for queryset in rows)
    # PostgreSQL writes these keys as subjects do.
    return are_together and all(
        isinstance(queryset.model._meta.pk, (IntegerField, UUIDField)) for queryset in rows
    )


def _of_rows(labels: Sequence[str], rows: "Sequence[QuerySet[Any]]") -> tuple[str, list[Any]]:
    """Returns the condition for the history of these rows, and its parameters.

    The condition reads the subjects of the rows in a subquery.
    """
    first, *others = (
        queryset.order_by().values_list(Concat(Value(f"{label}:"), Cast("pk", CharField())))
        for queryset, label in zip(rows, labels, strict=True)
    )
    query = first.union(*others, all=True).query
    compiler = query.get_compiler(using=databases.of(History).alias)
    subjects_statement, parameters = compiler.as_sql()
    # One array for all models, because with two PostgreSQL reads the hours of all subjects.
    return f"subject = ANY(ARRAY({subjects_statement}))", [*parameters]


def rises(labels: Sequence[str], *, days: int, since: int, until: int) -> dict[str, int]:
    """Returns the views of listed subjects in these hours, from two rows of each.

    A subject that was reset in between has fewer.
    """
    listed = _listed(labels, days).order_by()
    views = listed.values_list("subject", _views_before(since), _views_before(until)).distinct()
    return {subject: max(0, last - first) for subject, first, last in views}


def _views_before(hour: int) -> Any:
    """Returns the expression for the absolute views of a listed subject before that hour."""
    past = databases.rows(History).filter(subject=OuterRef("subject"), hour__lt=hour)
    return Coalesce(Subquery(past.order_by("-hour").values("views")[:1]), 0)
