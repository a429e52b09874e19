"""The gains of subjects by place of a period are those that all rows of history add up to."""

from bisect import bisect_right
from collections import defaultdict
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from readtrack.models import Reset
from readtrack.numbers.models import History
from readtrack.numbers.sql import history, period_steps
from readtrack.sql import databases
from tests.support.depth import examples

pytestmark = [
    pytest.mark.django_db(databases=["default", "lite"]),
    pytest.mark.usefixtures("database"),
]

FIRST = 500_000
STARTS = [FIRST + 24 * day for day in range(6)]
UNTIL = FIRST + 24 * 6
SUBJECTS = ["site.post:1", "reads:site.post:1", "site.post:2", "site.product:x"]
# By subject, hours before and after the first one: views, visitors, and 1 for a reset before.
ROWS = st.dictionaries(
    st.tuples(st.sampled_from(SUBJECTS), st.integers(-30, 24 * 6)),
    st.tuples(st.integers(1, 9), st.integers(0, 12), st.sampled_from([0] * 9 + [1])),
    max_size=60,
)


def written(
    rows: dict[tuple[str, int], tuple[int, int, int]], *, baseline: int = 0
) -> dict[str, list[Any]]:
    """Writes absolute counts, and which subjects were reset. Returns the rows by subject, oldest
    first.
    """
    History.objects.all().delete()
    Reset.objects.all().delete()
    found: dict[str, list[Any]] = {
        name: [(0, baseline, 0)] if baseline else [] for name in SUBJECTS
    }
    for (name, hour), (views, visitors, is_reset) in sorted(rows.items()):
        old = found[name][-1] if found[name] and not is_reset else (0, 0, 0)
        found[name].append((FIRST + hour, old[1] + views, old[2] + visitors))
        if is_reset:
            subject = name.removeprefix("reads:")
            Reset.objects.update_or_create(
                subject=subject, defaults={"redis_time": 1, "full_subject": subject}
            )
    History.objects.bulk_create(
        History(subject=name, hour=hour, views=views, visitors=visitors)
        for name, some in found.items()
        for hour, views, visitors in some
    )
    return found


def added_up(rows: list[Any]) -> dict[int, int]:
    """Returns the gains by place of one subject: of a count that fell in between, from the highest
    of each place.
    """
    last = next((views for hour, views, _ in reversed(rows) if hour < FIRST), 0)
    highest: dict[int, int] = defaultdict(int)
    for hour, views, _ in rows:
        if FIRST <= hour < UNTIL:
            place = bisect_right(STARTS, hour) - 1
            highest[place] = max(highest[place], views)
    found = {}
    for place, views in sorted(highest.items()):
        found[place] = views if views < last else views - last
        last = views
    return {place: gain for place, gain in found.items() if gain}


def steps(names: list[str]) -> dict[str, dict[int, int]]:
    """Returns what `steps` finds, without places where nothing was gained."""
    found = period_steps.steps(names, STARTS, until=UNTIL)
    return {
        name: {place: views for place, views in own.items() if views} for name, own in found.items()
    }


@pytest.mark.parametrize("dense", [0, 1, 100])
@settings(max_examples=examples(12))
@given(rows=ROWS, baseline=st.sampled_from([0, 3]))
def test_gains_by_place_are_those_of_all_rows_however_many_are_read(
    rows: dict[tuple[str, int], tuple[int, int, int]],
    baseline: int,
    dense: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(period_steps, "DENSE", dense)
    found = written(rows, baseline=baseline)
    assert steps([*SUBJECTS, "site.post:3"]) == {
        **{name: added_up(some) for name, some in found.items()},
        "site.post:3": {},
    }
    if not any(is_reset for *_, is_reset in rows.values()):
        in_period = {
            name: [views for hour, views, _ in some if hour < UNTIL] for name, some in found.items()
        }
        before = {
            name: [views for hour, views, _ in some if hour < FIRST] for name, some in found.items()
        }
        sums = {name: sum(places.values()) for name, places in steps(SUBJECTS).items()}
        assert sums == {
            name: max([0, *in_period[name]]) - max([0, *before[name]]) for name in SUBJECTS
        }


@settings(max_examples=examples(12))
@given(rows=ROWS, gap=st.integers(0, 4))
def test_steps_of_whole_periods_add_up_to_those_of_their_places(
    rows: dict[tuple[str, int], tuple[int, int, int]], gap: int
) -> None:
    written(rows)
    places = [place for place in (gap - 1, gap, 5) if place >= 0]
    fine, coarse = (
        period_steps.steps(SUBJECTS, STARTS, until=UNTIL, only_periods=some)
        for some in (None, places)
    )

    def sums(found: period_steps.Steps) -> list[int]:
        periods = (range(gap), range(gap, gap + 1), range(gap + 1, 6))
        return [sum(found.get(place, 0) for place in period) for period in periods]

    assert {name: sums(own) for name, own in coarse.items()} == {
        name: sums(own) for name, own in fine.items()
    }
    if databases.of(History).vendor == "postgresql" and not Reset.objects.exists():
        assert {place for own in coarse.values() for place in own} <= {*places}


def hourly(name: str) -> dict[tuple[str, int], tuple[int, int, int]]:
    return {(name, hour): (1, 1, 0) for hour in range(24 * 6)}


def test_a_subject_that_is_viewed_every_hour_is_looked_up_at_the_ends_of_places_unless_it_was_reset() -> (
    None
):
    rows = {**hourly("site.post:1"), **hourly("reads:site.post:1"), ("site.post:2", 30): (5, 1, 0)}
    for is_reset in (0, 1):
        rows["site.post:1", 100] = rows["reads:site.post:1", 100] = (1, 1, is_reset)
        found = written(rows)
        assert steps(SUBJECTS) == {name: added_up(some) for name, some in found.items()}
        # The highest of the day of the reset is that of before.
        assert steps(SUBJECTS)["site.post:1"][4] == (4 if is_reset else 24)
        whole = period_steps.steps(["site.post:1"], STARTS, until=UNTIL, only_periods=[5])
        assert sum(whole["site.post:1"].values()) == sum(steps(SUBJECTS)["site.post:1"].values())


def test_periods_of_hours_are_added_up_too() -> None:
    written({("site.post:1", hour): (2, 1, 0) for hour in (-1, 0, 3, 5)})
    starts = [FIRST + hour for hour in range(5)]
    assert period_steps.steps(["site.post:1"], starts, until=FIRST + 5) == {
        "site.post:1": {0: 2, 3: 2}
    }


def test_the_first_hour_is_that_of_the_earliest_row_but_for_the_baseline() -> None:
    written(
        {
            ("site.post:1", 5): (1, 0, 0),
            ("site.post:2", 3): (1, 0, 0),
            ("site.product:x", 1): (1, 0, 0),
        },
        baseline=3,
    )
    assert history.first_hour(["site.post:1", "site.post:2"]).first() == FIRST + 3
    assert history.first_hour(["site.post:3"]).first() is None


def test_thousands_of_names_are_found_by_one_query(monkeypatch: pytest.MonkeyPatch) -> None:
    written({("site.post:1", 1): (2, 1, 0)})
    with CaptureQueriesContext(connection) as queries:
        period_steps.steps(
            [*SUBJECTS, *(f"site.post:{number}" for number in range(10, 3_000))],
            STARTS,
            until=UNTIL,
        )
    assert len(queries) <= 1
