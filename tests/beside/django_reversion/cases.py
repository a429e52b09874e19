"""A row that is set back to a version, or comes back after its deletion, keeps its counts."""

import pytest
import reversion
from reversion.models import Version

from readtrack import reports
from readtrack.flush.run import flush
from tests.beside.django_reversion.models import Story
from tests.support.counts import stored, view_times

pytestmark = pytest.mark.django_db(transaction=True)


def saved(story: Story) -> Story:
    with reversion.create_revision():
        story.save()
    return story


def test_a_version_does_not_set_the_count_back() -> None:
    story = saved(Story(title="A"))
    view_times(story, 3)
    flush()
    story.title = "B"
    saved(story)
    Version.objects.get_for_object(story).last().revert()
    assert Story.objects.get().title == "A"
    assert (stored(story), reports.views([story])[story]) == (3, 3)


def test_a_deleted_row_comes_back_with_the_count_of_its_last_version() -> None:
    story = saved(Story(title="A"))
    view_times(story, 3)
    flush()
    saved(Story.objects.get())
    Story.objects.get().delete()
    Version.objects.get_deleted(Story).get().revert()
    assert stored(Story.objects.get()) == 3
    view_times(Story.objects.get(), 2)
    flush()
    assert stored(Story.objects.get()) == 5
