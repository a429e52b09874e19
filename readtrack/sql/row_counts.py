"""The counts that SQL stores, in a Tracked model's own rows or in SubjectCount: reading and raising them."""

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
    """Rows raised, rows that store more views, rows that are missing, and rows that others have locked."""

    raised: Sequence[Any] = ()
    ahead: Sequence[Any] = ()
    missing: Sequence[Any] = ()
    locked: Sequence[Any] = ()


def held(model: type[Model], rows: "QuerySet[Any] | None" = None) -> "QuerySet[Any]":
    """Returns the rows that hold the model's counts: of a Tracked model these, or those that its manager shows."""
    if issubclass(model, Tracked):
        return model._default_manager.all() if rows is None else rows
    return SubjectCount.objects.filter(subject__startswith=f"{label_of(model)}:")


def table_of(model: type[Model]) -> type[Model]:
    """Returns the model whose table holds the counts."""
    return model if issubclass(model, Tracked) else SubjectCount


def stored(model: type[Model], pks: Sequence[Any]) -> dict[Any, RowCounts]:
    """Returns the counts of rows that exist."""
    found: dict[Any, RowCounts] = {}
    for some in scripts.sliced(pks):  # because databases limit the number of parameters
        rows = databases.rows(model).filter(pk__in=some)
        if issubclass(model, Tracked):
            found.update((pk, RowCounts(*both)) for pk, *both in rows.values_list("pk", *COUNTS))
        else:
            subjects = {subject_of_row(model, pk): pk for pk in rows.values_list("pk", flat=True)}
            found.update(dict.fromkeys(subjects.values(), RowCounts(0, 0)))
            found.update((subjects[subject], both) for subject, both in _in_table(subjects).items())
    return {pk: found[pk] for pk in pks if pk in found}  # MySQL finds keys that differ in case, too


def by_subject(subjects: Iterable[str]) -> dict[str, RowCounts]:
    """Returns the stored counts of subjects, with one query for each Tracked model and one for all other models."""
    found: dict[str, RowCounts] = {}
    others: list[str] = []
    for model, rows in rows_by_model(subjects).items():
        if issubclass(model, Tracked):
            found.update((rows[pk], counts) for pk, counts in stored(model, list(rows)).items())
        else:
            others += rows.values()
    for some in scripts.sliced(others):
        found.update(_in_table(some))
    return found


def _in_table(subjects: Iterable[str]) -> dict[str, RowCounts]:
    rows = databases.about(SubjectCount, subjects, *COUNTS)
    return {subject: RowCounts(row.view_count, row.visitor_count) for subject, row in rows.items()}


def highest(model: type[Model], limit: int) -> list[tuple[str, RowCounts]]:
    """Returns the subjects with the highest stored counts of views."""
    best = held(model).filter(view_count__gt=0).order_by("-view_count", "-pk").values_list("pk", *COUNTS)[:limit]
    is_own = issubclass(model, Tracked)  # others have the subject as the key of their counts
    return [(subject_column(subject_of_row(model, pk)) if is_own else pk, RowCounts(*both)) for pk, *both in best]


def stored_views(querysets: "Sequence[QuerySet[Any]]") -> dict[type[Model], dict[str, int]]:
    """Returns the stored views of rows of Tracked models by subject, highest first and FEW at most, from one query."""
    found: dict[type[Model], dict[str, int]] = {one.model: {} for one in querysets}
    for alias in {one.db for one in querysets}:
        own, parts, values = [one for one in querysets if one.db == alias], [], list[Any]()
        for place, rows in enumerate(own):
            named = rows.annotate(tracked_pk=Cast("pk", CharField()), tracked_views=F("view_count"))
            some = named.order_by("-view_count", "-pk").values_list("tracked_pk", "tracked_views")[:FEW]
            # Django has no union of parts that are cut, because SQLite has none without a subquery.
            statement, given = some.query.get_compiler(using=alias, elide_empty=False).as_sql()
            parts.append(f"SELECT {place}, tracked_pk, tracked_views FROM ({statement}) AS part")  # noqa: S608
            values += given
        with connections[alias].cursor() as cursor:
            cursor.execute(" UNION ALL ".join(parts), values)
            for place, pk, views in cursor.fetchall():
                model = own[place].model
                is_number = isinstance(model._meta.pk, IntegerField)  # whose text is that of the subject, of thousands
                subject = (
                    f"{label_of(model)}:{pk}" if is_number else subject_of_row(model, model._meta.pk.to_python(pk))
                )
                found[model][subject] = views
    return found


