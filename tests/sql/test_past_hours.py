"""Views of the past are added to history, and taken back, in each database."""

from collections.abc import Iterable

import pytest

from readtrack.numbers.models import History
from readtrack.numbers.sql import past_hours
from readtrack.numbers.sql.history import FOREVER
from readtrack.sql import databases

pytestmark = [
    pytest.mark.django_db(databases=["default", "lite"]),
    pytest.mark.usefixtures("database"),
]

HOURS = [("site.post:1", 100, 3), ("site.post:1", 105, 2), ("site.post:2", 103, 7)]


def keep(subject: str, rows: Iterable[tuple[int, int]]) -> None:
    for hour, views in rows:
        History.objects.create(subject=subject, hour=hour, views=views, visitors=0)


def rows() -> dict[tuple[str, int], int]:
    found = History.objects.values_list("subject", "hour", "views")
    return {(subject, hour): views for subject, hour, views in found}


def lower(ends: dict[str, int], *, end_of_models: int = FOREVER) -> None:
    with databases.own_transaction(databases.of(History)):
        past_hours.lower_hours(HOURS, ends, end_of_models=end_of_models)


@pytest.fixture(autouse=True)
def _stored(database: str) -> None:  # first, because it says where the tables are
    keep("site.post:1", [(99, 10), (102, 20), (110, 30)])
    keep("site.post", [(99, 50), (104, 60), (120, 70)])
    with databases.own_transaction(databases.of(History)):
        past_hours.raise_hours(
            HOURS, {"site.post:1": 10**9, "site.post:2": 10**9}, first_live=FOREVER
        )


def test_what_was_added_is_taken_back() -> None:
    raised = rows()
    assert (raised["site.post:1", 110], raised["site.post", 120]) == (35, 82)
    lower({"site.post:1": FOREVER, "site.post:2": FOREVER})
    assert rows() == {
        ("site.post:1", 99): 10,
        ("site.post:1", 100): 10,
        ("site.post:1", 102): 20,
        ("site.post:1", 105): 20,
        ("site.post:1", 110): 30,
        ("site.post:2", 103): 0,
        ("site.post", 99): 50,
        ("site.post", 100): 50,
        ("site.post", 103): 50,
        ("site.post", 104): 60,
        ("site.post", 105): 60,
        ("site.post", 120): 70,
    }


def test_rows_from_the_end_on_and_recent_hours_of_models_stay() -> None:
    raised = rows()
    lower({"site.post:1": 106}, end_of_models=103)
    lowered = rows()
    assert lowered["site.post:1", 105] == 20
    assert lowered["site.post:1", 110] == raised["site.post:1", 110] == 35
    assert lowered["site.post:2", 103] == 7
    assert lowered["site.post", 120] == 79


def test_no_row_falls_below_zero() -> None:
    History.objects.filter(subject="site.post:1").update(views=1)
    lower({"site.post:1": FOREVER})
    assert History.objects.get(subject="site.post:1", hour=110).views == 0
