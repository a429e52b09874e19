"""The number of what is unread in all that a reader follows."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser
from pytest_django import Settings
from pytest_django.fixtures import DjangoAssertNumQueries

from readtrack import reports, tracker
from readtrack.reports import dots
from tests.site.models import Category
from tests.support import factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db


def test_with_bitmaps_the_total_is_the_number_of_dots(
    user: Any, categories: list[Category]
) -> None:
    tracker.mark_unread(categories[:3])
    tracker.mark_unread(categories[:1])
    assert reports.unread_total(user, categories) == 3
    assert reports.unread_total(user, categories[2:]) == 1
    assert reports.unread_total(user, []) == 0
    assert reports.unread_total(AnonymousUser(), categories) == 0


def test_with_sequences_the_total_is_the_number_of_publications(
    categories: list[Category], settings: Settings
) -> None:
    settings.READTRACK = {"DOTS": {"form": "sequence"}}
    user = factories.user()
    tracker.mark_read(user, categories)
    tracker.mark_unread(categories[:3])
    tracker.mark_unread(categories[:1])
    assert reports.unread_total(user, categories) == 4


def test_the_total_of_a_model_takes_one_round_trip_and_one_query(
    user: Any,
    categories: list[Category],
    wire: Wire,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    tracker.mark_unread(categories[:2])
    with wire.counted() as trips, django_assert_num_queries(1):
        assert reports.unread_total(user, Category) == 2
    assert trips == [1]


def test_the_total_of_thousands_of_objects_takes_one_round_trip(user: Any, wire: Wire) -> None:
    unsaved = [Category(pk=pk) for pk in range(1_000, 1_000 + dots.MOST_IN_TOTAL)]
    with wire.counted() as trips:
        assert reports.unread_total(user, unsaved) == dots.MOST_IN_TOTAL
    assert trips == [1]


def test_the_total_of_too_many_objects_is_refused(
    user: Any, categories: list[Category], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dots, "MOST_IN_TOTAL", 4)
    for objs in (Category, categories, Category.objects.all()):
        with pytest.raises(ValueError, match="follow"):
            reports.unread_total(user, objs)
    with pytest.raises(TypeError, match="list"):
        reports.unread_total(user, categories[0])  # type: ignore[arg-type]


def test_the_total_can_be_awaited(user: Any, categories: list[Category]) -> None:
    tracker.mark_unread(categories)
    assert async_to_sync(reports.aunread_total)(user, categories) == 5
