"""Tables as files: CSV for people and spreadsheets, JSON for programs."""

import csv
import json
from collections.abc import Iterator
from typing import Any

from django.db.models import Model
from django.http import StreamingHttpResponse

from readtrack.dashboard.tables import Table, title_of

FORMULAS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"  # a spreadsheet would compute such a text; the last are full-width


def export(table: Table, kind: str, *, is_complete: bool) -> StreamingHttpResponse:
    """Returns the table as CSV or JSON, in the units of the page: shares and changes in per cent, times in seconds.

    Columns have the headings of the page, and in JSON also names that are the same in all languages. A text in CSV
    cannot be a formula. A file without what a silent Redis knows says so in its name, in a header, and in JSON.
    """
    lines = _json(table, is_complete=is_complete) if kind == "json" else _csv(table)
    name = f"{table.name}.{kind}" if is_complete else f"{table.name}-incomplete.{kind}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    if not is_complete:
        headers["X-Readtrack-Complete"] = "false"
    content_type = "application/json" if kind == "json" else "text/csv; charset=utf-8"
    return StreamingHttpResponse(lines, content_type=content_type, headers=headers)


class _Line:
    """A file that gives back what is written into it."""

    def write(self, line: str) -> str:
        return line


def _csv(table: Table) -> Iterator[str]:
    writer = csv.writer(_Line())
    yield writer.writerow([_cell(column.heading) for column in table.columns])
    for row in table.rows:
        yield writer.writerow([_cell(value) for value in row.values])


def _cell(value: Any) -> Any:
    value = title_of(value) if isinstance(value, Model) else _rounded(value)
    if isinstance(value, str) and value.startswith(tuple(FORMULAS)):
        return f"'{value}"
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _rounded(value: Any) -> Any:
    return round(value, 2) if isinstance(value, float) else value


def _json(table: Table, *, is_complete: bool) -> Iterator[str]:
    columns = {"columns": [one.name for one in table.columns], "headings": [one.heading for one in table.columns]}
    yield json.dumps({"table": table.name, "is_complete": is_complete, **columns})[:-1] + ', "rows": ['
    for number, row in enumerate(table.rows):
        yield (", " if number else "") + json.dumps([*map(_rounded, row.values)], default=title_of)
    yield "]}"
