"""Reading of totals and hours."""

from readtrack.store import counters


def test_no_hours_are_no_question() -> None:
    assert counters.subject_hours([], subject="site.post:1") == []
