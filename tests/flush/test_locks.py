"""Rows that another transaction has locked: a flush passes them over, and the next one writes them."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, connections, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext, override_settings
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.flush import totals
from readtrack.flush.run import flush
from readtrack.models import Archive, FlushRun, Reset
from readtrack.sql import databases
from readtrack.store import keys, resetting
from readtrack.subjects import subject_of
from tests.doctor.conftest import found
from tests.site.models import Post
from tests.support import factories
from tests.support.counts import stored, view
from tests.support.depth import examples, some
from tests.support.waiting import comes_true

Lock = Callable[..., Callable[[], None]]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no row locks"),
]


@pytest.fixture
def lock() -> Iterator[Lock]:
    """Returns a function that locks rows in another session. It returns a function that ends that
    transaction.
    """
    with (
        connection.cursor() as cursor
    ):  # a flush that waits for the lock fails, so that no test waits for ever
        is_mysql = connection.vendor == "mysql"
        cursor.execute(
            "SET innodb_lock_wait_timeout = 1" if is_mysql else "SET lock_timeout = '1s'"
        )
    other = connection.copy()
    other.set_autocommit(False)

    def start(*objs: Any) -> Callable[[], None]:
        with other.cursor() as cursor:
            for obj in objs:
                table, pk = obj._meta.db_table, obj._meta.pk.get_db_prep_value(obj.pk, other)
                cursor.execute(
                    f"SELECT 1 FROM {table} WHERE {obj._meta.pk.column} = %s FOR UPDATE", [pk]
                )
        return other.rollback

    yield start
    other.close()
    connection.close()


@pytest.mark.parametrize(
    ("kind", "only_changed"),
    some([("whole number", True), ("UUID", False)], deep=[("whole number", False), ("UUID", True)]),
)
def test_a_locked_row_is_left_to_the_next_flush_and_others_are_not(
    lock: Lock, kind: str, only_changed: bool
) -> None:
    make: Any = factories.KINDS[kind]
    flush()
    held, others = make(), [make() for _ in range(3)]
    view(held, *others)
    release = lock(held)
    run = flush(only_changed=only_changed)
    assert (run.written, run.locked, run.orphans, run.error) == (3, 1, 0, "")
    assert [stored(one) for one in (held, *others)] == [0, 1, 1, 1]
    assert flush(only_changed=True).locked == 1
    release()
    assert flush(only_changed=True).written == 1
    assert stored(held) == 1
    assert flush(only_changed=True).locked == 0


def test_a_changed_flush_takes_up_what_a_full_one_left_however_old_the_change_is(
    lock: Lock, redis: Redis
) -> None:
    post = factories.post()
    view(post)
    redis.delete("views:changed")
    release = lock(post)
    assert flush().locked == 1
    assert redis.zrange("views:changed", 0, -1) == [subject_of(post)]
    assert 0 < redis.ttl("views:changed") <= keys.changed.ttl
    release()
    assert flush(only_changed=True).written == 1


@pytest.mark.one_server("begins without partitions, which a cluster refuses")
@pytest.mark.needs_parts("cluster")
def test_nothing_moves_to_other_partitions_before_every_row_is_written(
    lock: Lock, settings: Settings
) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": 1}}
    flush()
    post = factories.post()
    view(post, post)
    release = lock(post)
    settings.READTRACK = {"CLUSTER": {"partitions": 16}}
    view(post)
    with pytest.raises(CommandError, match="1 row locked"):
        call_command("readtrack", "repartition", verbosity=0)
    release()
    call_command("readtrack", "repartition", verbosity=0)
    flush()
    assert stored(post) == 3


def test_a_row_that_stores_as_much_is_not_missed_however_long_it_is_locked(lock: Lock) -> None:
    post = factories.post()
    view(post)
    flush()
    lock(post)
    assert flush().locked == 0


@pytest.mark.skipif(connection.vendor != "postgresql", reason="looks for PostgreSQL's statements")
def test_a_flush_commits_often_so_that_no_save_waits_for_all_of_its_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(totals, "ROWS_LOCKED", 7)
    posts = [factories.post() for _ in range(20)]
    view(*posts)
    with CaptureQueriesContext(connection) as queries:
        assert flush().written == 20
    is_write = [query["sql"].startswith("WITH new") for query in queries]
    commits = [query["sql"] == "COMMIT" for query in queries]
    assert sum(is_write) == 3
    assert all(
        any(commits[place:after])
        for place, after in pairwise([n for n, found in enumerate(is_write) if found])
    )


def test_the_doctor_names_no_session_where_the_database_does_not_tell() -> None:
    def refuse(*args: Any) -> None:
        raise OperationalError(
            1227, "Access denied; you need (at least one of) the PROCESS privilege(s)"
        )

    connection.ensure_connection()
    with connection.execute_wrapper(refuse):
        assert databases.oldest_lock(Post) is None
    with override_settings(DATABASE_ROUTERS=["tests.support.routers.Lite"]):
        assert databases.oldest_lock(Post) is None


@pytest.mark.parametrize("order", ["pk", "-pk"])
def test_hundreds_of_saves_in_one_transaction_and_full_flushes_are_no_deadlock(order: str) -> None:
    Post.objects.bulk_create(Post(title="x") for _ in range(200))
    posts = list(Post.objects.order_by(order))
    is_over = threading.Event()
    errors: list[Exception] = []

    def save() -> None:
        try:
            for _ in range(examples(1)):
                with transaction.atomic():
                    for post in posts:
                        post.save()
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()
            is_over.set()

    saver = threading.Thread(target=save)
    saver.start()
    while not is_over.is_set():
        view(*posts[::20])
        flush()
    saver.join()
    flush(only_changed=True)
    assert errors == []
    assert not FlushRun.objects.exclude(error="").exists()
    assert {stored(post) for post in posts[::20]} == {
        Post.objects.order_by("-view_count")[0].view_count
    }


def test_a_reset_whose_row_is_locked_is_finished_by_a_later_flush(lock: Lock, redis: Redis) -> None:
    post = factories.post()
    view(post)
    flush()
    tracker.reset_views(post)
    Post.objects.update(view_count=1)  # as a flush does that read the count before the reset
    two_days = 2 * keys.DAY * 1_000_000
    redis.zincrby(keys.reset(""), -two_days, subject_of(post))
    Reset.objects.update(redis_time=F("redis_time") - two_days)
    release = lock(post)
    flush()
    assert (stored(post), list(resetting.noted_resets())) == (1, [subject_of(post)])
    release()
    flush()
    assert (stored(post), resetting.noted_resets()) == (0, {})


def test_a_locked_row_is_not_archived_as_if_it_stored_what_redis_holds(lock: Lock) -> None:
    held, post = factories.post(), factories.post()
    flush()
    FlushRun.objects.update(flushed_until=1)
    view(held, post)
    lock(held)
    run = flush()
    assert (run.kind, run.locked) == (run.Kind.ARCHIVE, 1)
    assert list(Archive.objects.values_list("subject", flat=True)) == [subject_of(post)]


def test_the_doctor_names_the_session_that_holds_the_lock(lock: Lock) -> None:
    post = factories.post()
    assert [finding.level for finding in found("locks")] == ["ok"]
    view(post)
    release = lock(post)
    session, age, statement = databases.oldest_lock(Post) or (0, timedelta(), "")
    assert session
    assert age < timedelta(minutes=5)
    flush()
    [finding] = found("locks")
    assert finding.level == "warning"
    assert (
        f"1 row of which another transaction has a lock: session {session}, open for "
        in finding.message
    )
    assert str(session) in finding.hint
    if connection.vendor == "postgresql":
        assert "FOR UPDATE" in statement
        assert statement in finding.message
    release()
    # MariaDB renews its list only if nobody has read it for 0.1 s (CACHE_MIN_IDLE_TIME in
    # trx0i_s.cc).
    assert comes_true(lambda: databases.oldest_lock(Post) is None, every=0.2)
    [finding] = found("locks")
    assert (finding.level, finding.hint) == ("ok", "")
    flush()
    assert [finding.level for finding in found("locks")] == ["ok"]
