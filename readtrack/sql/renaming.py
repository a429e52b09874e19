"""Rows about a model that was renamed, or about a row with a new primary key, get its new name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import F, Model, Q, QuerySet, Value
from django.db.models.functions import Concat, Length, Substr
from django.db.models.lookups import LessThanOrEqual

from readtrack.models import (
    SUBJECT_LENGTH,
    Archive,
    Breakdown,
    BreakdownHistory,
    History,
    Popular,
    ReaderHistory,
    Rename,
    Reset,
    SubjectCount,
)
from readtrack.sql import databases, vendors
from readtrack.sql.history import of_reads, of_visitors
from readtrack.subjects import subject_column, subject_in


class Columns(NamedTuple):
    """The names of a table's columns. Of two rows with one key, the higher first value stays."""

    keys: Sequence[str]
    values: Sequence[str]


TABLES: Mapping[type[Model], Columns] = {
    Archive: Columns(("subject",), ("views", "visitors", "sketch", "hour")),
    SubjectCount: Columns(("subject",), ("view_count", "visitor_count")),
    Breakdown: Columns(("subject", "kind", "field"), ("count",)),
    BreakdownHistory: Columns(("subject", "kind", "hour", "field"), ("count",)),
    History: Columns(("subject", "hour"), ("views", "visitors")),
    Popular: Columns(("subject", "days"), ("views", "visitors", "since", "until")),
    ReaderHistory: Columns(("subject", "hour"), ("readers",)),
    Reset: Columns(("subject",), ("redis_time", "full_subject", "is_deletion")),
}


def has_tables() -> bool:
    """Returns True once readtrack's own migrations have run."""
    models: list[type[Model]] = [Rename, *TABLES]
    for model in models:
        if model._meta.db_table not in databases.of(model).introspection.table_names():
            return False
    return True


def rename_model(before: str, after: str, *, pks: Iterable[Any]) -> None:
    """Gives all rows about a model with the label `before`, and about its objects, the new label.

    `pks` are the primary keys of the objects, for subjects too long for their column.
    """
    if before == after:
        return
    # A longer subject ends in a hash, which the new one does not share.
    longest = SUBJECT_LENGTH - 1 - max(0, len(after) - len(before))
    for of in (str, of_reads, of_visitors):
        old = of(before)
        new = of(after)
        for model in TABLES:
            named = Q(subject=old) | Q(subject__startswith=f"{old}:")
            rows = databases.rows(model).filter(named)
            short = rows.filter(
                LessThanOrEqual(Length("subject"), longest - len(old) + len(before))
            )
            subject = Concat(Value(new), Substr("subject", len(old) + 1))
            full_subject = Concat(Value(after), Substr("full_subject", len(before) + 1))
            _move(model, short, subject=subject, full_subject=full_subject)
    has_longer = any(_of_objects(model, before).exists() for model in TABLES)
    if not has_longer:
        return
    for pk in pks:
        long_subject = subject_in(before, pk)
        if len(of_reads(long_subject)) > longest:
            rename_subject(long_subject, subject_in(after, pk))


def _of_objects(model: type[Model], label: str) -> "QuerySet[Any]":
    """Returns the rows about objects of the model with that label."""
    are_own = Q(subject__startswith=f"{label}:") | Q(subject__startswith=f"{of_reads(label)}:")
    return databases.rows(model).filter(are_own)


def rename_subject(before: str, after: str) -> None:
    """Gives all rows about an object its new name."""
    for of in (str, of_reads):
        old = subject_column(of(before))
        new = subject_column(of(after))
        if old == new:
            continue
        for model in TABLES:
            rows = databases.rows(model).filter(subject=old)
            vendor = vendors.vendor_of(databases.of(model))
            if vendor.ignores_case and new.casefold() == old.casefold():
                _rename_in_place(model, rows, subject=new, full_subject=after)
            else:
                _move(model, rows, subject=Value(new), full_subject=Value(after))


def _rename_in_place(model: type[Model], rows: "QuerySet[Any]", **renamed: str) -> None:
    """Changes the rows of a name that differs in case only, which MySQL takes for the same."""
    columns = TABLES[model]
    own = {name: renamed[name] for name in renamed if name in (*columns.keys, *columns.values)}
    rows.update(**own)


def _move(model: type[Model], rows: "QuerySet[Any]", **renamed: Any) -> None:
    """Writes the rows under another subject, then deletes them. `renamed` are the new columns."""
    columns = TABLES[model]
    names = [*columns.keys, *columns.values]
    # By names of their own, because MySQL takes the others for those of the table.
    values = {f"new_{name}": renamed.get(name, F(name)) for name in names}
    connection = databases.of(model)
    quote = connection.ops.quote_name
    select, parameters = (
        rows.annotate(**values)
        .values_list(*values)
        .query.get_compiler(connection=connection)
        .as_sql()
    )
    table = quote(model._meta.db_table)
    own_fields: list[Any] = [model._meta.get_field(name) for name in names]
    fields = [quote(field.column) for field in own_fields]
    end = vendors.vendor_of(connection).raise_on_conflict(
        table, fields[: len(columns.keys)], fields[len(columns.keys) :]
    )
    # With a WHERE, without which SQLite takes ON CONFLICT for a part of the SELECT.
    statement = (
        f"INSERT INTO {table} ({', '.join(fields)})"  # noqa: S608 - quoted names
        f" SELECT * FROM ({select}) AS renamed WHERE 1 = 1 {end}"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
    rows.delete()
