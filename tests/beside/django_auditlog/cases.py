"""An audit log has the editors' changes, and no views."""

import pytest
from auditlog.models import LogEntry
from auditlog.registry import auditlog
from django.core.checks import run_checks

from readtrack.flush.run import flush
from tests.beside.django_auditlog.models import Story
from tests.support.counts import stored, view_times

pytestmark = pytest.mark.django_db(transaction=True)


def test_neither_a_flush_nor_a_stale_save_is_a_change_of_counts() -> None:
    story = Story.objects.create(title="A")
    loaded = Story.objects.get()
    view_times(story, 3)
    flush()
    assert LogEntry.objects.count() == 1
    loaded.title = "B"
    loaded.save()
    assert stored(story) == 3
    assert LogEntry.objects.latest("pk").changes == {"title": ["A", "B"]}


def test_the_check_finds_a_log_that_has_the_counts() -> None:
    assert [message.id for message in run_checks() if message.id == "readtrack.W087"] == []
    auditlog.unregister(Story)
    auditlog.register(Story)
    try:
        [message] = [message for message in run_checks() if message.id == "readtrack.W087"]
        assert "Story" in message.msg
    finally:
        auditlog.unregister(Story)
        auditlog.register(Story, exclude_fields=["view_count", "visitor_count"])
