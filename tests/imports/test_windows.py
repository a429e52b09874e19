"""Rate limit and window by the times in a log."""

import pytest
from pytest_django import Settings

from readtrack.hits.hit import Reason
from readtrack.imports.weblog import LogDeduplicator


def outcomes(*hits: tuple[str, str, float], limit: int = 1000) -> list[Reason | None]:
    windows = LogDeduplicator(limit=limit)
    return [windows.refusal(visitor, subject, 1_000_000 + at) for visitor, subject, at in hits]


def test_a_window_is_not_extended_by_a_reload() -> None:
    times = (0, 1799, 1800, 3599, 3600)
    assert outcomes(*(("a", "x", time) for time in times)) == [None, "repeat", None, "repeat", None]


def test_visitors_and_subjects_have_windows_of_their_own() -> None:
    assert outcomes(("a", "x", 0), ("b", "x", 0), ("a", "y", 0), ("b", "x", 1)) == [None, None, None, "repeat"]


def test_more_than_five_hits_in_ten_seconds_do_not_count() -> None:
    hits = [("a", f"x{number}", number) for number in range(8)]
    assert outcomes(*hits, ("b", "x", 8), ("a", "y", 9.9), ("a", "y", 10)) == [
        *[None] * 5,
        *["rate"] * 3,
        None,
        "rate",
        None,
    ]


def test_without_a_limit_no_visitor_is_too_fast(settings: object) -> None:
    settings.READTRACK = {"RATE_LIMIT": 0}  # type: ignore[attr-defined]
    assert outcomes(*(("a", f"x{number}", 0) for number in range(20))) == [None] * 20


@pytest.mark.parametrize("back", [1, 1799])
def test_a_line_that_was_written_late_is_still_a_repeat(back: int) -> None:
    assert outcomes(("a", "x", 0), ("a", "x", -back)) == [None, "repeat"]


def test_another_log_that_begins_earlier_has_windows_of_its_own() -> None:
    assert outcomes(("a", "x", 0), ("a", "x", -5000), ("a", "x", -4000)) == [None, None, "repeat"]


def test_memory_is_bounded_and_the_report_names_the_cost() -> None:
    windows = LogDeduplicator(limit=10)
    for number in range(100):
        assert windows.refusal(f"v{number}", "x", 1_000_000) is None
    assert windows.views.forgotten >= 80
    assert windows.refusal("v0", "x", 1_000_001) is None
    assert windows.refusal("v99", "x", 1_000_001) == "repeat"


def test_long_logs_forget_nothing_early() -> None:
    windows = LogDeduplicator(limit=2000)
    for second in range(20_000):
        assert windows.refusal(f"v{second}", "x", 1_000_000 + second) is None
        if second >= 1700:
            assert windows.refusal(f"v{second - 1700}", "x", 1_000_000 + second) == "repeat"
    assert windows.views.forgotten == 0


def test_a_window_of_zero_seconds_is_one_second(settings: Settings) -> None:
    settings.READTRACK = {"WINDOW": 0, "RATE_WINDOW": 0}
    assert outcomes(("anna", "a", 0), ("anna", "a", 0), ("anna", "a", 2)) == [None, "repeat", None]


def test_with_no_room_left_a_known_visitor_stays_known() -> None:
    hits = [("anna", "a", 0), ("ben", "a", 0), ("anna", "a", 1)]
    assert outcomes(*hits, limit=2) == [None, None, "repeat"]
