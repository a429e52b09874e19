"""Lists of the most viewed subjects of the last 1, 7, 30 and 90 days, and of all time.

A full flush renews the list of 30 days once it is 30 hours old, and each other list of days
likewise. So each list costs the same: in one hour, as much as to read the history of one day.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Literal

from django.db.models import (
    CharField,
    IntegerField,
    Max,
    Model,
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
from readtrack.numbers.models import History, Popular
from readtrack.numbers.sql import stored_views
from readtrack.numbers.sql.history import BASELINE, of_reads, of_stage
from readtrack.numbers.sql.history_lock import lock_history
from readtrack.numbers.sql.period_gains import (
    OF_LABEL,
    OF_OBJECTS,
    gains_statement,
    pattern,
    rows_of,
)
from readtrack.sql import absent, databases, row_counts, vendors
from readtrack.sql.faults import Faults
from readtrack.subjects import counted_models, label_of

DAYS = (1, 7, 30, 90)  # the numbers of days that have a list
EVER = 32_767  # the number of days under which the list of all time is stored
LISTED = (
    1_000  # subjects of each model in a list: those with most views, most seen views, most reads
)

#: Of subjects of one model with the same views the newest come first, as `place_among_equals` says.
MOST_FIRST = "views DESC, LENGTH(subject) DESC, subject DESC"

By = Literal["views", "visitors", "seen", "reads"]


def _listed(labels: Iterable[str], days: int) -> Any:
    """Returns the rows of Popular of these models, in the lists of so many days or fewer."""
    conditions = [Q(subject__startswith=f"{label}:") for label in labels]
    return databases.rows(Popular).filter(Q(*conditions, _connector=Q.OR), days__lte=days)


def entries(*labels: str, days: int) -> Any:
    """Returns a queryset of the subjects in the list of so many days and in shorter lists.

    A result is a tuple (subject, bound, first, end, number). `bound` is an upper bound of the
    subject's views in the last days; the highest one comes first. `number` is its views in the list
    of so many days, `first` and `end` are the hours of that list (since 1970). All three are None
    for a subject that only shorter lists have. With the names of reads, views are reads.
    """
    in_list = Q(days=days)
    subjects = _listed(labels, days).values("subject")
    subjects = subjects.annotate(
        first=Max("since", filter=in_list),
        end=Max("until", filter=in_list),
        number=Sum("views", filter=in_list),
    )
    # Shorter lists are renewed more often, so they have the views since the end of this list. The
    # sum of all lists counts some views several times, but it is never too low.
    ordered = subjects.annotate(bound=Sum("views")).order_by("-bound", "subject")
    return ordered.values_list("subject", "bound", "first", "end", "number")


def renew(*, at: datetime, faults: Faults) -> None:
    """Computes the lists that are due anew.

    Makes one query for each list, and for the list of all time one for each model.
    """
    if not counted_models() or absent.is_absent(Popular):
        return
    until = buckets.hour_index(at)
    lists = databases.rows(Popular).values("days").annotate(end=Max("until"))
    end_of_list = dict(lists.values_list("days", "end"))
    has_lists = bool(end_of_list.keys() - {EVER})
    for days in (EVER, *reversed(DAYS)):  # longest first
        age = until - end_of_list.get(days, 0)  # hours
        is_fresh = 0 <= age < min(days, DAYS[-1])
        if is_fresh:
            continue
        since = max(BASELINE, until + 1 - days * 24)
        best = _best(days, since=since, until=until, faults=faults)
        if not best and days != EVER and not has_lists:
            return  # nothing was viewed, so the shorter lists would be empty as well
        rows = [(subject, days, views, since, until) for subject, views in best]
        databases.retried(databases.of(Popular), partial(_replace, days, rows))


def _replace(days: int, rows: Sequence[tuple[str, int, int, int, int]]) -> None:
    """Replaces the list of so many days by these rows: subject, days, views, since and until."""
    with databases.own_transaction(databases.of(Popular)):
        lock_history()  # because another flush may do the same
        databases.rows(Popular).filter(days=days).delete()
        # Not bulk_create, which takes a multiple of the time.
        databases.upsert(Popular, ("subject", "days"), ("views", "since", "until"), rows=rows)


def _best(days: int, *, since: int, until: int, faults: Faults) -> list[tuple[str, int]]:
    """Returns the subjects for the list of so many days, and their views in these hours."""
    models = counted_models()
    if days == EVER:
        best: list[tuple[str, int]] = []
        for model in models:
            best += faults.attempt(label_of(model), partial(_highest, model), [])
        return best
    labels: list[str] = []
    for label in map(label_of, models):
        labels += [label, of_stage("seen", label), of_reads(label)]
    return most(labels, since=since, until=until)


def _highest(model: type[Model]) -> list[tuple[str, int]]:
    """Returns the most viewed subjects of the model, and their views."""
    with databases.site_transaction(databases.of(row_counts.table_of(model))):
        return stored_views.highest(model, LISTED)


def most(
    labels: Sequence[str], *, since: int, until: int, rows: "Sequence[QuerySet[Any]]" = ()
) -> list[tuple[str, int]]:
    """Returns the LISTED subjects of each model with most views in these hours, with these views.
    Among equal ones the newest are in it.

    Hours are since 1970, `until` is exclusive. `labels` are labels of models, or `of_reads` of
    them. It reads all history of these hours. `rows` may have a queryset for each label: if
    PostgreSQL can join them, it reads the history of these rows only. Otherwise `rows` is ignored,
    so the result may have other subjects.
    """
    patterns = [pattern(label) for label in labels]
    if _can_join(rows):
        condition, parameters = _among_rows(labels, rows)
    else:
        is_of_label = " OR ".join(OF_LABEL for _ in labels)
        condition = f"({is_of_label}) AND {OF_OBJECTS}"
        parameters = list(patterns)
    selects: list[str] = []
    for pattern_of_label in patterns:
        selects.append(
            f"SELECT * FROM (SELECT * FROM gains WHERE views > 0 AND {OF_LABEL}"
            f" ORDER BY {MOST_FIRST} LIMIT {LISTED}) best"
        )
        parameters.append(pattern_of_label)
    gains = gains_statement(condition, since=since, until=until)
    statement = f"WITH gains AS ({gains}) {' UNION '.join(selects)}"
    return [(subject, int(views)) for subject, _, views in rows_of(statement, parameters)]


def _can_join(rows: "Sequence[QuerySet[Any]]") -> bool:
    """Returns True if one SQL statement can read history together with these rows.

    They have to be in the same database, which is PostgreSQL.
    """
    connection = databases.of(History)
    if not rows or not vendors.vendor_of(connection).has_arrays:
        return False
    for queryset in rows:
        # PostgreSQL writes numbers and UUIDs as text in the same way as subjects have them.
        has_plain_key = isinstance(queryset.model._meta.pk, (IntegerField, UUIDField))
        if queryset.db != connection.alias or not has_plain_key:
            return False
    return True


def _among_rows(labels: Sequence[str], rows: "Sequence[QuerySet[Any]]") -> tuple[str, list[Any]]:
    """Returns the SQL condition for rows of history about these rows, and its parameters.

    `rows` has a queryset for each of the labels. The condition is a subquery in which PostgreSQL
    makes the subject of each row, `blog.post:42`, because there may be a million rows.
    """
    subject_queries = []
    for queryset, label in zip(rows, labels, strict=True):
        subject = Concat(Value(f"{label}:"), Cast("pk", CharField()))
        subject_queries.append(queryset.order_by().values_list(subject))
    first_query, *other_queries = subject_queries
    query = first_query.union(*other_queries, all=True).query
    compiler = query.get_compiler(using=databases.of(History).alias)
    subjects_statement, parameters = compiler.as_sql()
    # One array for all models, because with two arrays PostgreSQL reads the hours of all subjects.
    return f"subject = ANY(ARRAY({subjects_statement}))", [*parameters]


def rises(labels: Sequence[str], *, days: int, since: int, until: int) -> dict[str, int]:
    """Returns how many views each subject in the lists gained in these hours, by subject.

    The lists are those of so many days or fewer. The gain is the difference of the absolute views
    before `until` and before `since`. It is too low for a subject that was reset in between.
    """
    listed = _listed(labels, days).order_by()
    views = listed.values_list("subject", _views_before(since), _views_before(until)).distinct()
    return {subject: max(0, last - first) for subject, first, last in views}


def _views_before(hour: int) -> Any:
    """Returns the expression for the absolute views of the subject of a list before that hour."""
    past = databases.rows(History).filter(subject=OuterRef("subject"), hour__lt=hour)
    return Coalesce(Subquery(past.order_by("-hour").values("views")[:1]), 0)
