"""Flushes read past a cache of querysets, and the cache's counts stay behind until it expires."""

import pytest
from redis import Redis

from readtrack import reports
from readtrack.flush.run import flush
from tests.beside.django_cache_machine.models import Story
from tests.support.counts import view_times

pytestmark = pytest.mark.django_db(transaction=True)


def in_sql(story: Story) -> int:
    return int(Story.objects.no_cache().values_list("view_count", flat=True).get(pk=story.pk))


def test_flushes_raise_the_counts_that_sql_has(redis: Redis) -> None:
    story = Story.objects.create(title="A")
    for expected in (2, 4):
        cached = list(Story.objects.filter(pk=story.pk))
        view_times(story, 2)
        flush()
        assert in_sql(story) == expected
        assert reports.views(cached)[story] == expected
    redis.flushdb()
    view_times(story, 2)
    flush()
    assert in_sql(story) == 6
