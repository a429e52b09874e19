"""The tables of the page for the template: their rows as texts and with links."""

from collections.abc import Iterable, Mapping, Sequence
from math import log2
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.utils.formats import date_format

from readtrack.dashboard.timeline import link_to_object
from readtrack.numbers import tables
from readtrack.numbers.changes import multiple
from readtrack.numbers.details import details_of
from readtrack.numbers.scope import Scope, dimension_names
from readtrack.numbers.usual import word_of
from readtrack.numbers.words_of_story import PLACES
from readtrack.texts import address_of

FILES = ("csv", "json")  # formats of exports
#: Columns that no page shows: the number before, without which nobody knows that a change is "new".
#: Beside a number that has today in it, too, it would contradict the change. Files have it.
HIDDEN = ("before",)
SCALE = 3  # the gauge goes from 2 ** -3 to 2 ** 3 times the usual


class Gauge(NamedTuple):
    """How many times the usual views an object has, as a place on a scale, a number and a word."""

    text: str
    level: str  # the Word of `readtrack.numbers.story`, as a part of the name of a class
    word: str
    start: float  # of the bar from the middle, in per cent of the scale
    length: float


class File(NamedTuple):
    """An entry of the menu of exports: a table of the page, and the addresses of its files."""

    title: str
    addresses: Mapping[str, str]  # by format


class PageRow(NamedTuple):
    """A row of a table for the template."""

    head: dict[str, Any]  # the first cell: its column and text, perhaps a file and its title
    cells: list[dict[str, Any]]  # the other cells: column and text
    link: str  # to the object's numbers, or to the dashboard with one more filter; "" for none
    url: str  # of the object's page on the site; "" for none


def linked_objects(shown_tables: Iterable[tables.Table]) -> Iterable[str]:
    """Yields the subjects of the objects that the page shows."""
    for table in shown_tables:
        for row in table.rows[: table.row_limit]:
            if "object" in row.filters:
                yield row.filters["object"]


def files_of(shown_tables: Iterable[tables.Table], scope: Scope) -> list[File]:
    """Returns the entries of the menu of exports, without tables that have no rows."""
    files = []
    for table in shown_tables:
        if table.rows:
            addresses = {
                file_format: scope.address(table=table.name, format=file_format)
                for file_format in FILES
            }
            files.append(File(table.title, addresses))
    return files


def gauge_of(times: float | None) -> Gauge | None:
    """Returns the gauge of an object with so many times its usual views; None if that is not
    known.
    """
    if times is None:
        return None
    word = word_of(times)
    powers = log2(max(times, 2**-SCALE))
    place = 50 + 50 * min(1.0, powers / SCALE)
    return Gauge(
        text=multiple(times),
        level=word.replace(" ", "-"),
        word=str(PLACES[word]),
        start=round(min(50.0, place), 1),
        length=round(abs(place - 50), 1),
    )


def shown_columns(table: tables.Table) -> list[tables.Column]:
    """Returns the columns of a table that pages show."""
    return [column for column in table.columns if column.name not in HIDDEN]


def row_of(table: tables.Table, row: tables.Row, scope: Scope, *, site: str | None) -> PageRow:
    """Returns a row of a table for the template, without the HIDDEN columns."""
    texts = tables.texts_of_row(row, table.columns)
    cells: list[dict[str, Any]] = []
    for column, text, value in zip(table.columns, texts, row.values, strict=True):
        if column.name in HIDDEN:
            continue
        cell: dict[str, Any] = {"column": column, "text": text}
        if column.value_kind == "times":
            cell["gauge"] = gauge_of(value)
        cells.append(cell)
    head, *other_cells = cells
    if "object" in row.filters:
        head["details"] = details_texts(row.values[0])
    link = link_of(row, scope, site=site)
    return PageRow(head, other_cells, link, url=address_of(row.values[0]))


def table_context(table: tables.Table, scope: Scope, *, site: str | None) -> dict[str, Any]:
    """Returns a table for the template: its first rows as texts and with links."""
    rows = []
    shown_rows = table.rows[: table.row_limit]
    bars = _bars(table, shown_rows)
    for row, bar in zip(shown_rows, bars, strict=True):
        page_row = row_of(table, row, scope, site=site)
        page_row.head["bar"] = bar
        if page_row.link and table.name == "grew-most":  # in others it is two clicks away already
            page_row.head.update(_sources_file(row.values[0], scope, site=site))
        rows.append(page_row)
    return {"table": table, "columns": shown_columns(table), "rows": rows}


def _bars(table: tables.Table, rows: Sequence[tables.Row]) -> list[int]:
    """Returns the length of each row's bar in per cent of the longest: of its first number."""
    kinds = [column.value_kind for column in table.columns]
    if "number" not in kinds:
        return [0] * len(rows)
    index = kinds.index("number")
    numbers = [row.values[index] or 0 for row in rows]
    longest = max([1, *numbers])
    return [round(100 * number / longest) for number in numbers]


def details_texts(obj: Any) -> list[str]:
    """Returns when the object was published, its category and its author, as far as is known."""
    details = details_of(obj)
    published = date_format(details.published, "DATE_FORMAT") if details.published else ""
    return [text for text in (published, details.category, details.author) if text]


def link_of(row: tables.Row, scope: Scope, *, site: str | None) -> str:
    """Returns the address of the object's numbers, or of this page with one more filter.

    It is "" for a row that leads nowhere.
    """
    is_chosen = row.filters.items() <= scope.chosen.items()
    if is_chosen:
        return ""
    if "object" in row.filters:
        return link_to_object(row.values[0], scope, site=site)
    return scope.address(**row.filters) if scope.takes(*row.filters) else ""


def _sources_file(obj: Any, scope: Scope, *, site: str | None) -> dict[str, str]:
    """Returns the address and title of a CSV file: where an object's views of the period came from.

    It is the table of the first dimension, whatever value is chosen. Empty on a site without
    dimensions.
    """
    dimensions = dimension_names()
    if not dimensions:
        return {}
    without_values = dict.fromkeys(scope.values, "")
    link = link_to_object(obj, scope, site=site, **without_values)
    parameters = urlencode({"table": f"by-{dimensions[0]}", "format": "csv"})
    return {"file": f"{link}&{parameters}", "file_title": tables.labels_of(dimensions[0]).title}
