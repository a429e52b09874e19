"""History: rows by the hour, charts without gaps in local time, and old rows made fewer."""

from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test.utils import override_settings
from django.utils import timezone as current
from redis import Redis

from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.numbers import local_time
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import History, ReaderHistory
from readtrack.numbers.reports import series
from readtrack.numbers.sql import history, thinning
from readtrack.sql.row_counts import RowCounts
from readtrack.subjects import subject_of
from tests.site.models import Headline, Post
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def keep(subject: str, views: dict[datetime, int]) -> None:
    for at, count in views.items():
        history.store({subject: RowCounts(count, 0)}, hour=buckets.hour_index(at))


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[arg-type, misc]


def shown(points: list[numbers_reports.Point], form: str) -> dict[str, int]:
    return {f"{point.start:{form}}": point.views for point in points}


def test_a_series_has_no_gaps_and_is_the_difference_of_totals() -> None:
    keep("site.post", {utc(2026, 3, 1, 8): 100, utc(2026, 3, 1, 10): 103, utc(2026, 3, 1, 12): 110})
    points = series(Post, since=utc(2026, 3, 1, 9, 30), until=utc(2026, 3, 1, 13))
    assert shown(points, "%H:%M") == {"09:00": 0, "10:00": 3, "11:00": 0, "12:00": 7}
    assert series(Headline, since=utc(2026, 3, 1, 9, 30), until=utc(2026, 3, 1, 13)) == points


def test_a_count_that_was_set_to_zero_goes_on_from_there() -> None:
    post = factories.post()
    keep(subject_of(post), {utc(2026, 3, 1, 8): 100, utc(2026, 3, 1, 9): 4, utc(2026, 3, 1, 10): 6})
    points = series(post, since=utc(2026, 3, 1, 9), until=utc(2026, 3, 1, 11))
    assert [point.views for point in points] == [4, 2]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("day", {"03-28": 1, "03-29": 2, "03-30": 4}),
        ("week", {"03-23": 3, "03-30": 4}),
        ("month", {"03-01": 7}),
    ],
)
def test_periods_are_those_of_the_sites_time_zone(by: Any, expected: dict[str, int]) -> None:
    # In Berlin the 29th begins at 23:00 UTC, is 23 hours long, and ends at 22:00 UTC.
    keep(
        "site.post",
        {
            utc(2026, 3, 28, 22): 1,
            utc(2026, 3, 28, 23): 2,
            utc(2026, 3, 29, 21): 3,
            utc(2026, 3, 29, 22): 7,
        },
    )
    with current.override(ZoneInfo("Europe/Berlin")):
        points = series(since=utc(2026, 3, 28, 12), until=utc(2026, 3, 30, 12), by=by)
    assert shown(points, "%m-%d") == expected


def test_an_hour_that_comes_twice_is_two_and_one_that_is_skipped_none() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    with current.override(berlin):
        autumn = local_time.period_starts(utc(2026, 10, 24, 23), utc(2026, 10, 25, 3), by="hour")
        spring = local_time.period_starts(utc(2026, 3, 29, 0), utc(2026, 3, 29, 3), by="hour")
    assert [start.astimezone(berlin).hour for start in autumn] == [1, 2, 2, 3]
    assert [start.astimezone(berlin).hour for start in spring] == [1, 3, 4]


def test_a_day_without_a_midnight_starts_at_one() -> None:
    santiago = ZoneInfo("America/Santiago")
    with current.override(santiago):
        starts = local_time.period_starts(utc(2026, 9, 5, 12), utc(2026, 9, 7, 12), by="day")
    local = [start.astimezone(santiago) for start in starts]
    assert [(start.day, start.hour) for start in local] == [(5, 0), (6, 1), (7, 0)]


@pytest.mark.parametrize("by", ["minute", "nonsense"])
def test_an_unknown_period_is_an_error_that_lists_the_known_ones(by: Any) -> None:
    for ask in (
        numbers_reports.series,
        partial(numbers_reports.reader_series, factories.category()),
    ):
        with pytest.raises(
            ValueError, match=f"no period '{by}'; choose one of: hour, day, week, month"
        ):
            ask(by=by)


@pytest.mark.parametrize("by", ["hour", "day"])
def test_an_empty_range_has_no_points(by: Any) -> None:
    assert series(since=utc(2026, 3, 2), until=utc(2026, 3, 1), by=by) == []


def test_a_chart_includes_views_that_are_not_flushed_yet(redis: Redis) -> None:
    post = factories.post()
    now = buckets.now()
    flush()
    for hours in (0, 1, 1):
        tracker.record(factories.hit(subject_of(post), at=now - hours * HOUR))
    assert [point.views for point in series(post, hours=3)] == [0, 2, 1]
    assert [point.views for point in series(hours=3)] == [0, 2, 1]
    flush(only_changed=True)
    tracker.record(factories.hit(subject_of(post)))
    assert sum(point.views for point in series(post, hours=2)) in (
        2,
        4,
    )  # an hour may end meanwhile
    assert sum(point.views for point in series(hours=3)) == 4


def test_a_count_from_before_there_was_history_is_no_views_of_today() -> None:
    post = factories.post()
    Post.objects.update(view_count=500)
    post.refresh_from_db()
    assert sum(point.views for point in series(post)) == 0


def test_views_of_an_unknown_hour_follow_the_last_row(redis: Redis) -> None:
    post = factories.post()
    now = buckets.now()
    keep(subject_of(post), {now - 30 * HOUR: 5})
    redis.set(f"views:total:{subject_of(post)}", 8)
    points = series(post, since=now - 31 * HOUR)
    assert [(index, point.views) for index, point in enumerate(points) if point.views] == [
        (1, 5),
        (2, 3),
    ]


