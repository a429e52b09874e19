"""The dashboard's tables as files: CSV for people and spreadsheets, JSON for programs."""

import csv
import json
from collections.abc import Iterator
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from django.http import Http404, StreamingHttpResponse

from readtrack.numbers import local_time, tables
from readtrack.numbers.cells import no_formula
from readtrack.numbers.detailed import rounded, with_details
from readtrack.numbers.loading import load
from readtrack.numbers.offered import tables_by_tab
from readtrack.numbers.scope import Scope
from readtrack.texts import title_of

#: Without it, spreadsheets take the file for one in the machine's old character set.
BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


def export(
    scope: Scope, table_name: str, file_format: str, **options: Any
) -> StreamingHttpResponse:
    """Returns a table of the page as a CSV or JSON file, in the page's units.

    Shares and changes are in per cent, times in seconds. Columns have the headings of the page, and
    in JSON also names that are the same in all languages. Objects also have their address,
    category, author and day of publication, as far as these are known. In CSV, times are local ones
    that spreadsheets understand, and a text cannot be a formula. If Redis does not answer, the file
    says in its name, in a header and in JSON that it is incomplete. Rows are sent one by one.
    `options` are those of `load`. Raises Http404 for a table that the page lacks.
    """
    if not any(table_name in table_names for table_names in tables_by_tab(scope).values()):
        raise Http404
    data = load(scope, [table_name], **options)
    table = with_details(tables.table_named(table_name, data))
    headers = {}
    file_name = f"{table_name}.{file_format}"
    if not data.is_whole:
        file_name = f"{table_name}-incomplete.{file_format}"
        headers["X-Readtrack-Complete"] = "false"
    headers["Content-Disposition"] = f'attachment; filename="{file_name}"'
    if file_format == "json":
        lines = _json_lines(table, is_complete=data.is_whole)
        return StreamingHttpResponse(lines, headers=headers, content_type="application/json")
    is_daily = all(start == local_time.day_start(local_time.day_of(start)) for start in data.starts)
    lines = _csv_lines(table, is_daily=is_daily)
    return StreamingHttpResponse(lines, headers=headers, content_type="text/csv; charset=utf-8")


def _headings(table: tables.Table) -> list[str]:
    return [str(column.heading) for column in table.columns]


def _rounded_rows(table: tables.Table) -> Iterator[list[Any]]:
    """Yields the values of each row, with numbers rounded to two decimal places."""
    for row in table.rows:
        yield [rounded(value) for value in row.values]


def _json_lines(table: tables.Table, *, is_complete: bool) -> Iterator[str]:
    """Yields the parts of a JSON object: its members but the rows, then each row."""
    content = {
        "table": table.name,
        "is_complete": is_complete,
        "columns": [column.name for column in table.columns],
        "headings": _headings(table),
        "caption": str(table.caption),
    }
    yield json.dumps(content).removesuffix("}") + ', "rows": ['
    for index, row in enumerate(_rounded_rows(table)):
        separator = ", " if index else ""
        yield separator + json.dumps(row, default=title_of)
    yield "]}"


def _csv_lines(table: tables.Table, *, is_daily: bool) -> Iterator[str]:
    """Yields the headings and each row as lines of CSV."""
    yield BOM
    # `writerow` returns what the file's `write` returns, which is here the line itself.
    file: Any = SimpleNamespace(write=str)
    # Numbers have no quotes, so that they stay numbers.
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
    yield writer.writerow([_cell(heading) for heading in _headings(table)])
    for row in _rounded_rows(_with_local_times(table, is_daily=is_daily)):
        yield writer.writerow([_cell(value) for value in row])


def _with_local_times(table: tables.Table, *, is_daily: bool) -> tables.Table:
    """Returns the table of the chart's values with its times as spreadsheets understand them.

    They are local times without a zone, or days if each one is the beginning of a day, which is not
    midnight where clocks skip it. Other tables have no times.
    """
    if table.columns[0].value_kind != "time":
        return table
    times = [datetime.fromisoformat(row.values[0]) for row in table.rows]
    time_format = "%Y-%m-%d" if is_daily else "%Y-%m-%d %H:%M"
    rows = []
    for time, row in zip(times, table.rows, strict=True):
        rows.append(row._replace(values=(time.strftime(time_format), *row.values[1:])))
    return table._replace(rows=rows)


def _cell(value: Any) -> str | int | float | None:
    """Returns a value as a cell of CSV: a number, or a text that no spreadsheet computes."""
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    return no_formula(title_of(value))
