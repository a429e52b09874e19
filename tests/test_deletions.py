"""Data of a deleted row is deleted, too."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from math import inf
from time import monotonic
from typing import Any

import pytest
from django.db import connection, transaction
from pytest_django import Settings
from redis import Redis

from readtrack import receivers, reports, tracker
from readtrack.flush import run, settling
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.models import Reset, Tracked
from readtrack.sql import deletions, epochs
from readtrack.sql.faults import Faults
from readtrack.store import clock, flush_notes, keys, read_state
from readtrack.store.circuit import circuit
from readtrack.subjects import subject_of, subject_of_row
from tests.site.models import Category, Manual, Post, Review, Topic
from tests.support import factories
from tests.support.counts import live, remaining_keys, stored
from tests.support.counts import view_times as view
from tests.support.interference import dump, restore

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "lite"])


@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize("make", factories.KINDS.values(), ids=factories.KINDS.keys())
def test_keys_and_rows_of_a_deleted_object_are_deleted(
    make: Callable[[], Tracked], redis: Redis
) -> None:
    from readtrack.numbers.models import Breakdown, History

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


@pytest.mark.parametrize("strategy", ["hll", "set", "daily"])
def test_no_key_about_a_deleted_object_stays_but_those_of_single_visitors(
    redis: Redis, settings: Settings, strategy: str
) -> None:
    settings.READTRACK = {"UNIQUE": strategy}
    post = factories.post()
    subject = subject_of(post)
    view(post, visitor=Visitor("a"))
    post.delete()
    assert redis.keys(f"*{subject}") == [f"viewed:a:{subject}"]


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


@pytest.fixture
def kept_rows() -> Iterator[None]:
    """Lets a trigger of the database keep each post that is deleted."""
    made: tuple[str, ...]
    dropped: tuple[str, ...]
    if connection.vendor == "postgresql":
        made = (
            "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
            "CREATE TRIGGER keep BEFORE DELETE ON site_post FOR EACH ROW EXECUTE FUNCTION keep()",
        )
        dropped = ("DROP TRIGGER keep ON site_post", "DROP FUNCTION keep()")
    elif connection.vendor == "sqlite":
        action = "BEGIN SELECT RAISE(IGNORE); END"
        made = (f"CREATE TRIGGER keep BEFORE DELETE ON site_post {action}",)
        dropped = ("DROP TRIGGER keep",)
    else:
        pytest.skip("its triggers cannot keep a row")
    for statement in made:
        connection.cursor().execute(statement)
    yield
    for statement in dropped:
        connection.cursor().execute(statement)


@pytest.mark.needs_parts("numbers")
@pytest.mark.usefixtures("kept_rows")
@pytest.mark.parametrize("is_many", [False, True])
def test_a_row_that_a_trigger_keeps_keeps_its_counts(redis: Redis, is_many: bool) -> None:
    from readtrack.numbers import reports as numbers_reports

    post = factories.post()
    view(post, 3)
    flush()
    if is_many:
        Post.objects.all().delete()
    else:
        Post.objects.get().delete()
    assert not Reset.objects.exists()
    view(post, 2)
    flush()
    row: Any = Post.objects.get()
    assert (row.view_count, row.visitor_count, live(redis, post)) == (5, 5, 5)
    assert sum(point.views for point in numbers_reports.series(row)) == 5


def test_a_new_row_with_the_key_of_one_that_was_deleted_in_the_same_transaction_begins_at_nothing(
    redis: Redis,
) -> None:
    post = factories.post()
    view(post, 3)
    flush()
    with transaction.atomic():
        pk = post.pk
        post.delete()
        Post.objects.create(pk=pk, title="B")
    assert live(redis, Post.objects.get()) == 0


@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize("model", [Category, Topic])
def test_a_deleted_category_leaves_nothing(
    model: Any, redis: Redis, noon: datetime, settings: Any
) -> None:
    from readtrack.numbers.flush import readers
    from readtrack.numbers.models import ReaderHistory

    gone, other = model.objects.create(), model.objects.create()
    for state, numbering in (("sequence", "ordinal"), ("bitmap", "id")):
        settings.READTRACK = {"DOTS": {"form": state, "readers": numbering}}
        tracker.mark_unread([gone, other])
        tracker.mark_read(factories.user(), [gone, other])
    readers.store(at=noon, faults=Faults())
    subject = subject_of(gone)
    gone.delete()
    assert redis.keys(f"category:{subject}:*") == []
    assert len(redis.keys(f"category:{subject_of(other)}:*")) > 1
    assert list(ReaderHistory.objects.values_list("subject", flat=True)) == [subject_of(other)]


@pytest.mark.needs_parts("numbers")
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
    post, done, table = factories.post(), list[str](), "readtrack_archive"
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


# A key that is used again


@contextmanager
def without_redis() -> Iterator[None]:
    """Lets this process find Redis gone, which keeps its data."""
    circuit.pause = inf
    circuit.opened = monotonic()
    try:
        yield
    finally:
        circuit.opened = None


def click(post: Post, visitor: str) -> None:
    assert tracker.step(post, "click", visitor=Visitor(visitor))


@pytest.fixture
def deleted(redis: Redis) -> int:
    """Returns the id of a post that was deleted while Redis, which has its counts, was gone."""
    post = factories.post()
    view(post, 10)
    click(post, "a")
    flush()
    view(post, 3)
    pk = int(post.pk)
    with without_redis():
        post.delete()
    assert redis.get(f"views:total:site.post:{pk}") == "13"
    return pk


@pytest.mark.needs_parts("numbers")
def test_a_new_row_inherits_nothing_though_redis_was_gone_when_the_old_one_was_deleted(
    deleted: int, redis: Redis
) -> None:
    from readtrack.numbers import reports as numbers_reports

    post = factories.post(pk=deleted)
    assert remaining_keys(redis, post) == []
    view(post, 2)
    click(post, "b")
    for _ in range(2):
        flush()
        assert (stored(post), live(redis, post)) == (2, 2)
        assert [stage.count for stage in numbers_reports.funnel([post])] == [2, 1, 0]


def test_a_key_that_is_deleted_twice_in_a_second_while_redis_is_gone_leaves_nothing(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Ahead of Redis's clock, which goes on meanwhile and counts no view after the deletions.
    moment = clock.now() + timedelta(seconds=30)
    monkeypatch.setattr(clock, "now", lambda: moment)
    post = factories.post()
    pk = post.pk
    view(post, 3)
    with without_redis():
        post.delete()
    again = factories.post(pk=pk)
    view(again, 2)
    with without_redis():
        again.delete()
        newest = factories.post(pk=pk)
    flush()
    assert (stored(newest), live(redis, newest)) == (0, 0)


def test_a_new_row_with_a_key_that_redis_does_not_know_counts_at_once(redis: Redis) -> None:
    post = factories.post()
    pk = post.pk
    with without_redis():
        post.delete()
    again = factories.post(pk=pk)
    view(again, 2)
    flush()
    assert (stored(again), live(redis, again)) == (2, 2)  # before: 0, if it was in the same second


@pytest.mark.parametrize("views", [0, 2])
def test_a_new_row_of_a_bulk_inherits_nothing_once_a_flush_has_run(
    deleted: int, redis: Redis, views: int
) -> None:
    [post] = Post.objects.bulk_create([Post(pk=deleted, title="A")])
    view(post, views)
    flush(only_changed=True)
    assert (stored(post), reports.views([post])[post]) == (0, 0)
    view(post, 4)
    for only_changed in (True, False):
        flush(only_changed=only_changed)
        assert (stored(post), live(redis, post)) == (4, 4)


def test_a_new_row_made_while_redis_is_gone_inherits_nothing(deleted: int, redis: Redis) -> None:
    with without_redis():
        post = factories.post(pk=deleted)
    flush()
    view(post, 2)
    flush()
    assert (stored(post), live(redis, post)) == (2, 2)


def test_a_row_of_a_model_that_is_not_tracked_inherits_nothing(redis: Redis, settings: Any) -> None:
    settings.READTRACK = {"MODELS": {"site.Manual": {"counted": True}}}
    receivers.connect()
    manual = Manual.objects.create(title="A")
    view(manual, 5)
    flush()
    pk = manual.pk
    with without_redis():
        manual.delete()
    again = Manual.objects.create(pk=pk, title="B")
    view(again, 2)
    flush()
    assert reports.views([again]) == {again: 2}


@pytest.mark.parametrize("flushed", [0, 2])
def test_a_snapshot_from_before_a_deletion_gives_a_new_row_nothing(
    redis: Redis, flushed: int
) -> None:
    post = factories.post()
    view(post, 10)
    click(post, "a")
    flush()
    snapshot = dump(redis)
    pk = post.pk
    post.delete()
    again = factories.post(pk=pk)
    view(again, flushed)
    flush()
    restore(redis, snapshot)
    flush(only_changed=True)
    again.refresh_from_db()
    assert reports.views([again]) == {again: flushed}
    view(again, 3)
    flush(only_changed=True)
    assert (stored(again), live(redis, again)) == (flushed + 3, flushed + 3)


def test_a_new_row_counts_on_while_a_flush_looks_at_the_deletion(redis: Redis) -> None:
    post = factories.post()
    view(post, 10)
    flush()
    pk = post.pk
    post.delete()
    again = factories.post(pk=pk)
    view(again, 2)
    redis.zrem("views:unsettled", subject_of(again))  # a flush that began before has settled it
    flush(only_changed=True)
    assert (stored(again), live(redis, again)) == (2, 2)


def delete_behind(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletes the row by a process that finds Redis gone, and whose clock is behind Redis's."""
    moment = clock.now() - timedelta(seconds=5)
    with monkeypatch.context() as patch, without_redis():
        patch.setattr(clock, "now", lambda: moment)
        post.delete()


