"""Gains of models by value and hour: added up, bounded, and thinned like the rest of history."""

from collections import Counter, defaultdict
from datetime import datetime, timezone

import pytest
from django.db import transaction
from django.test.utils import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from readtrack import buckets
from readtrack.numbers.models import BreakdownHistory
from readtrack.numbers.sql import breakdown_history, thinning
from readtrack.numbers.sql.breakdown_history import Gains
from tests.support.depth import examples

pytestmark = [
    pytest.mark.django_db(databases=["default", "lite"], transaction=True),
    pytest.mark.usefixtures("database"),
]

NOON = datetime(2026, 5, 5, 12, tzinfo=timezone.utc)
HOUR = buckets.hour_index(NOON)
BY = "views:device"


def add(hour: int, label: str = "site.post", **gains: int) -> None:
    with transaction.atomic():
        breakdown_history.add_gains(
            {(label, BY, field): count for field, count in gains.items()}, hour=hour
        )


def found(*spans: range) -> list[Gains]:
    return breakdown_history.gains(
        ["site.post", "site.article"], [BY, "funnel"], spans or [range(HOUR + 1)]
    )


def rows() -> list[tuple[int, str, int]]:
    return list(
        BreakdownHistory.objects.order_by("hour", "field", "count").values_list(
            "hour", "field", "count"
        )
    )


@settings(max_examples=examples(12))
@given(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.sampled_from(["site.post", "site.article"]),
            st.sampled_from("abcde"),
            st.integers(1, 9),
        ),
        max_size=12,
    )
)
def test_gains_of_a_range_are_the_sum_of_its_hours(gains: list[tuple[int, str, str, int]]) -> None:
    BreakdownHistory.objects.all().delete()
    for hour, label, field, count in gains:
        add(hour, label, **{field: count})
    for span in (range(6), range(2, 4)):
        expected: Gains = defaultdict(Counter)
        for hour, label, field, count in gains:
            expected[BY, label][field] += count if hour in span else 0
        sums = found(span, range(9, 10))
        assert {name: counts for name, counts in sums[0].items() if counts} == {
            name: +counts for name, counts in expected.items() if +counts
        }
        assert not any(sums[1].values())


def test_of_too_many_values_the_least_of_an_hour_are_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breakdown_history, "VALUES", 2)
    add(HOUR, a=5, b=3, c=2, d=1)
    add(HOUR, "site.article", c=1)
    assert rows()[:3] == [(HOUR, "a", 5), (HOUR, "b", 3), (HOUR, "c", 1)]
    add(HOUR, c=9, other=1)
    assert rows() == [(HOUR, "a", 5), (HOUR, "c", 1), (HOUR, "c", 9), (HOUR, "other", 7)]
    add(HOUR - 1, b=1)
    assert found()[0][BY, "site.post"]["b"] == 1


def test_a_value_for_which_there_is_no_room_takes_none_with_it_that_differs_in_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(breakdown_history, "VALUES", 2)
    add(HOUR, A=50, b=40)
    add(HOUR, a=1)
    assert sorted(rows()) == [
        (HOUR, "A", 50),
        (HOUR, "b", 40),
        (HOUR, "other", 1),
    ]  # before, on MariaDB: without A


@pytest.mark.parametrize("years", [0, 1])
def test_old_hours_become_days_and_days_go_after_years(years: int) -> None:
    for hours in (0, 1, 24 * 94, 24 * 94 + 1, 24 * 500):
        add(HOUR - hours, a=2, b=1)
    with override_settings(READTRACK={"NUMBERS": {"days": 90, "years": years}}):
        assert thinning.thin(at=NOON) == (4 if years else 2)
        assert thinning.thin(at=NOON) == 0
    day = buckets.hour_index(NOON.replace(hour=23)) - 24 * 94
    kept = [*([] if years else [HOUR - 24 * 500]), day, HOUR - 1, HOUR]
    assert rows() == [
        (hour, field, count * (2 if hour == day else 1))
        for hour in kept
        for field, count in (("a", 2), ("b", 1))
    ]
