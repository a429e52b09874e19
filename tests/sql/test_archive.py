"""Sketches and breakdowns of a subject in SQL."""

import pytest

from readtrack.numbers.models import Breakdown
from readtrack.numbers.sql import hashes as stored_hashes

SUBJECT = "site.post:1"


@pytest.mark.django_db
def test_only_the_requested_hashes_of_a_subject_are_returned() -> None:
    for kind, field in (("funnel", "view"), ("views:device", "phone")):
        Breakdown.objects.create(subject=SUBJECT, kind=kind, field=field, count=2)
    assert stored_hashes.breakdowns([("funnel", SUBJECT)]) == {("funnel", SUBJECT): {"view": 2}}


def test_a_row_reads_as_its_subject() -> None:
    assert str(Breakdown(subject=SUBJECT)) == SUBJECT