def most_viewed(queryset: "QuerySet[Any]", limit: int) -> list[tuple[Any, int]]:
    """Returns those of the rows that have the highest stored counts, and their views, most viewed first."""
    model = queryset.model
    if issubclass(model, Tracked):
        rows = queryset.filter(view_count__gt=0).order_by("-view_count", "-pk")[:limit]
        return [(row, row.view_count) for row in rows]
    if queryset.query.where and len(own := [*queryset.order_by().values_list("pk", flat=True)[: FEW + 1]]) <= FEW:
        names = {subject_of_row(model, pk): pk for pk in own}
        known = {names[name]: both.views for name, both in by_subject(names).items() if both.views}
        best = nlargest(limit, known, key=lambda pk: (known[pk], subject_of_row(model, pk)))
        few = queryset.order_by().in_bulk(best)
        return [(few[pk], known[pk]) for pk in best if pk in few]
    counts = held(model).filter(view_count__gt=0).order_by("-view_count", "-pk").values_list("pk", "view_count")
    found: list[tuple[Any, int]] = []
    start = 0
    # In parts, because the queryset may leave most of them out.
    while len(found) < limit and (part := dict(counts[start : start + scripts.SLICE])):
        start += scripts.SLICE
        pks = {subject: pk for by_pk in rows_by_model(part).values() for pk, subject in by_pk.items()}
        objs = {row.pk: row for row in queryset.filter(pk__in=list(pks.values()))}
        found += [(objs[pks[one]], views) for one, views in part.items() if one in pks and pks[one] in objs]
    return found[:limit]


def write(model: type[Model], snapshots: Mapping[Any, RowCounts]) -> Written:
    """Raises the rows that store less. Waits for no row that is locked elsewhere. A conflict is the caller's."""
    if not issubclass(model, Tracked):
        return _write_portable(model, snapshots)
    # Sorted, so that two flushers lock rows in the same order and cannot deadlock.
    ordered = {pk: snapshots[pk] for pk in sorted(snapshots)}
    write_all = _write_postgresql if databases.of(model).vendor == "postgresql" else _write_portable
    return write_all(model, ordered)


def _write_postgresql(model: type[Tracked], snapshots: Mapping[Any, RowCounts]) -> Written:
    names, prepared = _names(model), _prepared(model, snapshots)
    pks, *new = map(databases.array, (list(prepared), *zip(*snapshots.values(), strict=True)))
    with databases.of(model).cursor() as cursor:
        statement = databases.STATEMENTS["raise_counts"].format_map(names)
        cursor.execute(statement, [pks, *new, pks, len(snapshots)])
        raised, ahead, count = cursor.fetchone()
        found = [prepared[value] for value in ahead or ()]
        if count == len(snapshots):
            return Written(list(snapshots), found)
        untouched = prepared.keys() - set(raised or ())
        statement = databases.STATEMENTS["read_counts"].format_map(names)
        cursor.execute(statement, [databases.array(list(untouched))])
        others = {prepared[value]: RowCounts(*row) for value, *row in cursor.fetchall()}
    found += (pk for pk, row in others.items() if row.views > snapshots[pk].views)
    missing = [prepared[value] for value in untouched if prepared[value] not in others]
    return Written([prepared[value] for value in raised or ()], found, missing, list(_behind(others, snapshots)))


