"""How the doctor tells times and commands."""

from datetime import timedelta

import pytest
from pytest_django import Settings

from readtrack.doctor import findings
from readtrack.doctor.report import examine
from tests.conftest import use_redis
from tests.support.pseudo import unmarked


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0 s"), (1, "1 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172_799, "47 h"), (172_800, "2 days")],
)
def test_a_time_is_told_as_far_as_one_has_to_know(seconds: int, words: str) -> None:
    assert findings.span(timedelta(seconds=seconds)) == words


@pytest.mark.django_db
@pytest.mark.usefixtures("pseudo")
@pytest.mark.parametrize("location", ["redis://127.0.0.1:1/0", "127.0.0.1"])
def test_a_redis_that_is_not_to_be_had_is_told_in_marked_words(settings: Settings, location: str) -> None:
    use_redis(settings, location)
    texts = [text for finding in examine(sample=10) for text in (finding.message, finding.hint)]
    assert [unmarked(text) for text in texts if unmarked(text)] == []


@pytest.mark.django_db
@pytest.mark.usefixtures("pseudo")
def test_everything_that_the_doctor_says_is_marked_for_translation() -> None:
    findings = list(examine(sample=10))
    assert len(findings) > 10
    assert [unmarked(text) for finding in findings for text in (finding.message, finding.hint) if unmarked(text)] == []
