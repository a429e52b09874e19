"""Tables as files and programs get them: with more about their objects, and rounded numbers."""

from typing import Any

from django.utils.translation import gettext_lazy

from readtrack.numbers import tables
from readtrack.numbers.details import details_of
from readtrack.texts import address_of

#: The columns about objects that files have and the page has not.
DETAILS = (
    tables.Column("url", gettext_lazy("Address"), "text"),
    tables.Column("category", gettext_lazy("Category"), "text"),
    tables.Column("author", gettext_lazy("Author"), "text"),
    tables.Column("published", gettext_lazy("Published"), "text"),
)


def with_details(table: tables.Table) -> tables.Table:
    """Returns the table with four columns more about its objects, if it has objects."""
    if not any("object" in row.filters for row in table.rows):
        return table
    rows = []
    for row in table.rows:
        obj = row.values[0]
        details = details_of(obj)
        published = details.published.isoformat() if details.published else None
        more = (address_of(obj), details.category, details.author, published)
        rows.append(row._replace(values=(*row.values, *more)))
    return table._replace(columns=[*table.columns, *DETAILS], rows=rows)


def rounded(value: Any) -> Any:
    """Returns a number rounded to two decimal places, and any other value as it is."""
    if isinstance(value, float):
        return round(value, 2)
    return value
