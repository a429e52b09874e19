"""Raising the stored counts of rows, and lowering them after a reset."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Model

from readtrack.models import SubjectCount
from readtrack.models.tracked import COUNTS
from readtrack.sql import databases, vendors
from readtrack.sql.row_counts import RowCounts, keys_of, stored, table_of


class Written(NamedTuple):
    """The primary keys of rows, by what a write did or found."""

    raised: list[Any]
    ahead: list[Any]  # that store more views
    missing: list[Any]
    locked: list[Any]  # by another transaction


def write(model: type[Model], snapshots: Mapping[Any, RowCounts]) -> Written:
    """Raises the rows that store less than the snapshots, which are by primary key.

    It waits for no row that is locked elsewhere. After a conflict the caller has to try again.
    """
    # Sorted, so that two flushers lock rows in the same order and cannot deadlock.
    pks = dict(sorted(zip(keys_of(model, snapshots), snapshots, strict=True)))
    if table_of(model) is SubjectCount:
        pks = _insert_missing(model, pks, snapshots)
    risen = _raise(table_of(model), {key: snapshots[pk] for key, pk in pks.items()})
    written = Written(raised=[], ahead=[], missing=[], locked=[])
    for key, is_ahead in risen.items():
        written.raised.append(pks[key])
        if is_ahead:
            written.ahead.append(pks[key])
    _sort_others(model, snapshots, written)
    return written


def _sort_others(model: type[Model], snapshots: Mapping[Any, RowCounts], written: Written) -> None:
    """Finds out about the rows that were not raised, and adds them to what was written."""
    raised = set(written.raised)
    others = [pk for pk in snapshots if pk not in raised]
    rows = stored(model, others)
    for pk in others:
        row = rows.get(pk)
        if row is None:
            written.missing.append(pk)
            continue
        if row.views > snapshots[pk].views:
            written.ahead.append(pk)
        if _is_less(row, snapshots[pk]):
            written.locked.append(pk)


def _insert_missing(
    model: type[Model], pks: Mapping[str, Any], snapshots: Mapping[Any, RowCounts]
) -> dict[str, Any]:
    """Inserts rows of SubjectCount where it has none, with zero counts.

    `pks` has the primary keys by the key in SubjectCount. Returns those of the rows that exist and
    store less than the snapshots.
    """
    existing = stored(model, list(snapshots))
    lower = {}
    new = []
    for key, pk in pks.items():
        row = existing.get(pk)
        if row is None or not _is_less(row, snapshots[pk]):
            continue
        lower[key] = pk
        if not any(row):
            new.append(SubjectCount(subject=key, view_count=0, visitor_count=0))
    databases.rows(SubjectCount).bulk_create(new, ignore_conflicts=True)
    return lower


def _is_less(row: RowCounts, new: RowCounts) -> bool:
    return row.views < new.views or row.visitors < new.visitors


def _raise(table: type[Model], new: Mapping[Any, RowCounts]) -> dict[Any, bool]:
    """Raises rows that store less and are not locked.

    Returns the keys of the raised rows, with True for those that have more views than `new`.
    """
    connection = databases.of(table)
    keys = databases.prepared(table, new)
    if not keys.originals:
        return {}
    fields: list[Any] = [table._meta.pk, *map(table._meta.get_field, COUNTS)]
    pk, views, visitors = (connection.ops.quote_name(field.column) for field in fields)
    columns = {"pk": pk, "views": views, "visitors": visitors}
    if vendors.vendor_of(connection).has_arrays:
        return _raise_arrays(table, new, keys, columns)
    return _raise_each(table, new, keys, columns)


def _raise_arrays(
    table: type[Model],
    new: Mapping[Any, RowCounts],
    keys: databases.PreparedKeys,
    columns: Mapping[str, str],
) -> dict[Any, bool]:
    """Raises the rows by one statement, which takes the counts as arrays."""
    originals = keys.originals
    counts = [new[key] for key in originals.values()]
    key_array = databases.array([*originals])
    views = databases.array([row.views for row in counts])
    visitors = databases.array([row.visitors for row in counts])
    statement = databases.statement(table, "raise_counts", pk_type=keys.array_type, **columns)
    with databases.of(table).cursor() as cursor:
        cursor.execute(statement, [key_array, views, visitors, key_array, len(originals)])
        raised, ahead = cursor.fetchone()
    if raised is None:  # all of them
        raised = originals
    is_ahead = dict.fromkeys((originals[key] for key in raised), False)
    for key in ahead or ():
        is_ahead[originals[key]] = True
    return is_ahead


def _raise_each(
    table: type[Model],
    new: Mapping[Any, RowCounts],
    keys: databases.PreparedKeys,
    columns: Mapping[str, str],
) -> dict[Any, bool]:
    """Raises the rows one by one, those that are not locked."""
    connection = databases.of(table)
    rows = stored(table, list(new))
    lower = {key: row for key, row in rows.items() if _is_less(row, new[key])}
    statement = databases.statement(table, "raise_counts", **columns)
    with transaction.atomic(using=connection.alias, savepoint=False), connection.cursor() as cursor:
        unlocked = _unlocked(table, lower)
        raised = {key: row for key, row in lower.items() if key in unlocked}
        changes = [
            {"pk": value, "views": new[key].views, "visitors": new[key].visitors}
            for value, key in keys.originals.items()
            if key in raised
        ]
        if changes:
            cursor.executemany(statement, changes)
    return {key: row.views > new[key].views for key, row in raised.items()}


def _unlocked(table: type[Model], keys: Collection[Any]) -> set[Any]:
    """Locks those of the rows that are not locked elsewhere. Returns their keys."""
    if not databases.of(table).features.has_select_for_update:
        # SQLite locks no rows, and refuses a write to a transaction that read before another one
        # wrote.
        return {*keys}
    rows = databases.unlocked(table).filter(pk__in=list(keys))
    return {*rows.values_list("pk", flat=True)}


def lower(model: type[Model], pk: Any, *, to: RowCounts, stored: RowCounts) -> bool:
    """Lowers a row that was reset, unless it changed since it was read.

    Returns False if the row is locked elsewhere.
    """
    table = table_of(model)
    [key] = keys_of(model, [pk])
    with transaction.atomic(using=databases.of(table).alias):
        row = databases.unlocked(table).filter(pk=key).values_list(*COUNTS).first()
        if row == stored:
            databases.rows(table).filter(pk=key).update(
                view_count=to.views, visitor_count=to.visitors
            )
    return row is not None


def zero(model: type[Model], pks: Iterable[Any]) -> None:
    """Sets the counts of the rows to zero."""
    rows = databases.rows(table_of(model)).filter(pk__in=keys_of(model, pks))
    rows.update(view_count=0, visitor_count=0)
