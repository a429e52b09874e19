"""What SQL keeps of a subject beside its row's counts."""

import pytest

from readtrack.models import Breakdown
from readtrack.sql import archive
from readtrack.store.counters import Stored

SUBJECT = "site.post:1"


@pytest.mark.django_db
def test_of_a_subjects_hashes_only_those_asked_for_are_given() -> None:
    for family, field in (("funnel", "view"), ("views:device", "phone")):
        Breakdown.objects.create(subject=SUBJECT, kind=family, field=field, count=2)
    assert archive.breakdowns([f"funnel:{SUBJECT}"]) == {f"funnel:{SUBJECT}": Stored({"view": 2})}


def test_a_row_reads_as_its_subject() -> None:
    assert str(Breakdown(subject=SUBJECT)) == SUBJECT
