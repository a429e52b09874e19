"""History divided by month, on PostgreSQL."""

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, connections, transaction
from django.db.migrations.state import ProjectState
from django.test.utils import override_settings

from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.numbers.models import History
from readtrack.numbers.operations import PartitionHistory
from readtrack.numbers.reports import series
from readtrack.numbers.sql import history, history_months, thinning
from readtrack.sql.row_counts import RowCounts
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.divided import unite
from tests.support.waiting import comes_true

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "lite"]),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL's own"),
]

DAY = timedelta(days=1)
START = datetime(2026, 3, 10, 8, tzinfo=timezone.utc)
YEARS_LATER = datetime(2029, 3, 10, 8, tzinfo=timezone.utc)
TWO_YEARS = override_settings(READTRACK={"NUMBERS": {"years": 2}})


def operate(*, alias: str = "default") -> None:
    state = ProjectState.from_apps(apps)
    with connections[alias].schema_editor(atomic=False) as editor:
        PartitionHistory().database_forwards("site", editor, state, state)


@pytest.fixture
def divided() -> Iterator[None]:
    """Divides history as in March 2026, for one test."""
    keep(START, 5)
    history_months.divide(connection, at=START)
    yield
    unite(connection)
    assert months() == []


def keep(at: datetime, views: int) -> None:
    history.store({"site.post:1": RowCounts(views, views)}, hour=buckets.hour_index(at))


def months() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tablename FROM pg_tables WHERE tablename LIKE 'readtrack_numbers_history_%%' ORDER BY tablename"
        )
        return [name.removeprefix("readtrack_numbers_history_") for (name,) in cursor.fetchall()]


def rows() -> list[tuple[int, int]]:
    return list(History.objects.order_by("hour").values_list("hour", "views"))


def test_a_table_in_use_is_divided() -> None:
    post = factories.post()
    tracker.record(factories.hit(subject_of(post)))
    flush()
    before, charts = rows(), [series(post), series(Post), series()]
    operate()
    assert months() == ["past"]
    assert rows() == before
    tracker.record(factories.hit(subject_of(post)))
    flush()
    assert sum(point.views for point in series(post)) == sum(point.views for point in series()) == 2
    unite(connection)
    assert [sum(point.views for point in points) for points in (series(post), series(Post))] == [
        2,
        2,
    ]
    assert [sum(point.views for point in points) for points in charts] == [1, 1, 1]


def test_other_databases_are_left_alone() -> None:
    operate(alias="lite")
    assert PartitionHistory().describe() == "Divide history by month"
    assert not PartitionHistory().reversible
    assert PartitionHistory().deconstruct() == ("PartitionHistory", (), {})


def test_it_is_divided_in_the_transaction_of_a_migration_too() -> None:
    keep(START, 5)
    with transaction.atomic():
        history_months.divide(connection, at=START)
    assert months() == ["past"]
    unite(connection)
    assert rows() == [(buckets.hour_index(START), 5)]


def test_months_leave_room_to_raise_rows_in_place_as_the_first_table_does(divided: None) -> None:
    history_months.add_months(at=START)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT reloptions FROM pg_class"
            " WHERE relkind = 'r' AND relname LIKE 'readtrack_numbers_history_2%%'"
        )
        assert cursor.fetchall() == [([f"fillfactor={history_months.FILLFACTOR}"],)]


def test_the_months_to_come_are_added_once(divided: None) -> None:
    for _ in range(2):
        history_months.add_months(at=START)
    assert months() == ["2026_05", "past"]
    history_months.add_months(at=START + 100 * DAY)
    assert months() == ["2026_05", "2026_06", "2026_07", "2026_08", "past"]
    for days in (0, 60, 120, 170):
        keep(START + days * DAY, days)
    assert [views for _, views in rows()] == [5, 60, 120, 170]


def test_two_processes_add_the_months_once(divided: None) -> None:
    def add() -> None:
        history_months.add_months(at=START + 100 * DAY)
        connections.close_all()

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert months() == ["2026_05", "2026_06", "2026_07", "2026_08", "past"]


def test_a_full_flush_adds_the_months_that_it_needs(divided: None) -> None:
    flush()
    assert (
        months()[-2]
        == f"{buckets.hour_start(history_months._month_start(buckets.now(), history_months.AHEAD)):%Y_%m}"
    )


@TWO_YEARS
def test_old_months_are_dropped_and_no_chart_shows_their_views(divided: None) -> None:
    history_months.add_months(at=YEARS_LATER)
    for days, views in ((100, 20), (101, 30), (800, 36), (1_000, 40)):
        keep(START + days * DAY, views)
    assert len(months()) == 38
    assert thinning.thin(at=YEARS_LATER) == 1  # the row in the first partition
    assert [views for _, views in rows()] == [30, 36, 40]
    assert rows()[0][0] == history.BASELINE
    assert months()[:2] == ["2027_03", "2027_04"]
    assert [
        *history.sums(["site.post:1"], since=0, until=10**6)["site.post:1"].by_hour().values()
    ] == [6, 4]


@TWO_YEARS
def test_what_a_killed_process_left_of_a_month_is_dropped_by_the_next_one(divided: None) -> None:
    history_months.add_months(at=YEARS_LATER)
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE readtrack_numbers_history DETACH PARTITION readtrack_numbers_history_2026_05"
        )
    thinning.thin(at=YEARS_LATER)
    assert months()[0] == "2027_03"


@TWO_YEARS
def test_nobody_waits_for_months_that_are_detached(divided: None) -> None:
    """A transaction that has written to history makes the detaching wait, and nobody waits for
    that.
    """
    history_months.add_months(at=YEARS_LATER)
    keep(START + 100 * DAY, 20)
    failed: list[Exception] = []

    def thin() -> None:
        try:
            thinning.thin(at=YEARS_LATER)
        except Exception as error:
            failed.append(error)
        connections.close_all()

    thread = threading.Thread(target=thin)
    with transaction.atomic():
        keep(YEARS_LATER, 50)
        thread.start()
        assert comes_true(_is_detaching)
        other = connections["default"].copy()
        with other.cursor() as cursor:
            cursor.execute("SET lock_timeout = '100ms'")
            hour = buckets.hour_index(YEARS_LATER)
            cursor.execute(
                "INSERT INTO readtrack_numbers_history VALUES ('site.post:2', %s, 1, 1)", [hour]
            )
            cursor.execute("SELECT count(*) FROM readtrack_numbers_history WHERE hour > 0")
            assert cursor.fetchone()[0] > 0
        other.close()
        assert _is_detaching()
    thread.join()
    assert not failed
    assert months()[0] == "2027_03"
    assert sorted(views for _, views in rows()) == [1, 20, 50]


@TWO_YEARS
def test_in_a_transaction_old_rows_go_one_by_one(divided: None) -> None:
    history_months.add_months(at=YEARS_LATER)
    keep(START + 100 * DAY, 20)
    with transaction.atomic():
        assert thinning.thin(at=YEARS_LATER) == 2
    assert rows() == [(history.BASELINE, 20)]
    assert months()[0] == "2026_05"


def _is_detaching() -> bool:
    with connections["default"].copy().cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        waiting: Any = cursor.fetchone()[0]
        cursor.connection.close()
    return bool(waiting)
