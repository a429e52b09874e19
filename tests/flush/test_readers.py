"""Numbers of readers: stored by the hour, shown without gaps."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.test.utils import override_settings

from demo_project.engines.valkey import Valkey
from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.flush import readers
from readtrack.numbers.models import ReaderHistory
from readtrack.numbers.sql import thinning
from readtrack.sql.faults import Faults
from readtrack.store import scripts
from readtrack.subjects import subject_column, subject_of
from tests.site.models import Category
from tests.support import factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "lite"])

HOUR = timedelta(hours=1)
PAST = datetime(2026, 3, 1, 12, 0, 30, tzinfo=timezone.utc)


def read(category: Category, *pks: int) -> None:
    for pk in pks:
        tracker.mark_read(factories.user(pk=pk), [category])


def stored(category: Category) -> list[tuple[int, int]]:
    rows = ReaderHistory.objects.filter(subject=subject_of(category)).order_by("hour")
    return list(rows.values_list("hour", "readers"))


def put(category: Category, counts: dict[datetime, int]) -> None:
    for at, count in counts.items():
        ReaderHistory.objects.create(
            subject=subject_column(subject_of(category)), hour=buckets.hour_index(at), readers=count
        )


@pytest.mark.parametrize("state", ["bitmap", "sequence"])
def test_a_number_of_readers_is_stored_when_it_changes_and_falls_at_a_publication(
    state: str, noon: datetime, database: str, settings: Any
) -> None:
    settings.READTRACK = {"DOTS": {"form": state}}
    category, _ = factories.category(), factories.category()
    hour = buckets.hour_index(noon)
    read(category, 1, 2)
    assert readers.store(at=noon, faults=Faults()) == 1
    assert readers.store(at=noon + HOUR, faults=Faults()) == 0
    read(category, 3)
    assert readers.store(at=noon + 2 * HOUR, faults=Faults()) == 1
    tracker.mark_unread([category])
    assert readers.store(at=noon + 3 * HOUR, faults=Faults()) == 1
    assert readers.store(at=noon + 4 * HOUR, faults=Faults()) == 0
    assert stored(category) == [(hour, 2), (hour + 2, 3), (hour + 3, 0)]
    assert ReaderHistory.objects.count() == 3


def test_the_last_number_of_an_hour_counts_even_if_it_is_lower(
    noon: datetime, database: str
) -> None:
    category = factories.category()
    read(category, 1, 2)
    readers.store(at=noon, faults=Faults())
    tracker.mark_unread([category])
    read(category, 4)
    assert readers.store(at=noon, faults=Faults()) == 1
    assert stored(category) == [(buckets.hour_index(noon), 1)]


def test_many_categories_are_few_round_trips(
    noon: datetime, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts, "SLICE", 3)
    categories = [factories.category() for _ in range(5)]
    for category in categories:
        tracker.mark_read(factories.user(), [category])
    with wire.counted() as trips:
        assert readers.store(at=noon, faults=Faults()) == 5
    assert trips == [3]  # if Redis has its read state; slices of three and of two
    assert [stored(category)[0][1] for category in categories] == [1] * 5


def test_the_full_flush_keeps_it_and_the_frequent_one_does_not() -> None:
    category = factories.category()
    flush()
    read(category, 1)
    flush(only_changed=True)
    assert stored(category) == []
    flush()
    assert [count for _, count in stored(category)] == [1]


@override_settings(READTRACK={"NUMBERS": {"history": False}})
def test_a_site_may_do_without() -> None:
    read(factories.category(), 1)
    flush()
    assert not ReaderHistory.objects.exists()


def test_a_series_has_no_gaps_and_begins_with_what_was_known_before() -> None:
    category = factories.category()
    put(category, {PAST - 9 * HOUR: 5, PAST - 3 * HOUR: 7, PAST - HOUR: 0, PAST: 2, PAST + HOUR: 3})
    put(factories.category(), {PAST: 100})
    points = numbers_reports.reader_series(
        category, since=PAST - 5 * HOUR, until=PAST.replace(minute=0, second=0) + HOUR
    )
    assert [(point.start.hour, point.readers) for point in points] == [
        (7, 5),
        (8, 5),
        (9, 7),
        (10, 7),
        (11, 0),
        (12, 2),
    ]


def test_a_day_shows_its_last_number() -> None:
    category = factories.category()
    put(
        category,
        {PAST - 49 * HOUR: 5, PAST - 48 * HOUR: 4, PAST - 24 * HOUR: 9, PAST + 24 * HOUR: 1},
    )
    points = numbers_reports.reader_series(category, since=PAST - 72 * HOUR, until=PAST, by="day")
    assert [point.readers for point in points] == [0, 4, 9, 9]


def test_an_empty_range_has_no_points() -> None:
    assert numbers_reports.reader_series(factories.category(), since=PAST, until=PAST - HOUR) == []


def test_the_present_hour_shows_the_live_number() -> None:
    category = factories.category()
    put(category, {buckets.now() - 30 * HOUR: 5})
    read(category, 1, 2)
    points = numbers_reports.reader_series(category)
    assert [point.readers for point in points] == [5] * 23 + [2]
    assert (
        numbers_reports.reader_series(category, since=buckets.now(), until=buckets.now() + HOUR)[
            0
        ].readers
        == 2
    )


def test_with_redis_gone_the_last_number_stands(start_redis: Any) -> None:
    category = factories.category()
    put(category, {buckets.now() - 30 * HOUR: 5})
    server: Valkey = start_redis()
    read(category, 1)
    server.kill()
    assert [point.readers for point in numbers_reports.reader_series(category, hours=2)] == [5, 5]


@override_settings(READTRACK={"NUMBERS": {"days": 10}})
def test_old_days_keep_their_last_number(noon: datetime) -> None:
    category = factories.category()
    old = noon - timedelta(days=12)
    put(category, {old: 5, old + HOUR: 0, old + 2 * HOUR: 3, noon - HOUR: 4, noon: 1})
    assert thinning.thin(at=noon) == 2
    assert [count for _, count in stored(category)] == [3, 4, 1]
