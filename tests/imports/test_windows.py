"""Rate limit and window by the times in a log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from readtrack.imports import weblog
from readtrack.imports.judging import Judged
from readtrack.imports.weblog import Importer, Recent


def refusal(importer: Importer, visitor: str, subject: str, *, at: float) -> str:
    judged = Judged("", at, subject=subject, visitor=visitor, same_visitor=visitor)
    return importer._visit(judged, subject, at=at, is_new=True)


def outcomes(*hits: tuple[str, str, float]) -> list[str]:
    importer = Importer()
    return [refusal(importer, visitor, subject, at=1_000_000 + at) for visitor, subject, at in hits]


def test_a_window_is_not_extended_by_a_reload() -> None:
    times = (0, 1799, 1800, 3599, 3600)
    assert outcomes(*(("a", "x", time) for time in times)) == ["", "repeat", "", "repeat", ""]


def test_visitors_and_subjects_have_windows_of_their_own() -> None:
    assert outcomes(("a", "x", 0), ("b", "x", 0), ("a", "y", 0), ("b", "x", 1)) == [
        "",
        "",
        "",
        "repeat",
    ]


def test_more_than_five_hits_in_ten_seconds_do_not_count() -> None:
    hits = [("a", f"x{number}", number) for number in range(8)]
    assert outcomes(*hits, ("b", "x", 8), ("a", "y", 9.9), ("a", "y", 10)) == [
        *[""] * 5,
        *["rate"] * 3,
        "",
        "rate",
        "",
    ]


def test_without_a_limit_no_visitor_is_too_fast(settings: object) -> None:
    settings.READTRACK = {"RATE": (0, 10)}  # type: ignore[attr-defined]
    assert outcomes(*(("a", f"x{number}", 0) for number in range(20))) == [""] * 20


@pytest.mark.parametrize("back", [1, 1799])
def test_a_line_that_was_written_late_is_still_a_repeat(back: int) -> None:
    assert outcomes(("a", "x", 0), ("a", "x", -back)) == ["", "repeat"]


def test_another_log_that_begins_earlier_has_windows_of_its_own() -> None:
    assert outcomes(("a", "x", 0), ("a", "x", -5000), ("a", "x", -4000)) == ["", "", "repeat"]


def test_memory_is_bounded_and_the_report_names_the_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weblog, "MOST_WINDOWS", 10)
    importer = Importer()
    for number in range(100):
        assert refusal(importer, f"v{number}", "x", at=1_000_000) == ""
    assert importer._views.forgotten >= 80
    assert refusal(importer, "v0", "x", at=1_000_001) == ""
    assert refusal(importer, "v99", "x", at=1_000_001) == "repeat"


def test_long_logs_forget_nothing_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weblog, "MOST_WINDOWS", 2000)
    importer = Importer()
    for second in range(20_000):
        assert refusal(importer, f"v{second}", "x", at=1_000_000 + second) == ""
        if second >= 1700:
            assert refusal(importer, f"v{second - 1700}", "x", at=1_000_000 + second) == "repeat"
    assert importer._views.forgotten == 0


def test_a_window_of_zero_seconds_is_one_second(settings: Settings) -> None:
    settings.READTRACK = {"WINDOW": 0, "RATE": (5, 0)}
    assert outcomes(("anna", "a", 0), ("anna", "a", 0), ("anna", "a", 2)) == ["", "repeat", ""]


def test_with_no_room_left_a_known_visitor_stays_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weblog, "MOST_WINDOWS", 2)
    hits = [("anna", "a", 0), ("ben", "a", 0), ("anna", "a", 1)]
    assert outcomes(*hits) == ["", "", "repeat"]


@given(
    hits=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=60),
    spare=st.sampled_from([0, 1, 1000]),
)
def test_removing_windows_that_are_over_changes_nothing(
    hits: list[tuple[int, int]], spare: int
) -> None:
    recent = Recent(life=50)
    starts: dict[str, float] = {}  # of the window of each visitor
    numbers: dict[str, int] = {}
    at = 0
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(weblog, "SPARE_WINDOWS", spare)
        for visitor_number, pause in hits:
            at += pause
            visitor = str(visitor_number)
            if visitor not in starts or at - starts[visitor] >= 50:
                starts[visitor] = at
                numbers[visitor] = 0
            numbers[visitor] += 1
            assert recent.hit(visitor, at=at) == numbers[visitor]
    assert recent.forgotten == 0


def test_windows_that_are_over_are_removed() -> None:
    recent = Recent(life=10)
    for number in range(5_000):
        recent.hit(str(number), at=number)
    assert len(recent._windows) <= 2 * weblog.SPARE_WINDOWS
