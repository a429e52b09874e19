"""Rows of the app's own tables follow the new name of a model or of an object."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from django.db import models
from django.test.utils import isolate_apps

from readtrack.models import Archive, ReadState, Reset, SubjectCount, SubjectRow
from readtrack.numbers.models import (
    Breakdown,
    BreakdownHistory,
    DayBreakdown,
    DayVisitors,
    History,
    Popular,
    ReaderHistory,
)
from readtrack.numbers.sql.history import of_reads
from readtrack.sql import databases, renaming, subject_tables
from readtrack.subjects import subject_column

pytestmark = pytest.mark.django_db(databases=["default", "lite"])

OLD = "shop.topic"
NEW = "shop.discussion"

MAKERS: list[Callable[[str, int], Any]] = [
    lambda subject, number: Archive(
        subject=subject, views=number, visitors=number, sketch=b"HYLL", hour=9
    ),
    lambda subject, number: SubjectCount(subject=subject, view_count=number, visitor_count=number),
    lambda subject, number: Breakdown(
        subject=subject, kind="views:device", field="phone", count=number
    ),
    lambda subject, number: BreakdownHistory(
        subject=subject, kind="views:device", hour=9, field="phone", count=number
    ),
    lambda subject, number: DayBreakdown(
        subject=subject, kind="views:device", day=date(2026, 11, 20), field="phone", count=number
    ),
    lambda subject, number: DayVisitors(
        subject=subject, day=date(2026, 11, 20), visitors=number, sketch=b"HYLL"
    ),
    lambda subject, number: History(subject=subject, hour=9, views=number, visitors=number),
    lambda subject, number: Popular(subject=subject, days=7, since=1, until=9, views=number),
    lambda subject, number: ReaderHistory(subject=subject, hour=9, readers=number),
    lambda subject, number: ReadState(
        subject=subject, full_subject=subject, family="read", published=number, state=b""
    ),
    lambda subject, number: Reset(subject=subject, redis_time=number, full_subject=subject),
]


def write(*subjects: str, number: int = 5) -> None:
    """Writes a row about each subject into each table."""
    for make in MAKERS:
        rows = [make(subject, number) for subject in subjects]
        databases.rows(type(rows[0])).bulk_create(rows)


def write_reads(*subjects: str, number: int = 5) -> None:
    """Writes a row of each subject's reads."""
    databases.rows(History).bulk_create(
        History(subject=subject, hour=9, views=number, visitors=number) for subject in subjects
    )


def found_in(model: type[SubjectRow]) -> dict[str, int]:
    """Returns the numbers in the rows of the table, by subject."""
    number = subject_tables.columns_of(model).values[0]
    return dict(databases.rows(model).values_list("subject", number))


def found() -> dict[str, int]:
    """Returns the numbers in the rows of all tables, by subject. All tables have the same ones, and
    history has numbers of reads, too.
    """
    numbers = found_in(History)
    without_reads = {name: numbers[name] for name in numbers if not name.startswith(of_reads(""))}
    for model in subject_tables.every():
        if model is not History:
            assert found_in(model) == without_reads
    return numbers


def rename(*pks: Any) -> None:
    renaming.rename_model(OLD, NEW, pks=pks)


def test_the_rows_of_a_model_and_of_its_objects_follow_and_no_others(database: str) -> None:
    others = ["shop.topics:1", "shop.topical", "shop.topi:1", "blog.topic:1", "shopxtopic:1"]
    write(OLD, f"{OLD}:{{rt07}}", f"{OLD}:1", f"{OLD}:a%20b", *others)
    write_reads(of_reads(f"{OLD}:1"), of_reads(OLD), number=3)
    rename()
    assert found() == {
        NEW: 5,
        f"{NEW}:{{rt07}}": 5,
        f"{NEW}:1": 5,
        f"{NEW}:a%20b": 5,
        of_reads(f"{NEW}:1"): 3,
        of_reads(NEW): 3,
        **dict.fromkeys(others, 5),
    }
    assert databases.rows(Reset).get(subject=f"{NEW}:1").full_subject == f"{NEW}:1"
    rename()
    assert found()[NEW] == 5


@pytest.mark.parametrize(("old", "new"), [(5, 3), (3, 5)])
def test_of_two_rows_the_higher_one_stays(database: str, old: int, new: int) -> None:
    write(f"{OLD}:1", number=old)
    write(f"{NEW}:1", number=new)
    rename()
    assert found() == {f"{NEW}:1": 5}


# A name of reads is six characters longer than its subject.
@pytest.mark.parametrize("length", [171, 172, 174, 177, 178, 180, 185, 190, 193, 199, 200, 300])
def test_long_keys_follow(database: str, length: int) -> None:
    keys = ["k" * length, "m" * length]
    write(*[subject_column(f"{OLD}:{key}") for key in keys])
    write_reads(*[subject_column(of_reads(f"{OLD}:{key}")) for key in keys], number=3)
    rename(*keys)
    expected: dict[str, int] = {}
    for key in keys:
        expected[subject_column(f"{NEW}:{key}")] = 5
        expected[subject_column(of_reads(f"{NEW}:{key}"))] = 3
    assert found() == expected


def test_an_object_gets_another_key(database: str) -> None:
    write("shop.page:helo", "shop.page:helo2")
    write_reads(of_reads("shop.page:helo"))
    renaming.rename_subject("shop.page:helo", f"shop.page:{'o' * 250}")
    long_subject = f"shop.page:{'o' * 250}"
    assert found() == {
        subject_column(long_subject): 5,
        subject_column(of_reads(long_subject)): 5,
        "shop.page:helo2": 5,
    }
    reset = databases.rows(Reset).get(subject=subject_column(long_subject))
    assert reset.full_subject == long_subject


def test_a_name_that_stays_the_same_loses_nothing(database: str) -> None:
    write("shop.page:same")
    renaming.rename_subject("shop.page:same", "shop.page:same")
    renaming.rename_model(OLD, OLD, pks=())
    assert found() == {"shop.page:same": 5}


def test_a_key_that_changes_in_case_only_loses_nothing(database: str) -> None:
    write("shop.page:Hello")
    renaming.rename_subject("shop.page:Hello", "shop.page:hello")
    assert found() == {"shop.page:hello": 5}


@isolate_apps("tests.site")
def test_a_table_whose_key_does_not_have_the_subject_is_refused() -> None:
    class Numbered(SubjectRow):
        number = models.PositiveIntegerField()

        class Meta:
            app_label = "site"

    with pytest.raises(TypeError, match=r"primary key of site\.Numbered does not have the subject"):
        subject_tables.columns_of(Numbered)
