"""Triggers of django-pghistory and django-pgtrigger leave the counts out."""

from typing import Any

import pytest
from django.apps import apps
from django.core.checks import run_checks
from django.db import Error

from readtrack.flush.run import flush
from tests.beside.django_pghistory.models import LockedStory, LoudStory, Story
from tests.support.counts import stored, view_times

pytestmark = pytest.mark.django_db(transaction=True)


def events(model: Any) -> int:
    return apps.get_model("beside_pghistory", f"{model.__name__}Event").objects.count()


def test_a_history_without_the_counts_has_no_row_for_a_flush() -> None:
    stories = [model.objects.create(title="A") for model in (Story, LoudStory)]
    for _ in range(2):
        for story in stories:
            view_times(story, 2)
        flush()
    assert [stored(story) for story in stories] == [4, 4]
    # By default each raised count is a row.
    assert [events(model) for model in (Story, LoudStory)] == [1, 3]
    stories[0].title = "B"
    stories[0].save()
    assert events(Story) == 2


def test_a_protected_row_lets_its_counts_be_raised() -> None:
    story = LockedStory.objects.create(title="A")
    view_times(story, 2)
    assert flush().faults == ""
    assert stored(story) == 2
    with pytest.raises(Error, match="Cannot update"):
        LockedStory.objects.update(title="B")


def test_the_check_finds_a_history_that_has_the_counts() -> None:
    [message] = [message for message in run_checks() if message.id == "readtrack.W087"]
    assert "LoudStory" in message.msg
    assert "exclude" in message.hint
