"""How the doctor tells times and commands."""

from datetime import timedelta

import pytest

from readtrack.doctor import wording
from readtrack.doctor.examination import examine
from tests.pseudo import unmarked


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0 s"), (1, "1 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172_799, "47 h"), (172_800, "2 days")],
)
def test_a_time_is_told_as_far_as_one_has_to_know(seconds: int, words: str) -> None:
    assert wording.span(timedelta(seconds=seconds)) == words


@pytest.mark.django_db
@pytest.mark.usefixtures("pseudo")
def test_everything_that_the_doctor_says_is_marked_for_translation() -> None:
    findings = list(examine(sample=10))
    assert len(findings) > 10
    assert [unmarked(text) for finding in findings for text in (finding.message, finding.hint) if unmarked(text)] == []