def _behind(rows: Mapping[Any, RowCounts], snapshots: Mapping[Any, RowCounts]) -> dict[Any, RowCounts]:
    """Returns the snapshots of rows that store less."""
    return {
        pk: snapshots[pk]
        for pk, row in rows.items()
        if row.views < snapshots[pk].views or row.visitors < snapshots[pk].visitors
    }


def _write_portable(model: type[Model], snapshots: Mapping[Any, RowCounts]) -> Written:
    """Raises rows of a Tracked model in databases other than PostgreSQL, and rows of our own table in all of them."""
    present = stored(model, list(snapshots))
    behind = free = _behind(present, snapshots)
    if issubclass(model, Tracked):
        free = _raise_unlocked(model, behind)
    else:
        rows = [(key, *new) for key, new in zip(_keys(model, behind), behind.values(), strict=True)]
        databases.upsert(SubjectCount, ("subject",), COUNTS, rows=rows, is_each=True)
    ahead = [pk for pk, row in present.items() if row.views > snapshots[pk].views]
    missing = [pk for pk in snapshots if pk not in present]
    return Written(list(free), ahead, missing, [pk for pk in behind if pk not in free])


def _raise_unlocked(model: type[Tracked], behind: dict[Any, RowCounts]) -> dict[Any, RowCounts]:
    connection, free = databases.of(model), behind
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if connection.features.has_select_for_update_skip_locked:
            unlocked = databases.unlocked(model).filter(pk__in=list(behind)).values_list("pk", flat=True)
            free = {pk: behind[pk] for pk in unlocked}
        parameters = [
            (new.views, new.views, new.visitors, new.visitors, value)
            for value, new in zip(_prepared(model, free), free.values(), strict=True)
        ]
        cursor.executemany(databases.STATEMENTS["raise_counts_portable"].format_map(_names(model)), parameters)
    return free


def lower(model: type[Model], pk: Any, *, to: RowCounts, stored: RowCounts) -> bool:
    """Lowers a row that was reset, unless it changed since it was read. Returns False if it is locked elsewhere."""
    table, [key] = table_of(model), _keys(model, [pk])
    with transaction.atomic(using=databases.of(table).alias):
        row = databases.unlocked(table).filter(pk=key).values_list(*COUNTS).first()
        if row == stored:
            databases.rows(table).filter(pk=key).update(view_count=to.views, visitor_count=to.visitors)
    return row is not None


def zero(model: type[Model], pks: Iterable[Any]) -> None:
    """Sets the counts of the rows to zero."""
    databases.rows(table_of(model)).filter(pk__in=_keys(model, pks)).update(view_count=0, visitor_count=0)


def _keys(model: type[Model], pks: Iterable[Any]) -> list[Any]:
    """Returns the primary keys, in the table that holds the counts, of rows of the model."""
    return [*pks] if issubclass(model, Tracked) else [subject_column(subject_of_row(model, pk)) for pk in pks]


def _names(model: type[Tracked]) -> dict[str, Any]:
    """Returns the quoted names of the table, its primary key and its two counts, and the type of the primary key."""
    connection, options = databases.of(model), model._meta
    fields: list[Any] = [options.pk, *map(options.get_field, COUNTS)]
    names = map(connection.ops.quote_name, (options.db_table, *(field.column for field in fields)))
    found = dict(zip(("table", "pk", "views", "visitors"), names, strict=True))
    return {**found, "pk_type": options.pk.rel_db_type(connection)}


def _prepared(model: type[Tracked], pks: Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns the primary keys by the values that the database knows them by."""
    if set(map(type, pks)) == {int}:
        return dict(zip(pks, pks, strict=True))
    connection = databases.of(model)
    return {model._meta.pk.get_db_prep_value(pk, connection): pk for pk in pks}
