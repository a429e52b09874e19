"""The dashboard's tables as files: CSV for people and spreadsheets, JSON for programs."""

import csv
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from types import SimpleNamespace
from typing import Any

from django.http import Http404, StreamingHttpResponse

from readtrack.dashboard import tables
from readtrack.dashboard.loading import load
from readtrack.dashboard.page import tables_by_tab
from readtrack.dashboard.scope import Scope
from readtrack.texts import title_of

# A spreadsheet may take another separator than the file's, and then a cell begins after each `;`.
# The last four are full-width.
FORMULA = re.compile(r"""(^|;)([\s"]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])""")


def export(scope: Scope, name: str, kind: str, **options: Any) -> StreamingHttpResponse:
    """Returns a table of the page as a CSV or JSON file, in the page's units.

    Shares and changes are in per cent, times in seconds. Columns have the headings of the page, and
    in JSON also names that are the same in all languages. A text in CSV cannot be a formula. A file
    that lacks what a silent Redis knows says so in its name, in a header, and in JSON. Rows are
    sent one by one. `options` are those of `load`. Raises Http404 for a table that the page lacks.
    """
    if not any(name in names for names in tables_by_tab(scope).values()):
        raise Http404
    data = load(scope, [name], **options)
    table = tables.table_named(name, data)
    file_name = f"{name}.{kind}" if data.is_whole else f"{name}-incomplete.{kind}"
    headers = {"Content-Disposition": f'attachment; filename="{file_name}"'}
    if not data.is_whole:
        headers["X-Readtrack-Complete"] = "false"
    if kind == "json":
        lines = _json_lines(table, is_complete=data.is_whole)
        return StreamingHttpResponse(lines, headers=headers, content_type="application/json")
    return StreamingHttpResponse(
        _csv_lines(table), headers=headers, content_type="text/csv; charset=utf-8"
    )


def _headings(table: tables.Table) -> list[str]:
    return [str(column.heading) for column in table.columns]


def _rounded_rows(table: tables.Table) -> Iterator[list[Any]]:
    """Yields the values of each row, shares with two digits."""
    for row in table.rows:
        yield [round(value, 2) if isinstance(value, float) else value for value in row.values]


def _json_lines(table: tables.Table, *, is_complete: bool) -> Iterator[str]:
    content = {
        "table": table.name,
        "is_complete": is_complete,
        "columns": [column.name for column in table.columns],
        "headings": _headings(table),
    }
    yield json.dumps(content).removesuffix("}") + ', "rows": ['
    for number, row in enumerate(_rounded_rows(table)):
        separator = ", " if number else ""
        yield separator + json.dumps(row, default=title_of)
    yield "]}"


def _csv_lines(table: tables.Table) -> Iterator[str]:
    line: Any = SimpleNamespace(write=str)  # a file that gives back what is written into it
    # Numbers have no quotes, so that they stay numbers.
    writer = csv.writer(line, quoting=csv.QUOTE_NONNUMERIC)
    rows: Iterable[list[Any]] = chain([_headings(table)], _rounded_rows(table))
    for row in rows:
        yield writer.writerow([_cell(value) for value in row])


def _cell(value: Any) -> str | int | float | None:
    """Returns a value as a cell of CSV: a number, or a text that no spreadsheet computes."""
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    # The apostrophe comes right before the character that would begin a formula.
    return FORMULA.sub(r"\1\2'", title_of(value))
