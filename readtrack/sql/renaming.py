"""Rows about a model that was renamed, or about a row with a new primary key, get its new name."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import F, Model, Q, QuerySet, Value
from django.db.models.functions import Concat, Length, Substr
from django.db.models.lookups import LessThanOrEqual

from readtrack.models import SUBJECT_LENGTH, Rename, SubjectRow
from readtrack.sql import absent, databases, subject_tables, vendors
from readtrack.subjects import subject_column, subject_in


def has_tables() -> bool:
    """Returns True once the core's own migrations have run."""
    needed: set[type[Model]] = {Rename}
    needed.update(model for model in subject_tables.every() if model._meta.app_label == "readtrack")
    return needed.isdisjoint(absent.absent_tables())


def rename_model(before: str, after: str, *, pks: Iterable[Any]) -> None:
    """Gives all rows about a model with the label `before`, and about its objects, the new label.

    `pks` are the primary keys of the objects, for subjects too long for their column.
    """
    if before == after:
        return
    # A longer subject ends in a hash, which differs from that of the new subject.
    longest = SUBJECT_LENGTH - 1 - max(0, len(after) - len(before))
    tables = subject_tables.every()
    for model in tables:
        for prefix in subject_tables.prefixes_of(model):
            _rename_short_subjects(model, before, after, prefix=prefix, longest=longest)
    has_longer_subjects = any(_rows_about_objects(model, before).exists() for model in tables)
    if has_longer_subjects:
        longest -= max(map(_longest_prefix, tables))
        for pk in pks:
            long_subject = subject_in(before, pk)
            if len(long_subject) > longest:
                rename_subject(long_subject, subject_in(after, pk))


def _longest_prefix(model: type[SubjectRow]) -> int:
    """Returns the length of the longest prefix that the table gives to subjects."""
    return max(map(len, subject_tables.prefixes_of(model)))


def _rename_short_subjects(
    model: type[SubjectRow], before: str, after: str, *, prefix: str, longest: int
) -> None:
    """Gives the rows of one table the new label, where their name has `longest` characters at most.

    Of a table that has subjects under several names, it renames those with the prefix.
    """
    old = prefix + before
    new = prefix + after
    has_old_label = Q(subject=old) | Q(subject__startswith=f"{old}:")
    is_short = LessThanOrEqual(Length("subject"), Value(longest))
    rows = databases.rows(model).filter(has_old_label).filter(is_short)
    subject = Concat(Value(new), Substr("subject", len(old) + 1))
    full_subject = Concat(Value(after), Substr("full_subject", len(before) + 1))
    move(model, rows, subject=subject, full_subject=full_subject)


def _rows_about_objects(model: type[SubjectRow], label: str) -> "QuerySet[Any]":
    """Returns the rows of the table about objects of the model `label`."""
    prefixes = subject_tables.prefixes_of(model)
    has_label = [Q(subject__startswith=f"{prefix}{label}:") for prefix in prefixes]
    return databases.rows(model).filter(Q(*has_label, _connector=Q.OR))


def rename_subject(before: str, after: str) -> None:
    """Gives all rows about an object its new name."""
    for model in subject_tables.every():
        vendor = vendors.vendor_of(databases.of(model))
        for prefix in subject_tables.prefixes_of(model):
            old = subject_column(prefix + before)
            new = subject_column(prefix + after)
            if old == new:
                continue
            rows = databases.rows(model).filter(subject=old)
            if vendor.ignores_case and new.casefold() == old.casefold():
                _rename_in_place(model, rows, subject=new, full_subject=after)
            else:
                move(model, rows, subject=Value(new), full_subject=Value(after))


def _rename_in_place(model: type[Model], rows: "QuerySet[Any]", **renamed: str) -> None:
    """Changes the rows of a name that differs in case only, which MySQL takes for the same.

    `renamed` are the new values by column. Columns that the table does not have are left out.
    """
    columns = subject_tables.columns_of(model)
    column_names = [*columns.keys, *columns.values]
    rows.update(**{name: value for name, value in renamed.items() if name in column_names})


def move(model: type[Model], rows: "QuerySet[Any]", **renamed: Any) -> None:
    """Writes the rows under another name, then deletes them. Of two rows of one name the higher one
    stays.

    `renamed` are the new values by column. Columns that the table does not have are left out.
    Raises django.db.Error.
    """
    if absent.is_absent(model):
        return
    columns = subject_tables.columns_of(model)
    column_names = [*columns.keys, *columns.values]
    # With `new_`, because MySQL would take the plain names for those of the table.
    new_values = {f"new_{name}": renamed.get(name, F(name)) for name in column_names}
    connection = databases.of(model)
    new_rows = rows.annotate(**new_values).values_list(*new_values)
    select, parameters = new_rows.query.get_compiler(connection=connection).as_sql()
    table = connection.ops.quote_name(model._meta.db_table)
    key_columns = _quoted_columns(model, columns.keys)
    value_columns = _quoted_columns(model, columns.values)
    on_conflict = vendors.vendor_of(connection).raise_on_conflict(table, key_columns, value_columns)
    all_columns = ", ".join([*key_columns, *value_columns])
    # With a WHERE, without which SQLite takes ON CONFLICT for a part of the SELECT. All names are
    # quoted.
    statement = (
        f"INSERT INTO {table} ({all_columns})"  # noqa: S608
        f" SELECT * FROM ({select}) AS renamed WHERE 1 = 1 {on_conflict}"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
    rows.delete()


def _quoted_columns(model: type[Model], field_names: Sequence[str]) -> list[str]:
    """Returns the quoted names of the columns of these fields."""
    quote = databases.of(model).ops.quote_name
    fields: list[Any] = [model._meta.get_field(name) for name in field_names]
    return [quote(field.column) for field in fields]
