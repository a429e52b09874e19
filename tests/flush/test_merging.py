"""Merging: settling adds SQL's count once, writing raises rows, lifting raises counters that are
below their row.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import override_settings
from redis import Redis

from readtrack import buckets, reports, tracker
from readtrack.flush import totals
from readtrack.flush.run import flush
from readtrack.sql.epochs import SqlEpoch
from readtrack.store import keys
from readtrack.store.counters import Epoch
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.counts import live, remaining_keys, stored, view
from tests.support.interference import dump, restore
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db(databases=["default", "lite"])

HOURS = int(apps.is_installed("readtrack.numbers"))  # which counts the views of a model by hour


def test_an_emptied_redis_goes_on_from_what_sql_has(database: str, redis: Redis) -> None:
    post = factories.post()
    view(post, post, post)
    flush()
    redis.flushdb()
    assert flush().written == 0
    assert stored(post) == 3
    view(post)
    assert reports.views([Post.objects.get()]) == {post: 4}
    run = flush()
    assert (run.settled, run.written) == (1 + HOURS, 1)  # the total and the model's hour
    assert stored(post) == live(redis, post) == 4


def test_a_single_lost_total_goes_on_from_what_sql_has(database: str, redis: Redis) -> None:
    post = factories.post()
    view(post, post)
    flush()
    redis.delete(f"views:total:site.post:{post.pk}")
    view(post)
    flush()
    assert stored(post) == live(redis, post) == 3


@contextmanager
def restored(redis: Redis) -> Iterator[None]:
    """Undoes in Redis what happens inside, as a restart from a snapshot does."""
    snapshot = dump(redis)
    yield
    restore(redis, snapshot)


def test_a_snapshot_of_an_earlier_list_that_comes_back_before_the_settling_is_not_added(
    database: str, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = factories.post(view_count=100)
    view(post, post, post)
    snapshot = dump(redis)
    flush()
    redis.flushdb()
    view(post)  # begins a list of which SQL knows nothing, so all of it is added
    ask = SqlEpoch.known

    def be_late(epoch: SqlEpoch, epochs: Iterable[Epoch]) -> dict[str, Epoch]:
        monkeypatch.setattr(SqlEpoch, "known", ask)
        found = ask(epoch, epochs)
        restore(redis, snapshot)  # with the list whose counters SQL has
        return found

    monkeypatch.setattr(SqlEpoch, "known", be_late)
    flush()
    assert stored(post) == live(redis, post) == 103


def test_a_flush_that_is_killed_before_it_tells_sql_costs_no_view_by_a_clock_that_was_set_back(
    database: str, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = factories.neighbours(3, view_count=100)
    view(first)
    flush()
    view(second)

    def die(epoch: SqlEpoch, epochs: Iterable[Epoch]) -> bool:
        raise RuntimeError("killed here")

    with monkeypatch.context() as patched:
        patched.setattr(SqlEpoch, "advance", die)
        with pytest.raises(RuntimeError, match="killed here"):
            flush()
    assert live(redis, second) == 101  # Redis has begun an epoch of which SQL knows nothing
    view(third)
    redis.zadd(keys.unsettled(keys.tag(subject_of(third))), {subject_of(third): 1}, xx=True)
    flush()
    assert [stored(post) for post in (first, second, third)] == [101, 101, 101]


def test_an_old_snapshot_with_marks_is_not_given_its_base_a_second_time(
    database: str, redis: Redis
) -> None:
    post = factories.post(view_count=100)
    with restored(redis):
        view(post)
        flush()
    assert stored(post) == 101
    view(post)  # begins at nothing again: its mark is new
    flush()
    assert stored(post) == 102

    redis.flushdb()
    view(post, post)
    with restored(redis):  # the snapshot holds two views and their mark
        flush()
        assert stored(post) == 104
    flush()
    assert stored(post) == live(redis, post) == 104


def test_a_view_between_an_old_snapshot_and_the_next_flush_is_not_counted_twice(
    database: str, redis: Redis
) -> None:
    post, fresh = factories.post(view_count=100), factories.post(view_count=10)
    view(post)
    with restored(redis):
        flush()
    view(post, fresh)
    flush()
    assert stored(post) <= 102
    assert stored(post) >= 101
    assert stored(fresh) == 11


def test_only_rows_that_changed_are_written(database: str) -> None:
    posts = [factories.post() for _ in range(5)]
    view(*posts)
    flush()
    view(posts[2])
    assert flush().written == 1


def test_sql_holding_more_views_still_learns_of_new_visitors(database: str, redis: Redis) -> None:
    post = factories.post(view_count=50)
    view(post)
    redis.zrem("views:unsettled", subject_of(post))
    flush()
    post.refresh_from_db()
    assert (post.view_count, post.visitor_count) == (50, 1)


def test_sql_knowing_more_visitors_keeps_them(database: str) -> None:
    post = factories.post(visitor_count=40)
    view(post)
    flush()
    post.refresh_from_db()
    assert (post.view_count, post.visitor_count) == (1, 40)


def test_an_unsettled_total_is_never_written_as_if_it_were_whole(
    database: str, wire: Wire, redis: Redis
) -> None:
    post = factories.post(view_count=2)
    view(post)

    def lose_and_view_again(moment: str, trip: int) -> None:
        if redis.zcount("views:unsettled", "-inf", "(+inf") == 0:  # the flush has just settled
            wire.hook = None
            redis.delete(f"views:total:site.post:{post.pk}")
            for _ in range(9):
                tracker.record(factories.hit(subject_of(post)))

    wire.hook = lose_and_view_again
    flush()
    assert stored(post) == 2
    assert reports.views([Post.objects.get()]) == {post: 11}
    flush()
    assert stored(post) == 11


def test_an_old_snapshot_is_lifted_to_what_sql_has(database: str, redis: Redis) -> None:
    post = factories.post()
    view(post)
    flush()
    with restored(redis):
        view(post, post)
        flush()
    assert live(redis, post) == 1
    assert reports.views([Post.objects.get()]) == {post: 3}
    run = flush()
    assert (run.lifted, run.written) == (1 + HOURS, 0)  # the total and the model's hour
    assert stored(post) == live(redis, post) == 3
    view(post)
    flush()
    assert stored(post) == 4


def test_an_sql_backup_that_was_restored_is_healed(database: str, redis: Redis) -> None:
    post = factories.post()
    view(post, post, post)
    flush()
    Post.objects.update(view_count=1, visitor_count=1)
    assert flush().written == 1
    post.refresh_from_db()
    assert (post.view_count, post.visitor_count) == (3, 3)


@pytest.fixture
def post() -> Post:
    return factories.post()


@pytest.mark.needs_parts("numbers")
@pytest.mark.django_db(transaction=True)
def test_a_row_has_to_be_missing_twice_before_its_keys_go(
    post: Post, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    from readtrack.numbers.models import History

    subject = subject_of(post)
    view(post, post)
    flush()
    with connection.cursor() as cursor:  # no signal
        cursor.execute("DELETE FROM site_post")
    monkeypatch.setattr(totals, "ORPHAN_PATIENCE", 0)
    assert flush().orphans == 1
    assert redis.exists(f"views:total:{subject}")
    assert flush().orphans == 1
    assert remaining_keys(redis, post) == []
    assert not History.objects.filter(subject=subject).exists()
    assert flush().orphans == 0


@pytest.mark.django_db(transaction=True)
def test_a_row_that_is_missing_for_a_moment_keeps_its_count(post: Post, redis: Redis) -> None:
    view(post, post)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM site_post")
    assert [flush().orphans for _ in range(2)] == [1, 1]
    post.save(force_insert=True)
    flush()
    assert stored(post) == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL's way to fail on purpose")
def test_a_deadlock_is_tried_again(post: Post) -> None:
    view(post)
    flush()
    view(post)
    failures = iter([1])

    def fail_once(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        if sql.startswith("WITH new") and next(failures, None):
            return execute(
                "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40P01'; END $$", (), many, context
            )
        return execute(sql, params, many, context)

    with connection.execute_wrapper(fail_once):
        assert flush().written == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL's way to fail on purpose")
def test_another_failure_is_not_but_is_noted(post: Post) -> None:
    view(post)

    def fail(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("WITH new"):
            return execute(
                "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57014'; END $$", (), many, context
            )
        return execute(sql, params, many, context)

    with connection.execute_wrapper(fail):
        run = flush()
    assert (run.written, run.failed, run.error) == (0, 1, "")
    assert "57014" in run.faults
    assert flush().written == 1


@pytest.mark.needs_parts("numbers")
@pytest.mark.django_db(transaction=True)
def test_history_is_kept_by_the_hour_for_row_and_model(post: Post) -> None:
    from readtrack.numbers.models import History

    flush()
    view(post, post)
    flush(only_changed=True)
    view(post)
    flush(only_changed=True)
    hour = buckets.hour_index(buckets.now())
    rows = History.objects.order_by("visitors").values_list("subject", "views", "visitors")
    assert list(rows.filter(hour__in=[hour, hour - 1])) == [
        (f"site.post{keys.tag(subject_of(post))}", 3, 0),
        (subject_of(post), 3, 3),
    ]


@pytest.mark.needs_parts("numbers")
@pytest.mark.django_db(transaction=True)
@override_settings(READTRACK={"NUMBERS": {"history": False}})
def test_a_site_may_do_without_history(post: Post) -> None:
    from readtrack.numbers.models import History

    view(post)
    flush()
    view(post)
    flush(only_changed=True)
    assert not History.objects.exists()
