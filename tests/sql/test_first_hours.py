"""The first hours of history come with another query, and are those of the rows."""

from collections.abc import Callable
from datetime import date

import pytest
from django.test.utils import CaptureQueriesContext

from readtrack.numbers.models import BreakdownHistory, History
from readtrack.numbers.saved import flush_notes_days
from readtrack.numbers.sql import period_steps
from readtrack.numbers.sql.first_hours import NO_HOURS_ASKED, AskedHours, FirstHours
from readtrack.numbers.sql.history import BASELINE
from readtrack.sql import databases

pytestmark = [
    pytest.mark.django_db(databases=["default", "lite"]),
    pytest.mark.usefixtures("database"),
]

DAY = date(2026, 3, 1)
Asks = Callable[[AskedHours], FirstHours]


def beside_the_last_flush(asked: AskedHours) -> FirstHours:
    return flush_notes_days(DAY, DAY, asked_hours=asked).first_hours


def beside_steps(asked: AskedHours) -> FirstHours:
    names = ["site.post:1", "site.post:2"]
    steps, found = period_steps.steps_and_first_hours(names, [30, 60], until=90, asked_hours=asked)
    assert steps == {"site.post:1": {0: 2, 1: 3}, "site.post:2": {}}
    return found


def beside_long_steps(asked: AskedHours) -> FirstHours:
    _steps, found = period_steps.steps_and_first_hours(
        ["site.post:1"], [30, 60], until=90, only_periods=[1], asked_hours=asked
    )
    return found


@pytest.mark.parametrize("ask", [beside_the_last_flush, beside_steps, beside_long_steps])
def test_the_first_hours_are_looked_up_with_another_query(ask: Asks) -> None:
    for name, hour, views in (
        ("site.post:1", 20, 1),
        ("site.post:1", 40, 3),
        ("site.post:1", 70, 6),
        ("a.b", BASELINE, 1),
        ("a.b", 900, 1),
        ("a.b", 30, 1),
        ("c.d", 70, 1),
        ("e.f", 5, 1),
    ):
        History.objects.create(subject=name, hour=hour, views=views, visitors=0)
    for label, kind, hour in (
        ("a.b", "views:device", 80),
        ("c.d", "views:device", 60),
        ("e.f", "views:device", 5),
        ("a.b", "funnel", 9),
        ("a.b", "views:os", 7),
    ):
        BreakdownHistory.objects.create(subject=label, kind=kind, hour=hour, field="x", count=1)
    asked = AskedHours(["a.b", "c.d"], ["a.b", "c.d"], ["views:device", "funnel", "views:country"])
    with CaptureQueriesContext(databases.of(History)) as queries:
        found = ask(asked)
    # What a baseline has was viewed before the first hour, perhaps before `years` of history.
    assert found == FirstHours(30, {"views:device": 60, "funnel": 9})
    assert len(queries) == 1
    assert ask(AskedHours(["c.d", "x.y"])) == FirstHours(70, {})
    assert ask(AskedHours([], ["x.y"], ["funnel"])) == FirstHours(None, {})
    assert ask(NO_HOURS_ASKED) == FirstHours(None, {})
