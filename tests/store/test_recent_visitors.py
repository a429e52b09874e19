"""Visitors of the last days come from one sketch a day."""

from datetime import datetime, timedelta

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.hits.visitors import Visitor
from readtrack.store import uniques
from readtrack.store.uniques import UniquesError
from tests.support import factories

ONE, TWO = "site.post:1", "site.post:2"


def view(redis: Redis, subject: str, visitor: str, at: datetime, *, days_ago: int) -> None:
    redis.delete(*redis.keys("viewed:*"), "-")
    tracker.record(
        factories.hit(subject, visitor=Visitor(visitor), at=at - timedelta(days=days_ago))
    )


@pytest.fixture
def visits(settings: Settings, redis: Redis, noon: datetime) -> None:
    settings.READTRACK = {"UNIQUE_DAYS": 35}
    for visitor, days_ago in (("a", 0), ("a", 0), ("b", 0), ("a", 1), ("c", 1), ("d", 6), ("e", 7)):
        view(redis, ONE, visitor, noon, days_ago=days_ago)
    view(redis, TWO, "a", noon, days_ago=0)
    view(redis, TWO, "f", noon, days_ago=2)


@pytest.mark.usefixtures("visits")
@pytest.mark.parametrize(("days", "first", "second"), [(1, 2, 1), (2, 3, 1), (7, 4, 2), (8, 5, 2)])
def test_visitors_of_any_number_of_days(noon: datetime, days: int, first: int, second: int) -> None:
    assert uniques.recent_visitors([ONE, TWO], days=days, at=noon) == {ONE: first, TWO: second}


@pytest.mark.usefixtures("visits")
def test_a_merged_sketch_is_good_for_an_hour(redis: Redis, noon: datetime) -> None:
    assert uniques.recent_visitors([ONE], days=7, at=noon) == {ONE: 4}
    merged = f"views:hll:days:7:20261120:{ONE}"
    assert 3500 < redis.ttl(merged) <= 3600
    view(redis, ONE, "z", noon, days_ago=0)
    assert uniques.recent_visitors([ONE], days=7, at=noon) == {ONE: 4}
    redis.delete(merged)
    assert uniques.recent_visitors([ONE], days=7, at=noon) == {ONE: 5}


@pytest.mark.usefixtures("visits")
def test_a_days_sketch_lives_as_long_as_it_can_be_asked_for(redis: Redis) -> None:
    assert redis.ttl(f"views:hll:day:20261120:{ONE}") > 34 * 86_400
    assert redis.exists(f"views:hll:{ONE}")


@pytest.mark.usefixtures("visits")
def test_more_subjects_than_a_script_takes_are_asked_for_in_portions(noon: datetime) -> None:
    subjects = [f"site.post:{number}" for number in range(1, 300)]
    found = uniques.recent_visitors(subjects, days=7, at=noon)
    assert {*found} == {*subjects}
    assert sum(found.values()) == 6


def test_by_default_no_sketch_is_written_and_asking_says_what_to_do(
    redis: Redis, noon: datetime
) -> None:
    view(redis, ONE, "a", noon, days_ago=0)
    assert redis.keys("views:hll:day:*") == []
    with pytest.raises(UniquesError, match=r"READTRACK\['UNIQUE_DAYS'\] is 0. Set it to 7 or more"):
        uniques.recent_visitors([ONE], days=7, at=noon)
    with pytest.raises(UniquesError, match="one day at least"):
        uniques.recent_visitors([ONE], days=0, at=noon)


def test_daily_sets_know_two_days_exactly(settings: Settings, redis: Redis, noon: datetime) -> None:
    settings.READTRACK = {"UNIQUE": "daily"}
    for subject, visitor, days_ago in (
        (ONE, "a", 0),
        (ONE, "b", 0),
        (ONE, "b", 1),
        (ONE, "c", 1),
        (TWO, "c", 0),
    ):
        view(redis, subject, visitor, noon, days_ago=days_ago)
    assert uniques.recent_visitors([ONE, TWO], days=1, at=noon) == {ONE: 2, TWO: 1}
    assert uniques.recent_visitors([ONE, TWO], days=2, at=noon) == {ONE: 3, TWO: 1}
    with pytest.raises(UniquesError, match="3 days are not kept"):
        uniques.recent_visitors([ONE], days=3, at=noon)


def test_no_subjects_have_no_visitors(noon: datetime) -> None:
    assert uniques.recent_visitors([], days=7, at=noon) == {}
