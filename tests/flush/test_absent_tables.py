"""A table of the app that the database lacks costs what it would store, and nothing else."""

from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.models import Archive, FlushRun, KnownEpoch
from readtrack.numbers.models import (
    Breakdown,
    BreakdownHistory,
    DayBreakdown,
    DayVisitors,
    History,
    Popular,
)
from readtrack.sql.faults import Faults
from readtrack.subjects import subject_of
from tests.site.models import Page
from tests.support import factories
from tests.support.counts import live, stored
from tests.support.faulty import missing

pytestmark = pytest.mark.django_db(transaction=True)

# What is made of the rows of a table.
MADE_OF = {Breakdown: (BreakdownHistory, DayBreakdown)}
TABLES = (Archive, Breakdown, BreakdownHistory, DayBreakdown, DayVisitors, FlushRun, History)


@pytest.fixture(autouse=True)
def referrer(settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer"]}, "RATE": (0, 10)}


def come(*objs: Any) -> None:
    for obj in objs:
        values = (("referrer", "a.example"),)
        assert tracker.record(factories.hit(subject_of(obj), dimensions=values)).counted


@pytest.mark.parametrize("model", [*TABLES, Popular])
@pytest.mark.parametrize("is_new", [False, True])
def test_a_missing_table_costs_only_itself(  # noqa: R701 - one story, before and after
    redis: Redis, model: Any, is_new: bool
) -> None:
    objs = [factories.post(), Page.objects.create(slug="a")]
    if not is_new:
        come(*objs)
        flush()
    with missing(model):
        for number in (1, 2):
            come(*objs)
            record = flush(must_archive=True)
            assert model._meta.db_table in record.faults
            assert record.error == ""
            assert [stored(obj) for obj in objs] == [number + 1 - is_new] * 2
        for other in TABLES:
            assert other in (model, *MADE_OF.get(model, ())) or other.objects.exists()
        come(*objs)
        with pytest.raises(CommandError, match=r"manage\.py migrate"):
            call_command("readtrack", "flush", verbosity=0)
    come(*objs)
    for _ in range(2):
        record = flush(must_archive=True)
        assert (record.failed, record.error) == (0, "")
    assert [stored(obj) for obj in objs] == [5 - is_new] * 2
    assert [live(redis, obj) for obj in objs] == [5 - is_new] * 2
    values = Breakdown.objects.filter(kind="views:referrer").values_list("count", flat=True)
    assert [*values] == [5 - is_new] * 2
    assert {*Archive.objects.values_list("visitors", flat=True)} == {5 - is_new}


def test_without_the_table_that_tells_of_losses_nothing_is_stored(redis: Redis) -> None:
    come(factories.post())
    with missing(KnownEpoch), pytest.raises(Exception, match="readtrack_knownepoch"):
        flush()


def test_one_line_names_all_tables_that_are_missing() -> None:
    faults = Faults()
    faults.leave_out([History, Breakdown])
    assert len(faults.failed) == 2
    assert str(faults) == (
        "The database lacks readtrack_numbers_breakdown, readtrack_numbers_history,"
        " so nothing of them is stored. Run: manage.py migrate"
    )
