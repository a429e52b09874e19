"""The counts that SQL stores, in a Tracked model's own rows or in SubjectCount: reading and raising
them.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from typing import Any, NamedTuple

from django.db import connections, transaction
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


class Written(NamedTuple):
    """Rows raised, rows that store more views, rows that are missing, and rows that others have
    locked.
    """

    raised: Sequence[Any] = ()
    ahead: Sequence[Any] = ()
    missing: Sequence[Any] = ()
    locked: Sequence[Any] = ()


def held(model: type[Model], rows: "QuerySet[Any] | None" = None) -> "QuerySet[Any]":
    """Returns the rows that hold the model's counts: of a Tracked model these, or those that its
    manager shows.
    """
    if issubclass(model, Tracked):
        return model._default_manager.all() if rows is None else rows
    return SubjectCount.objects.filter(subject__startswith=f"{label_of(model)}:")


def table_of(model: type[Model]) -> type[Model]:
    """Returns the model whose table holds the counts."""
    return model if issubclass(model, Tracked) else SubjectCount


def stored(model: type[Model], pks: Sequence[Any]) -> dict[Any, RowCounts]:
    """Returns the counts of rows that exist. They may be rows of SubjectCount."""
    found: dict[Any, RowCounts] = {}
    for rows in databases.with_keys(model, pks):
        if issubclass(model, (Tracked, SubjectCount)):
            found.update((pk, RowCounts(*both)) for pk, *both in rows.values_list("pk", *COUNTS))
        else:
            existing = [*rows.values_list("pk", flat=True)]
            keys = _keys(model, existing)
            counts = stored(SubjectCount, keys)
            found.update(
                (pk, counts.get(key, RowCounts(0, 0)))
                for pk, key in zip(existing, keys, strict=True)
            )
    return {pk: found[pk] for pk in pks if pk in found}  # MySQL finds keys that differ in case, too


def by_subject(subjects: Iterable[str]) -> dict[str, RowCounts]:
    """Returns the stored counts of subjects, with one query for each Tracked model and one for all
    other models.
    """
    found: dict[str, RowCounts] = {}
    others: dict[str, str] = {}
    for model, rows in rows_by_model(subjects).items():
        if issubclass(model, Tracked):
            found.update((rows[pk], counts) for pk, counts in stored(model, list(rows)).items())
        else:
            others.update((subject_column(subject), subject) for subject in rows.values())
    return {
        **found,
        **{others[key]: counts for key, counts in stored(SubjectCount, list(others)).items()},
    }


def highest(model: type[Model], limit: int) -> list[tuple[str, RowCounts]]:
    """Returns the subjects with the highest stored counts of views."""
    best = (
        held(model)
        .filter(view_count__gt=0)
        .order_by("-view_count", "-pk")
        .values_list("pk", *COUNTS)[:limit]
    )
    is_own = issubclass(model, Tracked)  # others have the subject as the key of their counts
    return [
        (subject_column(subject_of_row(model, pk)) if is_own else pk, RowCounts(*both))
        for pk, *both in best
    ]


def stored_views(querysets: "Sequence[QuerySet[Any]]") -> dict[type[Model], dict[str, int]]:
    """Returns the stored views of rows of Tracked models by subject, highest first and FEW at most,
    from one query.
    """
    found: dict[type[Model], dict[str, int]] = {one.model: {} for one in querysets}
    for alias in {one.db for one in querysets}:
        own, parts, values = [one for one in querysets if one.db == alias], [], list[Any]()
        for place, rows in enumerate(own):
            named = rows.annotate(tracked_pk=Cast("pk", CharField()), tracked_views=F("view_count"))
            some = named.order_by("-view_count", "-pk").values_list("tracked_pk", "tracked_views")[
                :FEW
            ]
            # Django has no union of parts that are cut, because SQLite has none without a subquery.
            statement, given = some.query.get_compiler(using=alias, elide_empty=False).as_sql()
            parts.append(f"SELECT {place}, tracked_pk, tracked_views FROM ({statement}) AS part")  # noqa: S608
            values += given
        with connections[alias].cursor() as cursor:
            cursor.execute(" UNION ALL ".join(parts), values)
            for place, pk, views in cursor.fetchall():
                model = own[place].model
                if isinstance(
                    model._meta.pk, IntegerField
                ):  # whose text is that of the subject, of thousands
                    found[model][f"{label_of(model)}:{pk}"] = views
                else:
                    found[model][subject_of_row(model, model._meta.pk.to_python(pk))] = views
    return found


def most_viewed(queryset: "QuerySet[Any]", limit: int) -> list[tuple[Any, int]]:
    """Returns those of the rows that have the highest stored counts, and their views, most viewed
    first.
    """
    model = queryset.model
    if issubclass(model, Tracked):
        rows = queryset.filter(view_count__gt=0).order_by("-view_count", "-pk")[:limit]
        return [(row, row.view_count) for row in rows]
    if (
        queryset.query.where
        and len(own := [*queryset.order_by().values_list("pk", flat=True)[: FEW + 1]]) <= FEW
    ):
        names = {subject_of_row(model, pk): pk for pk in own}
        known = {names[name]: both.views for name, both in by_subject(names).items() if both.views}
        best = nlargest(limit, known, key=lambda pk: (known[pk], subject_of_row(model, pk)))
        few = queryset.order_by().in_bulk(best)
        return [(few[pk], known[pk]) for pk in best if pk in few]
    counts = (
        held(model)
        .filter(view_count__gt=0)
        .order_by("-view_count", "-pk")
        .values_list("pk", "view_count")
    )
    found: list[tuple[Any, int]] = []
    start = 0
    # In parts, because the queryset may leave most of them out.
    while len(found) < limit and (part := dict(counts[start : start + scripts.SLICE])):
        start += scripts.SLICE
        pks = {
            subject: pk for by_pk in rows_by_model(part).values() for pk, subject in by_pk.items()
        }
        objs = {row.pk: row for row in queryset.filter(pk__in=list(pks.values()))}
        found += [
            (objs[pks[one]], views)
            for one, views in part.items()
            if one in pks and pks[one] in objs
        ]
    return found[:limit]


def write(model: type[Model], snapshots: Mapping[Any, RowCounts]) -> Written:
    """Raises the rows that store less. Waits for no row that is locked elsewhere. A conflict is the
    caller's.
    """
    # Sorted, so that two flushers lock rows in the same order and cannot deadlock.
    pks = dict(sorted(zip(_keys(model, snapshots), snapshots, strict=True)))
    if table_of(model) is SubjectCount:
        known = stored(model, list(snapshots))
        pks = {
            key: pk for key, pk in pks.items() if pk in known and _is_less(known[pk], snapshots[pk])
        }
        new = [key for key, pk in pks.items() if not any(known[pk])]
        rows = (SubjectCount(subject=key, view_count=0, visitor_count=0) for key in new)
        databases.rows(SubjectCount).bulk_create(rows, ignore_conflicts=True)
    risen = _raise(table_of(model), {key: snapshots[pk] for key, pk in pks.items()})
    raised = {pks[key]: is_ahead for key, is_ahead in risen.items()}
    rest = stored(model, [pk for pk in snapshots if pk not in raised])
    ahead = [pk for pk, is_ahead in raised.items() if is_ahead]
    ahead += (pk for pk, row in rest.items() if row.views > snapshots[pk].views)
    missing = [pk for pk in snapshots if pk not in raised and pk not in rest]
    return Written(
        list(raised),
        ahead,
        missing,
        [pk for pk, row in rest.items() if _is_less(row, snapshots[pk])],
    )


def _is_less(row: RowCounts, new: RowCounts) -> bool:
    return row.views < new.views or row.visitors < new.visitors


def _raise(table: type[Model], new: Mapping[Any, RowCounts]) -> dict[Any, bool]:
    """Raises rows that store less and are not locked. Returns their keys, with True for those with
    more views.
    """
    connection, (prepared, pk_type) = databases.of(table), databases.prepared(table, new)
    if not prepared:
        return {}
    fields: list[Any] = [table._meta.pk, *map(table._meta.get_field, COUNTS)]
    names = map(
        connection.ops.quote_name, (table._meta.db_table, *(field.column for field in fields))
    )
    words = dict(zip(("table", "pk", "views", "visitors"), names, strict=True))
    if connection.vendor == "postgresql":
        counts = zip(*map(new.__getitem__, prepared.values()), strict=True)
        keys, *counted = map(databases.array, ([*prepared], *counts))
        statement = databases.STATEMENTS["raise_counts_postgresql"]
        with connection.cursor() as cursor:
            statement = statement.format(**words, pk_type=pk_type)
            cursor.execute(statement, [keys, *counted, keys, len(prepared)])
            some, ahead = cursor.fetchone()
        raised = dict.fromkeys(
            prepared.values() if some is None else map(prepared.__getitem__, some), False
        )
        return raised | dict.fromkeys(map(prepared.__getitem__, ahead or ()), True)
    less = {key: row for key, row in stored(table, list(new)).items() if _is_less(row, new[key])}
    with transaction.atomic(using=connection.alias, savepoint=False), connection.cursor() as cursor:
        rows = databases.unlocked(table).filter(pk__in=list(less)).values_list("pk", flat=True)
        # SQLite locks no rows, and refuses a write to a transaction that read before another one
        # wrote.
        unlocked = {*rows} if connection.features.has_select_for_update else less.keys()
        raised = {key: row.views > new[key].views for key, row in less.items() if key in unlocked}
        changes = [
            {**new[key]._asdict(), "pk": value} for value, key in prepared.items() if key in raised
        ]
        if changes:
            cursor.executemany(databases.STATEMENTS["raise_counts"].format_map(words), changes)
    return raised


def lower(model: type[Model], pk: Any, *, to: RowCounts, stored: RowCounts) -> bool:
    """Lowers a row that was reset, unless it changed since it was read. Returns False if it is
    locked elsewhere.
    """
    table, [key] = table_of(model), _keys(model, [pk])
    with transaction.atomic(using=databases.of(table).alias):
        row = databases.unlocked(table).filter(pk=key).values_list(*COUNTS).first()
        if row == stored:
            databases.rows(table).filter(pk=key).update(
                view_count=to.views, visitor_count=to.visitors
            )
    return row is not None


def zero(model: type[Model], pks: Iterable[Any]) -> None:
    """Sets the counts of the rows to zero."""
    databases.rows(table_of(model)).filter(pk__in=_keys(model, pks)).update(
        view_count=0, visitor_count=0
    )


def _keys(model: type[Model], pks: Iterable[Any]) -> list[Any]:
    """Returns the primary keys, in the table that holds the counts, of rows of the model."""
    return (
        [*pks]
        if issubclass(model, Tracked)
        else [subject_column(subject_of_row(model, pk)) for pk in pks]
    )
