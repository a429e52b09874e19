"""The view `readtrack_daily` agrees with the reports, in every zone and database."""

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from operator import sub
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.management import call_command
from django.db import connections
from django.utils import timezone
from pytest_django import Settings

from readtrack import buckets
from readtrack.hits.stages import STAGES
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import DayVisitors, History
from readtrack.numbers.sql import history, history_months, model_sums, popular, sql_view
from readtrack.sql import databases
from readtrack.sql.row_counts import RowCounts
from readtrack.subjects import subject_column, subject_of
from tests.site.models import Page, Post, Product
from tests.support import factories
from tests.support.divided import unite

# Committed, because MariaDB commits at each change of a table.
pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "lite"])

FIRST = datetime(
    2026, 3, 6, 5, tzinfo=ZoneInfo("UTC")
)  # clocks change on the 8th in New York, on the 29th in Berlin
DAYS = 26


@pytest.fixture
def view(database: str) -> Iterator[str]:
    """Drops the view afterwards."""
    yield database
    sql_view.drop_view(databases.of(History))


@pytest.fixture
def shorter(view: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Lets the view know the zone of one year: SQLite's is a long list."""
    monkeypatch.setattr(
        sql_view, "HOURS", range(*map(buckets.bucket_index, ("2026010100", "2027010100")))
    )
    return view


def selected(columns: str = "*", *, where: str = "1 = 1") -> list[tuple[Any, ...]]:
    connection = databases.of(History)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM {sql_view.VIEW} WHERE {where} ORDER BY 1, 2, 3")
        return [*cursor.fetchall()]


def day_of(value: Any) -> date:
    return date.fromisoformat(value) if isinstance(value, str) else value  # SQLite has no dates


def fill(subject: str, random: Random) -> dict[date, RowCounts]:
    """Stores a history with quiet hours, a baseline or none, and resets. Returns what the counts
    gained by the day.
    """
    first, counts = buckets.hour_index(FIRST), RowCounts(0, 0)
    gained: dict[date, RowCounts] = {}
    rows = []
    if random.random() < 0.5:
        counts = RowCounts(random.randrange(1, 50), 1)
        history.begin({subject: counts})
    for hour in sorted(random.sample(range(first, first + 24 * DAYS), 60)):
        is_reset = counts.views > 30 and random.random() < 0.1
        before = RowCounts(0, 0) if is_reset else counts
        counts = RowCounts(
            before.views + random.randrange(30), before.visitors + random.randrange(5)
        )
        rows.append(
            History(
                subject=subject_column(subject),
                hour=hour,
                views=counts.views,
                visitors=counts.visitors,
            )
        )
        day = timezone.localtime(buckets.hour_start(hour)).date()
        known = gained.get(day, RowCounts(0, 0))
        gained[day] = RowCounts(
            *(sum(parts) for parts in zip(known, map(sub, counts, before), strict=True))
        )
    History.objects.bulk_create(rows)
    return gained


@pytest.mark.parametrize(
    "zone", ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Pacific/Apia"]
)
@pytest.mark.usefixtures("shorter")
def test_the_view_agrees_with_the_reports(zone: str, settings: Settings) -> None:
    settings.TIME_ZONE = zone
    random = Random(zone)
    objs = [factories.post(), Product.objects.create(name="x"), Page.objects.create(slug="é b")]
    expected = {}
    people = {}
    for obj in objs:
        subject = subject_of(obj)
        views = fill(subject, random)
        reached = [fill(history.of_stage(stage, subject), random) for stage in STAGES]
        for day in set(views).union(*reached):
            people[subject, day] = random.randrange(9)
            counts_of_day = views.get(day, RowCounts(0, 0))
            expected[subject, day] = [
                counts_of_day.views,
                people[subject, day],
                counts_of_day.visitors,
                *(by_day.get(day, RowCounts(0, 0)).views for by_day in reached),
            ]
    DayVisitors.objects.bulk_create(
        DayVisitors(subject=subject_column(subject), day=day, visitors=number, sketch=b"")
        for (subject, day), number in people.items()
    )
    history.store(
        {"site.post": RowCounts(10_000, 0)}, hour=buckets.hour_index(FIRST)
    )  # of the model
    call_command("readtrack", "daily-view", verbosity=0)
    found = {(f"{model}:{pk}", day_of(day)): counts for model, pk, day, *counts in selected()}
    assert found == expected
    since, until = FIRST - timedelta(days=1), FIRST + timedelta(days=DAYS + 1)
    for obj in objs:
        viewed = numbers_reports.series(obj, by="day", since=since, until=until)
        read = numbers_reports.series(obj, by="day", since=since, until=until, count="reads")
        for of_views, of_reads in zip(viewed, read, strict=True):
            counts = found.get((subject_of(obj), of_views.start.date()), [0])
            assert [counts[0], counts[-1]] == [of_views.views, of_reads.views]


def test_its_columns_have_types(view: str, settings: Settings) -> None:
    post = factories.post()
    history.store({subject_of(post): RowCounts(2**40, 2**33)}, hour=buckets.hour_index(FIRST))
    call_command("readtrack", "daily-view", verbosity=0)
    [row] = selected()
    assert (*row[:2], day_of(row[2]), *row[3:]) == (
        "site.post",
        str(post.pk),
        FIRST.date(),
        2**40,
        0,
        2**33,
        *[0] * len(STAGES),
    )
    assert [type(value) for value in row[3:]] == [int] * (3 + len(STAGES))
    assert isinstance(row[2], str if databases.of(History).vendor == "sqlite" else date)


@pytest.mark.usefixtures("shorter")
def test_rows_of_whole_models_are_no_objects() -> None:
    hour, seven = buckets.hour_index(FIRST), RowCounts(7, 3)
    names = ("site.post:1", "site.post", "site.post:{rt00}", "reads:site.post", "seen:site.post")
    history.store(dict.fromkeys(names, seven), hour=hour)
    call_command("readtrack", "daily-view", verbosity=0)
    assert [row[:2] for row in selected()] == [("site.post", "1")]
    assert [subject for subject, _ in popular.most(["site.post"], since=hour, until=hour + 1)] == [
        "site.post:1"
    ]
    model_sums.renew_sums(at=FIRST)


def test_it_is_made_again_and_dropped(shorter: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words, is_there in ([], True), ([], True), (["--drop"], False), (["--drop"], False):
        call_command("readtrack", "daily-view", *words)
        with connections[shorter].cursor() as cursor:
            tables = connections[shorter].introspection.table_names(cursor, include_views=True)
        assert (sql_view.VIEW in tables) is is_there
    assert re.findall(r"^\w+", capsys.readouterr().out, re.MULTILINE) == [
        "Created",
        "Created",
        "Dropped",
        "Dropped",
    ]


@pytest.mark.skipif(connections["default"].vendor != "postgresql", reason="PostgreSQL's own")
def test_it_outlives_a_division_of_history_by_month() -> None:
    connection, post = connections["default"], Post.objects.create(title="A")
    history.store({subject_of(post): RowCounts(5, 5)}, hour=buckets.hour_index(FIRST))
    sql_view.create_view(connection)
    try:
        history_months.divide(connection, at=FIRST)
        history_months.add_months(at=FIRST + timedelta(days=200))
        history.store(
            {subject_of(post): RowCounts(7, 6)},
            hour=buckets.hour_index(FIRST + timedelta(days=180)),
        )
        assert [views for _, _, _, views, *_ in selected()] == [5, 2]
    finally:
        unite(connection)
