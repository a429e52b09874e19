"""The values of a dimension in a period: right against a count by hand, for any objects and days."""

from collections import Counter
from datetime import date, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries, Settings

from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import DayBreakdown
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.depth import examples

pytestmark = pytest.mark.django_db(transaction=True)

TODAY = date(2026, 11, 20)


@pytest.fixture(autouse=True)
def dimensions(settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device", "referrer"]}}


def in_days(rows: list[tuple[int, int, str, int]], posts: list[Post]) -> None:
    """Stores gains: age in days, number of the post, device and views."""
    DayBreakdown.objects.all().delete()
    sums: Counter[tuple[int, int, str]] = Counter()
    for age, number, device, views in rows:
        sums[age, number, device] += views
    today = buckets.local_day(buckets.hour_index(buckets.now()))
    for (age, number, device), views in sums.items():
        DayBreakdown.objects.create(
            subject=subject_of(posts[number]),
            kind="views:device",
            day=today - timedelta(days=age),
            field=device,
            count=views,
        )


GAINS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.integers(0, 2),
        st.sampled_from(["phone", "tablet", "desktop"]),
        st.integers(1, 9),
    ),
    max_size=15,
)


@hypothesis_settings(max_examples=examples(15))
@given(GAINS, st.integers(1, 11))
def test_the_values_of_a_period_are_the_sum_of_its_days(
    rows: list[tuple[int, int, str, int]], days: int
) -> None:
    Post.objects.all().delete()
    posts = [factories.post() for _ in range(3)]
    in_days(rows, posts)
    expected = Counter[str]()
    between = Counter[str]()
    for age, number, device, views in rows:
        if number < 2 and age < days:
            expected[device] += views
        if number < 2 and days // 2 < age <= days:
            between[device] += views
    assert numbers_reports.breakdown(posts[:2], "device", days=days) == expected
    today = buckets.local_day(buckets.hour_index(buckets.now()))
    since = today - timedelta(days=days)
    until = today - timedelta(days=days // 2)
    assert numbers_reports.breakdown(posts[:2], "device", since=since, until=until) == between


def test_a_view_is_in_the_values_of_today_after_the_next_flush(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    posts = [factories.post(), factories.post()]
    for post, device in ((posts[0], "phone"), (posts[0], "tablet"), (posts[1], "phone")):
        tracker.record(factories.hit(subject_of(post), dimensions=(("device", device),)))
    assert numbers_reports.breakdown(posts, "device", days=1) == {}
    flush(only_changed=True)
    with django_assert_num_queries(1):
        found = numbers_reports.breakdown(posts, "device", days=1)
    assert list(found.items()) == [("phone", 2), ("tablet", 1)]
    assert numbers_reports.breakdown(posts[0], "device", days=1) == {"phone": 1, "tablet": 1}
    assert numbers_reports.breakdown(posts, "referrer", days=1) == {}
    yesterday = buckets.now() - timedelta(days=1)
    assert (
        numbers_reports.breakdown(posts, "device", since=yesterday - buckets.DAY, until=yesterday)
        == {}
    )


@pytest.mark.parametrize(
    "period",
    [
        {"days": 0},
        {"until": TODAY},
        {"days": 7, "since": TODAY},
    ],
)
def test_what_is_no_period_is_an_error(period: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="A period is"):
        numbers_reports.breakdown(factories.post(), "device", **period)


def test_a_period_needs_history(settings: Settings) -> None:
    numbers = settings.READTRACK["NUMBERS"]
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {**numbers, "history": False}}
    with pytest.raises(ValueError, match="that needs history"):
        numbers_reports.breakdown(factories.post(), "device", days=7)


def test_many_objects_take_a_query_for_each_thousand() -> None:
    posts = [Post(pk=pk) for pk in range(1, 1501)]
    with CaptureQueriesContext(connection) as queries:
        assert numbers_reports.breakdown(posts, "device", days=7) == {}
    assert len(queries) == 2