def assert_begins_at_nothing(pk: int, redis: Redis) -> None:
    again = factories.post(pk=pk)
    view(again, 2)
    flush()
    assert (stored(again), live(redis, again)) == (2, 2)


def test_a_row_that_is_deleted_while_a_flush_waits_for_redis_leaves_nothing(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = factories.post()
    view(post, 10)
    flush()
    pk = post.pk

    def be_late(tags: Sequence[str]) -> flush_notes.LastFlushes:
        monkeypatch.undo()
        delete_behind(post, monkeypatch)
        return flush_notes.last_flushes(tags)

    monkeypatch.setattr(flush_notes, "last_flushes", be_late)
    flush(only_changed=True)
    flush(only_changed=True)
    assert_begins_at_nothing(pk, redis)


def test_a_row_that_is_deleted_while_a_flush_runs_leaves_nothing(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    post, other = factories.post(), factories.post()
    view(post, 10)
    flush()
    view(other)
    pk = post.pk

    def be_late(epoch: epochs.SqlEpoch, faults: Faults) -> int:
        monkeypatch.undo()
        delete_behind(post, monkeypatch)
        return settling.settle(epoch, faults)

    monkeypatch.setattr(run, "settle", be_late)
    flush(only_changed=True)
    flush(only_changed=True)
    assert_begins_at_nothing(pk, redis)


def test_a_new_row_that_brings_counts_keeps_them(redis: Redis) -> None:
    post = factories.post()
    view(post, 10)
    flush()
    pk = post.pk
    tracker.reset_views(post)
    post.delete()
    again = factories.post(pk=pk, view_count=100)
    view(again, 2)
    flush()
    assert (stored(again), live(redis, again)) == (102, 102)


def test_keys_without_a_note_of_a_deletion_stay_for_a_row_that_is_saved_with_its_key(
    redis: Redis,
) -> None:
    post = factories.post()
    view(post, 3)
    pk = post.pk
    Post.objects.filter(pk=pk)._raw_delete("default")  # and restored by a tool that sends signals
    factories.post(pk=pk)
    assert live(redis, post) == 3


def test_a_deletion_is_noted_for_some_months(redis: Redis) -> None:
    post, other = factories.post(), factories.post()
    view(other)
    tracker.reset_views(other)
    post.delete()
    flush()
    assert Reset.objects.count() == 2
    Reset.objects.update(redis_time=1)
    flush(must_archive=True)
    assert [row.full_subject for row in Reset.objects.all()] == [subject_of(other)]
    assert deletions.KEPT > 30 * keys.DAY * 1_000_000


def test_a_redis_clock_that_is_ahead_of_a_deletion_purges_it_once(
    deleted: int, redis: Redis
) -> None:
    Reset.objects.update(redis_time=Reset.objects.get().redis_time + 3_600_000_000)
    flush()
    post = factories.post(pk=deleted)
    view(post, 2)
    for _ in range(2):
        flush()
        assert stored(post) == 2


@pytest.mark.parametrize("state", ["bitmap", "sequence"])
def test_a_category_with_a_key_that_is_used_again_is_unread_for_all(
    redis: Redis, settings: Any, state: str
) -> None:
    settings.READTRACK = {"DOTS": {"form": state}}
    read_state.begin(0)
    category, user = factories.category(), factories.user()
    tracker.mark_unread([category])
    tracker.mark_read(user, [category])
    pk = category.pk
    with without_redis():
        category.delete()
    again = factories.category(pk=pk)
    assert reports.unread(user, [again]) == set()
    tracker.resend()
    assert reports.unread(user, [again]) == {again}
