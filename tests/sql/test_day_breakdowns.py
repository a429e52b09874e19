"""Gains of objects by value and day: added up, bounded, and deleted with the rest of history."""

from collections import Counter
from datetime import date, datetime, timedelta, timezone

import pytest
from django.db import transaction
from django.test.utils import CaptureQueriesContext, override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from readtrack.numbers.models import DayBreakdown
from readtrack.numbers.sql import day_breakdowns, thinning
from readtrack.numbers.sql.day_breakdowns import Days, Value
from readtrack.sql import archive, databases
from tests.support.depth import examples

pytestmark = [
    pytest.mark.django_db(databases=["default", "lite"], transaction=True),
    pytest.mark.usefixtures("database"),
]

TODAY = date(2026, 5, 5)
DAY = timedelta(days=1)
BY = "views:device"


def add(day: date, subject: str = "site.post:1", **gains: int) -> None:
    with transaction.atomic():
        day_breakdowns.add_gains(
            {(subject, BY, field): count for field, count in gains.items()}, day=day
        )


def rows() -> list[tuple[date, str, int]]:
    ordered = databases.rows(DayBreakdown).order_by("day", "field", "count")
    return list(ordered.values_list("day", "field", "count"))


@settings(max_examples=examples(12))
@given(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.sampled_from(["site.post:1", "site.post:2", "site.article:1"]),
            st.sampled_from("abcde"),
            st.integers(1, 9),
        ),
        max_size=12,
    )
)
def test_gains_of_a_period_are_the_sum_of_its_days(gains: list[tuple[int, str, str, int]]) -> None:
    databases.rows(DayBreakdown).all().delete()
    for age, subject, field, count in gains:
        add(TODAY - age * DAY, subject, **{field: count})
    columns = ["site.post:1", "site.article:1"]
    periods = [Days(TODAY - 2 * DAY, TODAY), Days(TODAY - 5 * DAY, TODAY - 4 * DAY)]
    gained = day_breakdowns.gains(columns, [BY, "funnel"], periods)
    for ages, found in zip((range(3), range(4, 6)), gained, strict=True):
        expected = Counter[str]()
        of_articles = Counter[str]()
        by_day: Counter[tuple[str, date]] = Counter()
        for age, subject, field, count in gains:
            if subject in columns and age in ages:
                expected[field] += count
                of_articles[field] += count if subject == "site.article:1" else 0
                if field == "a":
                    by_day[subject, TODAY - age * DAY] += count
        assert found[BY, "site.article"] == +of_articles
        assert found[BY, "site.post"] == expected - of_articles
        days = [Days(TODAY - ages[-1] * DAY, TODAY - ages[0] * DAY)]
        starts = [TODAY - age * DAY for age in reversed(ages)]
        of_value = day_breakdowns.gains_by_point(columns, Value(BY, "a"), days, starts=starts)
        assert {(gain.subject, starts[gain.number]): gain.views for gain in of_value} == by_day
        values = [Value(BY, "a"), Value("funnel", "view")]
        with_values = day_breakdowns.views_with_values(columns, values, days[0])
        assert with_values.total() == expected["a"]


@settings(max_examples=examples(12))
@given(st.lists(st.dictionaries(st.sampled_from("abcdefg"), st.integers(1, 9)), max_size=6))
def test_a_day_keeps_the_heaviest_values_and_the_sum_of_all(gained: list[dict[str, int]]) -> None:
    databases.rows(DayBreakdown).all().delete()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(day_breakdowns, "VALUES", 3)
        counted = Counter[str]()
        for gains in gained:
            add(TODAY, "site.post:1", **gains)
            counted.update(gains)
            kept = {field: count for _, field, count in rows()}
            assert sum(kept.values()) == counted.total()
            assert len(kept.keys() - {"other"}) == min(3, len(counted))
            assert all(count <= counted[field] for field, count in kept.items() if field != "other")
    if len(gained) == 1:
        heaviest = sorted(counted.values())[-3:]
        assert sorted(count for field, count in kept.items() if field != "other") == heaviest


