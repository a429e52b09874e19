"""Days of visitors in SQL, in each database."""

from datetime import date, timedelta

import pytest
from django.utils import timezone

from readtrack.models import FlushRun
from readtrack.numbers.flush import day_visitors as days_of_flush
from readtrack.numbers.models import DayVisitors, Note
from readtrack.numbers.saved import NOTHING_SAVED, flush_notes_days
from readtrack.numbers.sql import day_visitors
from readtrack.numbers.sql.day_visitors import AskedDays
from readtrack.sql import databases
from readtrack.store.uniques import Union

pytestmark = [
    pytest.mark.django_db(databases=["default", "lite"]),
    pytest.mark.usefixtures("database"),
]

FIRST = date(2026, 3, 1)
DAY = timedelta(days=1)


def write(subject: str, day: date, visitors: int) -> None:
    new = {(subject, day): Union(visitors, f"sketch {visitors}".encode())}
    assert day_visitors.raise_days(new, read={}) == []


def test_the_last_flush_notes_and_days_come_by_one_query() -> None:
    now = timezone.now()
    empty = flush_notes_days(FIRST, FIRST + 9 * DAY)
    assert empty == NOTHING_SAVED
    FlushRun.objects.create(started=now, ended=now, kind="full", flushed_until=7)
    for text, age in (("second", 1), ("first", 0), ("too late", 10)):
        Note.objects.create(day=FIRST + age * DAY, text=text)
    for number in range(3):
        write("blog.post", FIRST + number * DAY, number + 1)
    write("blog.post:1", FIRST, 5)
    asked = [
        AskedDays(["blog.post"], FIRST, FIRST + DAY, has_blocks=False, has_sketches=False),
        AskedDays(["blog.post:1", "gone"], FIRST, FIRST + DAY, limit=9),
    ]
    saved = flush_notes_days(FIRST, FIRST + 9 * DAY, days=asked)
    assert saved.run == FlushRun.objects.get()
    assert saved.full_until == 7
    assert saved.notes == [(FIRST, "first"), (FIRST + DAY, "second")]
    assert sorted(saved.days) == [
        ("blog.post", FIRST, 1, b"", 1),
        ("blog.post", FIRST + DAY, 2, b"", 1),
        ("blog.post:1", FIRST, 5, b"sketch 5", 1),
    ]
    assert {type(row.visitors) for row in saved.days} == {int}
    assert {type(row.length) for row in saved.days} == {int}


def test_a_row_rises_and_never_falls() -> None:
    write("blog.post", FIRST, 3)
    day = ("blog.post", FIRST)
    assert day_visitors.raise_days({day: Union(5, b"x")}, read={day: 2}) == [day]
    assert day_visitors.raise_days({day: Union(2, b"x")}, read={day: 3}) == []
    [row] = day_visitors.stored(AskedDays(["blog.post"], FIRST, FIRST))
    assert (row.visitors, row.sketch) == (3, b"sketch 3")
    assert day_visitors.raise_days({day: Union(4, b"y")}, read={day: 3}) == []
    [row] = day_visitors.stored(AskedDays(["blog.post"], FIRST, FIRST))
    assert (row.visitors, row.sketch) == (4, b"y")


def test_a_block_stands_for_its_days_where_all_of_them_are_in_the_period() -> None:
    start = day_visitors.block_start(FIRST, length=4)
    for number in range(4):
        write("blog.post", start + number * DAY, 10 + number)
    day_visitors.add_blocks(start, {"blog.post": Union(40, b"block")}, length=4, read=46)
    last = start + 3 * DAY

    def lengths(first: date, last: date) -> list[int]:
        return sorted(
            row.length for row in day_visitors.stored(AskedDays(["blog.post"], first, last))
        )

    assert lengths(start, last) == [4]
    assert lengths(start - DAY, last + DAY) == [4]
    assert lengths(start + DAY, last) == [1, 1, 1]
    assert lengths(start, last - DAY) == [1, 1, 1]
    assert databases.rows(DayVisitors).count() == 5


def test_the_flush_takes_the_days_that_its_buckets_reach() -> None:
    noon = timezone.now().replace(hour=12, minute=0)
    midnight = noon.replace(hour=0, minute=20)
    assert len(days_of_flush.last_days(noon)) == 1
    assert len(days_of_flush.last_days(midnight)) == 2
    assert days_of_flush.all_days(noon)[-1] == noon.date()
    assert len(days_of_flush.all_days(noon)) == 4  # a key of the first one may be left


def sketches() -> dict[tuple[str, date], int]:
    rows = DayVisitors.objects.values_list("subject", "day", "visitors")
    return {(subject, day): visitors for subject, day, visitors in rows}


def test_visitors_of_the_past_are_added_once_however_often_they_come() -> None:
    came = {
        ("site.post:1", FIRST): {"anna", "ben"},
        ("site.post:2", FIRST): {"anna", *map(str, range(1_500))},
        ("site.post:1", FIRST + DAY): {"anna"},
    }
    for _ in range(2):
        days_of_flush.add(came)
        stored = sketches()
        model = stored.pop(("site.post", FIRST))
        two = stored.pop(("site.post:2", FIRST))
        assert 1_450 < two < 1_550
        assert 0 <= model - two <= 2
        assert stored == {
            ("site.post:1", FIRST): 2,
            ("site.post:1", FIRST + DAY): 1,
            ("site.post", FIRST + DAY): 1,
        }
    days_of_flush.add({("site.post:1", FIRST): {"ben", "carl"}})
    assert sketches()["site.post:1", FIRST] == 3


def test_a_sketch_in_sql_that_is_none_is_replaced() -> None:
    write("site.post:1", FIRST, 1)
    days_of_flush.add({("site.post:1", FIRST): {"anna", "ben"}})
    assert sketches()["site.post:1", FIRST] == 2
