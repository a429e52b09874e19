"""The room in the tables that flushes update, so that PostgreSQL raises rows where they are."""

from datetime import date
from typing import Any

import pytest
from django.db import connection

from readtrack.models import Archive
from readtrack.numbers.models import Breakdown, DayBreakdown, DayVisitors, History
from readtrack.sql import databases

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL's own"),
]

DAY = date(2026, 11, 29)
SUBJECTS = [f"site.post:{number:04}" for number in range(1000)]
RAISED = SUBJECTS[::10]


def pages(model: Any) -> dict[str, float]:
    """Returns the page of the raised rows, by subject."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT subject, (ctid::text::point)[0] FROM {model._meta.db_table}")
        page_by_subject = dict(cursor.fetchall())
    return {subject: page_by_subject[subject] for subject in RAISED}


@pytest.mark.parametrize(
    ("model", "keys", "values"),
    [
        (Archive, {}, {"views": 1, "visitors": 1, "sketch": b"HYLL", "hour": 1}),
        (Breakdown, {"kind": "views:device", "field": "phone"}, {"count": 1}),
        (DayBreakdown, {"kind": "views:device", "day": DAY, "field": "phone"}, {"count": 1}),
        (DayVisitors, {"day": DAY, "length": 1}, {"visitors": 1, "sketch": b"HYLL", "part_of": 0}),
        (History, {"hour": 1}, {"views": 1, "visitors": 1}),
    ],
)
def test_a_row_that_is_raised_stays_in_its_page(
    model: Any, keys: dict[str, Any], values: dict[str, Any]
) -> None:
    def store(subjects: list[str]) -> None:
        rows = [(subject, *keys.values(), *values.values()) for subject in subjects]
        databases.upsert(model, ("subject", *keys), [*values], rows=rows)

    store(SUBJECTS)
    pages_before = pages(model)
    first_value = next(iter(values))
    values[first_value] += 1
    store(RAISED)
    assert pages(model) == pages_before