def test_a_full_hash_takes_no_field_from_other_hashes_and_days(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(day_breakdowns, "VALUES", 2)
    add(TODAY - DAY, a=1, b=1)
    gains = {("site.post:1", BY, field): count for field, count in {"a": 3, "b": 2}.items()}
    gains[("site.post:1", "funnel", "c")] = 9
    gains[("site.post:2", BY, "c")] = 1
    for _ in range(2):
        with transaction.atomic():
            day_breakdowns.add_gains({**gains, ("site.post:1", BY, "c"): 1}, day=TODAY)
    kept = databases.rows(DayBreakdown).order_by("day", "subject", "kind", "field")
    assert list(kept.values_list("day", "subject", "kind", "field", "count")) == [
        (TODAY - DAY, "site.post:1", BY, "a", 1),
        (TODAY - DAY, "site.post:1", BY, "b", 1),
        (TODAY, "site.post:1", "funnel", "c", 18),
        (TODAY, "site.post:1", BY, "a", 6),
        (TODAY, "site.post:1", BY, "b", 4),
        (TODAY, "site.post:1", BY, "other", 2),
        (TODAY, "site.post:2", BY, "c", 2),
    ]


@pytest.mark.parametrize("by_growth", [False, True])
def test_the_best_by_a_value_are_those_with_the_most_views_or_the_most_more(
    *, by_growth: bool
) -> None:
    views = {1: (9, 8), 2: (7, 1), 3: (5, 0), 4: (1, 0)}  # of the period, and of the one before
    for pk, (now, before) in views.items():
        for age, count in ((0, now - 1), (1, 1), (3, before)):
            if count:
                add(TODAY - age * DAY, f"site.post:{pk}", phone=count, tablet=1)
    add(TODAY, "site.article:1", phone=99)
    periods = [Days(TODAY - DAY, TODAY), Days(TODAY - 3 * DAY, TODAY - 2 * DAY)]
    best = (2, 3) if by_growth else (1, 2)
    for columns in (None, [f"site.post:{pk}" for pk in range(9)]):
        found = day_breakdowns.gains_of_best_by_point(
            columns,
            Value(BY, "phone"),
            periods,
            starts=[TODAY - 9 * DAY],
            ranked_by=dict(zip(periods, (1, -1) if by_growth else (1, 0), strict=True)),
            limit=2,
            labels=["site.post", "a.b"],
        )
        assert sorted(found) == [(f"site.post:{pk}", 0, sum(views[pk])) for pk in best]


def test_of_many_days_no_more_rows_are_read_than_points() -> None:
    for age in range(60):
        many(TODAY - age * DAY, 4)
    starts = [TODAY - age * DAY for age in (59, 39, 19)]
    days = [Days(TODAY - 59 * DAY, TODAY)]
    columns = [f"site.post:{pk}" for pk in range(3)]
    found = day_breakdowns.gains_by_point(columns, Value(BY, "phone"), days, starts=starts)
    assert sorted(found) == [(column, number, 20) for column in columns for number in range(3)]
    of_best = day_breakdowns.gains_of_best_by_point(
        None,
        Value(BY, "phone"),
        days,
        starts=starts,
        ranked_by={days[0]: 1},
        limit=3,
        labels=["site.post"],
    )
    assert sorted(of_best) == sorted(found)


def test_of_no_subjects_and_no_models_no_gain_is_read() -> None:
    days = Days(TODAY, TODAY)
    with CaptureQueriesContext(databases.of(DayBreakdown)) as queries:
        of_value = day_breakdowns.gains_by_point([], Value(BY, "a"), [days], starts=[TODAY])
        of_best = day_breakdowns.gains_of_best_by_point(
            [], Value(BY, "a"), [days], starts=[TODAY], ranked_by={days: 1}, limit=9
        )
        assert day_breakdowns.best_with_each([], [Value(BY, "a")], days, limit=9) == []
    assert (of_value, of_best, len(queries)) == ([], [], 0)


def test_the_best_with_each_of_several_values_are_those_with_the_most_of_the_first() -> None:
    both = [Value(BY, "phone"), Value("funnel", "view")]
    days = Days(TODAY - DAY, TODAY)
    for pk, phone, views in ((1, 2, 9), (2, 3, 1), (3, 9, 0), (4, 4, 1)):
        add(TODAY, f"site.post:{pk}", phone=phone)
        if views:
            with transaction.atomic():
                day_breakdowns.add_gains({(f"site.post:{pk}", "funnel", "view"): views}, day=TODAY)
    add(TODAY - 2 * DAY, "site.post:2", phone=9)
    found = day_breakdowns.best_with_each(["site.post"], both, days, limit=2)
    assert found == ["site.post:4", "site.post:2"]  # before: the one with the most of both together


def many(day: date, number: int) -> None:
    gains = {(f"site.post:{pk}", BY, "phone"): 1 for pk in range(number)}
    with transaction.atomic():
        day_breakdowns.add_gains(gains, day=day)


def test_the_gains_of_many_objects_take_two_queries() -> None:
    with CaptureQueriesContext(databases.of(DayBreakdown)) as queries:
        many(TODAY, 300)
    assert len([query for query in queries if "daybreakdown" in query["sql"]]) == 2


def test_no_gain_makes_no_query() -> None:
    with CaptureQueriesContext(databases.of(DayBreakdown)) as queries:
        day_breakdowns.add_gains({}, day=TODAY)
    assert len(queries) == 0


@pytest.mark.parametrize("years", [0, 1])
def test_days_go_after_the_years_of_history(years: int) -> None:
    for age in (0, 94, 500):
        add(TODAY - age * DAY, a=2)
    with override_settings(READTRACK={"NUMBERS": {"days": 90, "years": years}}):
        at = datetime(2026, 5, 5, 12, tzinfo=timezone.utc)
        assert thinning.thin(at=at) == (1 if years else 0)
    kept = [*([] if years else [TODAY - 500 * DAY]), TODAY - 94 * DAY, TODAY]
    assert rows() == [(day, "a", 2) for day in kept]


def test_a_deleted_object_leaves_none() -> None:
    add(TODAY, a=1)
    add(TODAY, "site.post:2", a=1)
    archive.delete(["site.post:1"])
    assert list(databases.rows(DayBreakdown).values_list("subject", flat=True)) == ["site.post:2"]