def test_views_of_this_hour_that_redis_forgot_the_hour_of_are_of_this_hour(redis: Redis) -> None:
    post = factories.post()
    keep(subject_of(post), {buckets.now(): 5})
    redis.set(f"views:total:{subject_of(post)}", 8)
    assert sum(point.views for point in series(post, hours=2)) == 8


@override_settings(READTRACK={"NUMBERS": {"days": 10}})
def test_old_days_keep_their_last_hour_and_the_sum_of_the_day(noon: datetime) -> None:
    old, young = noon - timedelta(days=12), noon - timedelta(days=3)
    for subject in ("site.post", "site.post:1"):
        keep(
            subject, {day + hours * HOUR: hours + 1 for day in (old, young) for hours in (0, 1, 2)}
        )
    keep("site.post:2", {old: 5})
    before = series(since=old, until=old + 5 * HOUR, by="day")
    assert thinning.thin(at=noon) == 4
    assert thinning.thin(at=noon) == 0
    kept = History.objects.filter(hour__lt=buckets.hour_index(young))
    assert set(kept.values_list("subject", "views")) == {
        ("site.post", 3),
        ("site.post:1", 3),
        ("site.post:2", 5),
    }
    assert History.objects.filter(hour__gte=buckets.hour_index(young)).count() == 6
    assert series(since=old, until=old + 5 * HOUR, by="day") == before


@pytest.fixture
def like_mysql(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets Django write what it writes for MySQL, whose subqueries may not read the table that a
    statement changes.
    """
    for name in ("update_can_self_select", "delete_can_self_reference_subquery"):
        monkeypatch.setattr(connection.features, name, False)


@pytest.mark.usefixtures("like_mysql")
def test_old_days_are_thinned_on_mysql_too(noon: datetime) -> None:
    start = (noon - 92 * DAY).replace(hour=0, minute=0, second=0)
    keep("site.post:1", {start + hour * HOUR: hour + 1 for hour in (1, 3, 22)})
    keep("site.post:2", {start + 2 * HOUR: 1})
    for hour in (4, 9):
        ReaderHistory.objects.create(
            subject="site.category:1", hour=buckets.hour_index(start) + hour, readers=hour
        )
    assert thinning.thin(at=noon) == 3
    assert [row.views for row in History.objects.order_by("subject")] == [23, 1]
    assert [row.readers for row in ReaderHistory.objects.all()] == [9]


@pytest.mark.parametrize(("years", "kept"), [(0, 1), (2, 0)])
def test_days_are_kept_for_ever_or_as_long_as_a_site_wants(
    noon: datetime, years: int, kept: int
) -> None:
    keep("site.post:1", {noon - timedelta(days=800): 5})
    with override_settings(READTRACK={"NUMBERS": {"years": years}}):
        thinning.thin(at=noon)
    assert History.objects.filter(hour__gt=history.BASELINE).count() == kept


def test_thinning_nothing_is_no_error(noon: datetime) -> None:
    assert thinning.thin(at=noon) == 0


@pytest.mark.parametrize("by", ["hour", "day"])
def test_views_at_the_end_of_a_range_are_in_no_period_before_it(by: Any) -> None:
    keep("site.post", {utc(2026, 3, 1, 8): 1, utc(2026, 3, 2, 0): 5})
    assert (
        sum(point.views for point in series(since=utc(2026, 3, 1), until=utc(2026, 3, 2), by=by))
        == 1
    )


@pytest.mark.parametrize("by", ["hour", "month"])
def test_what_a_row_had_before_its_first_view_is_in_no_chart(by: Any, redis: Redis) -> None:
    post, other = factories.post(view_count=1_000, visitor_count=300), factories.post()
    since = current.now() - DAY if by == "hour" else utc(1970, 1, 1)

    def charted() -> list[int]:
        for row in (post, other):
            row.refresh_from_db()
        return [
            sum(point.views for point in series(of, since=since, by=by))
            for of in (post, other, Post)
        ]

    for number in (1, 2, 3):
        tracker.record(factories.hit(subject_of(post), subject_of(other)))
        assert charted() == [number, number, 2 * number]
        flush(only_changed=True)
        assert charted() == [number, number, 2 * number]
        redis.flushdb()
        flush()
        assert charted() == [number, number, 2 * number]
    past = History.objects.filter(hour=history.BASELINE)
    assert list(past.values_list("subject", "views", "visitors")) == [
        (subject_of(post), 1_000, 300)
    ]


def test_history_that_goes_becomes_the_baseline(noon: datetime) -> None:
    history.begin({"site.post:1": RowCounts(1_000, 300)})
    history.begin({"site.post:1": RowCounts(2_000, 300)})
    history.begin({})
    keep("site.post:1", {noon - 800 * DAY: 1_003, noon - 799 * DAY: 1_005, noon - 10 * DAY: 1_010})
    with override_settings(READTRACK={"NUMBERS": {"years": 1}}):
        assert thinning.thin(at=noon) == 2
    assert list(History.objects.order_by("hour").values_list("views", flat=True)) == [1_005, 1_010]
    assert [
        *history.sums(["site.post:1"], since=0, until=10**6)["site.post:1"].by_hour().values()
    ] == [5]


def test_without_history_there_is_no_baseline() -> None:
    with override_settings(READTRACK={"NUMBERS": {"history": False}}):
        tracker.record(factories.hit(subject_of(factories.post(view_count=1_000))))
        flush()
    assert not History.objects.exists()
