"""Which bit is whose, and whose would cost too much."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_django import Settings

from readtrack import reports, tracker
from readtrack.hits import readers
from readtrack.hits.readers import ReaderError
from tests.support import factories


@pytest.mark.parametrize("pk", [-1, 100_000_001, 2**63, "x", None])
def test_an_id_can_never_allocate_more_than_its_share(pk: Any) -> None:
    with pytest.raises(ReaderError, match="MAX_READER"):
        readers.reader_of(SimpleNamespace(pk=pk))


def test_the_bound_is_a_setting(settings: Settings) -> None:
    settings.READTRACK = {"MAX_READER": 7}
    assert readers.reader_of(SimpleNamespace(pk=7)) == 7
    with pytest.raises(ReaderError):
        readers.reader_of(SimpleNamespace(pk=8))


@pytest.mark.django_db
def test_a_reader_out_of_bounds_gets_pages_without_dots_and_one_line_in_the_log(
    settings: Settings, caplog: pytest.LogCaptureFixture, redis: Any
) -> None:
    settings.READTRACK = {"MAX_READER": 1000}
    category, user = factories.category(), factories.user(pk=5_000_001)
    browser = factories.browser(user)
    for _ in range(2):
        assert "readtrack-dot" not in browser.get("/list/").text
        assert browser.get(f"/categories/{category.pk}/").status_code == 200
    assert redis.keys("category:*") == []
    assert [record.levelno for record in caplog.records if record.name == "readtrack"] == [logging.WARNING]
    with pytest.raises(ReaderError):
        tracker.mark_read(user, [category])
    with pytest.raises(ReaderError):
        reports.unread(user, [category])


@pytest.mark.parametrize(
    ("reader", "number"), [(7, 7), ("7", 7), (None, None), ("anon:7", None), ("100000001", None), ("a", None)]
)
def test_a_user_id_is_a_number_however_readers_are_numbered(reader: Any, number: int | None) -> None:
    assert readers.number_of(reader) == number
