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
    """The primary keys of rows, by what `write` did with them. A row may be in two lists."""

    raised: list[Any]
    ahead: list[Any]  # rows that store more views than the snapshot
    missing: list[Any]  # there is no such row
    locked: list[Any]  # rows that store less, but are locked by another transaction


def write(model: type[Model], snapshots: Mapping[Any, RowCounts]) -> Written:
    """Raises the rows that store less than the snapshots.

    `snapshots` has the live counts by primary key. It does not wait for rows that another
    transaction has locked. After a conflict the caller has to try again. Returns which rows were
    raised, and why the other ones were not. A row is ahead if it stores more views than its
    snapshot; it is raised all the same if it stores fewer visitors.
    """
    table = table_of(model)
    # Primary keys of the model by the row's key in the table that has the counts. Sorted, so that
    # two flushers lock rows in the same order and cannot deadlock.
    pk_by_key = dict(sorted(zip(keys_of(model, snapshots), snapshots, strict=True)))
    if table is SubjectCount:
        pk_by_key = _insert_missing(model, pk_by_key, snapshots)
    is_ahead_by_key = _raise(table, {key: snapshots[pk] for key, pk in pk_by_key.items()})
    written = Written(raised=[], ahead=[], missing=[], locked=[])
    for key, is_ahead in is_ahead_by_key.items():
        written.raised.append(pk_by_key[key])
        if is_ahead:
            written.ahead.append(pk_by_key[key])
    _sort_not_raised(model, snapshots, written)
    return written


def _sort_not_raised(
    model: type[Model], snapshots: Mapping[Any, RowCounts], written: Written
) -> None:
    """Finds out why rows were not raised, and adds them to the lists of `written`."""
    raised = set(written.raised)
    not_raised = [pk for pk in snapshots if pk not in raised]
    rows = stored(model, not_raised)
    for pk in not_raised:
        row = rows.get(pk)
        if row is None:
            written.missing.append(pk)
            continue
        if row.views > snapshots[pk].views:
            written.ahead.append(pk)
        if _is_less(row, snapshots[pk]):
            written.locked.append(pk)


def _insert_missing(
    model: type[Model], pk_by_key: Mapping[str, Any], snapshots: Mapping[Any, RowCounts]
) -> dict[str, Any]:
    """Inserts rows of SubjectCount, with zero counts, for objects that have none yet.

    `pk_by_key` has the primary keys of the model by the key in SubjectCount. Returns those entries
    of it whose object exists and has lower counts than its snapshot, which are to be raised.
    """
    existing = stored(model, list(snapshots))
    to_raise = {}
    new_rows = []
    for key, pk in pk_by_key.items():
        row = existing.get(pk)
        if row is None or not _is_less(row, snapshots[pk]):
            continue
        to_raise[key] = pk
        if not any(row):  # zero counts, maybe because there is no row
            new_rows.append(SubjectCount(subject=key, view_count=0, visitor_count=0))
    databases.rows(SubjectCount).bulk_create(new_rows, ignore_conflicts=True)
    return to_raise


def _is_less(row: RowCounts, snapshot: RowCounts) -> bool:
    """Returns True if any count of the row is lower than that of the snapshot."""
    return row.views < snapshot.views or row.visitors < snapshot.visitors


def _raise(table: type[Model], snapshots: Mapping[Any, RowCounts]) -> dict[Any, bool]:
    """Raises the rows of the table that store less than their snapshots and are not locked.

    `snapshots` has the live counts by primary key. Returns the raised rows by primary key, each
    with whether it is ahead: it has more views than its snapshot, and had fewer visitors.
    """
    connection = databases.of(table)
    prepared = databases.prepared(table, snapshots)
    if not prepared.originals:
        return {}
    fields: list[Any] = [table._meta.pk, *map(table._meta.get_field, COUNTS)]
    pk, views, visitors = (connection.ops.quote_name(field.column) for field in fields)
    columns = {"pk": pk, "views": views, "visitors": visitors}
    if vendors.vendor_of(connection).has_arrays:
        return _raise_together(table, snapshots, prepared, columns)
    return _raise_each(table, snapshots, prepared, columns)


def _raise_together(
    table: type[Model],
    snapshots: Mapping[Any, RowCounts],
    prepared: databases.PreparedKeys,
    columns: Mapping[str, str],
) -> dict[Any, bool]:
    """Raises the rows by one statement, which takes the counts as arrays. Returns what `_raise`
    returns.
    """
    pk_by_value = prepared.originals  # primary keys by the values that the database has for them
    counts = [snapshots[pk] for pk in pk_by_value.values()]
    values = databases.array([*pk_by_value])
    views = databases.array([row.views for row in counts])
    visitors = databases.array([row.visitors for row in counts])
    statement = databases.statement(table, "raise_counts", pk_type=prepared.array_type, **columns)
    with databases.of(table).cursor() as cursor:
        cursor.execute(statement, [values, views, visitors, values, len(pk_by_value)])
        raised_values, values_ahead = cursor.fetchone()
    if raised_values is None:  # the statement's short answer if it raised all of them
        raised_values = pk_by_value
    is_ahead_by_pk = {pk_by_value[value]: False for value in raised_values}
    for value in values_ahead or ():
        is_ahead_by_pk[pk_by_value[value]] = True
    return is_ahead_by_pk


def _raise_each(
    table: type[Model],
    snapshots: Mapping[Any, RowCounts],
    prepared: databases.PreparedKeys,
    columns: Mapping[str, str],
) -> dict[Any, bool]:
    """Raises each row by its own statement, in one transaction. Returns what `_raise` returns."""
    connection = databases.of(table)
    rows = stored(table, list(snapshots))
    lower_pks = [pk for pk, row in rows.items() if _is_less(row, snapshots[pk])]
    statement = databases.statement(table, "raise_counts", **columns)
    with transaction.atomic(using=connection.alias, savepoint=False), connection.cursor() as cursor:
        unlocked_pks = _lock_unlocked(table, lower_pks)
        changes = []
        for value, pk in prepared.originals.items():
            if pk in unlocked_pks:
                new = snapshots[pk]
                changes.append({"pk": value, "views": new.views, "visitors": new.visitors})
        if changes:
            cursor.executemany(statement, changes)
    return {pk: rows[pk].views > snapshots[pk].views for pk in lower_pks if pk in unlocked_pks}


def _lock_unlocked(table: type[Model], keys: Collection[Any]) -> set[Any]:
    """Locks the rows that no other transaction has locked. Returns their primary keys."""
    if not databases.of(table).features.has_select_for_update:
        # SQLite locks no rows. To read them here would do harm: SQLite refuses the write of a
        # transaction that read before another transaction wrote.
        return {*keys}
    rows = databases.unlocked(table).filter(pk__in=list(keys))
    return {*rows.values_list("pk", flat=True)}


def lower(model: type[Model], pk: Any, *, to: RowCounts, stored: RowCounts) -> bool:
    """Lowers the counts of a row that was reset, if they are still the `stored` ones.

    Returns False if another transaction has locked the row, so that it has to be tried again.
    """
    table = table_of(model)
    [key] = keys_of(model, [pk])
    with databases.site_transaction(databases.of(table), is_writing=True):
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
