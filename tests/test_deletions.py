"""Data of a deleted row is deleted, too."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.db import connection, transaction
from redis import Redis

from readtrack import tracker
from readtrack.flush import readers
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.models import Breakdown, History, ReaderHistory, Tracked
from readtrack.subjects import subject_of, subject_of_row
from tests.site.models import Category, Post, Review, Topic
from tests.support import factories
from tests.support.counts import view_times as view

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "lite"])


@pytest.mark.parametrize("make", factories.KINDS.values(), ids=factories.KINDS.keys())
def test_keys_and_rows_of_a_deleted_object_are_deleted(
    make: Callable[[], Tracked], redis: Redis
) -> None:
    obj, other = make(), factories.post()
    subject = subject_of(obj)
    view(obj)
    view(other)
    redis.hset(f"funnel:{subject}", "view", 1)
    redis.zadd("views:unsettled", {f"funnel:{subject}": 1})
    flush()
    view(obj)
    flush(only_changed=True)
    assert History.objects.filter(subject=subject).exists()
    obj.delete()
    lasting = [f"views:total:{subject}", f"views:hll:{subject}", f"funnel:{subject}"]
    assert redis.exists(*lasting) == 0
    assert not History.objects.filter(subject=subject).exists()
    assert not Breakdown.objects.exists()
    assert flush().orphans == 0
    assert redis.exists(f"views:total:{subject_of(other)}")


def test_a_child_that_leaves_its_parent_leaves_the_counts(redis: Redis) -> None:
    review = Review.objects.create(title="A")
    view(review)
    subject = subject_of(review)
    review.delete(keep_parents=True)
    assert redis.get(f"views:total:{subject}") == "1"


def test_a_deletion_that_is_rolled_back_takes_nothing(redis: Redis) -> None:
    post = factories.post()
    view(post)
    with transaction.atomic():
        post.delete()
        transaction.set_rollback(True)
    assert redis.get(f"views:total:{subject_of_row(Post, Post.objects.get().pk)}") == "1"


@pytest.mark.parametrize("model", [Category, Topic])
def test_a_deleted_category_leaves_nothing(
    model: Any, redis: Redis, noon: datetime, settings: Any
) -> None:
    gone, other = model.objects.create(), model.objects.create()
    for state, numbering in (("sequence", "ordinal"), ("bitmap", "id")):
        settings.READTRACK = {"READ_STATE": state, "READERS": numbering}
        tracker.mark_unread([gone, other])
        tracker.mark_read(factories.user(), [gone, other])
    readers.store(at=noon)
    subject = subject_of(gone)
    gone.delete()
    assert redis.keys(f"category:{subject}:*") == []
    assert len(redis.keys(f"category:{subject_of(other)}:*")) > 1
    assert list(ReaderHistory.objects.values_list("subject", flat=True)) == [subject_of(other)]


def test_a_deleted_row_leaves_no_mark(redis: Redis) -> None:
    post = factories.post()
    view(post)
    tracker.step(post, "click", visitor=Visitor("a"))
    subject = subject_of(post)
    names = {subject, f"funnel:{subject}"}
    assert names <= {*redis.zrange("views:unsettled", 0, -1)}
    post.delete()
    assert not names & {*redis.zrange("views:unsettled", 0, -1)}


def test_a_failure_of_readtracks_tables_costs_a_committed_deletion_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    post, done, table = factories.post(), list[str](), "readtrack_breakdown"
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO {table}_away")
        try:
            with transaction.atomic():
                post.delete()
                transaction.on_commit(lambda: done.append("the site's own"))
        finally:
            cursor.execute(f"ALTER TABLE {table}_away RENAME TO {table}")
    assert not Post.objects.exists()
    assert done == ["the site's own"]
    assert "on_delete.<locals>.delete" in caplog.text
