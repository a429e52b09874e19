"""Whole tables that another transaction has locked: a flush waits for a while, and goes on."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from redis import Redis

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.sql import databases
from readtrack.subjects import subject_of
from tests.doctor.conftest import found
from tests.site.models import Category, Page, Post
from tests.support import factories
from tests.support.counts import live, stored, view

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the whole database"),
]

# Of PostgreSQL. The last one does not even let others read.
MODES = ["SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"]
POSTGRESQL = connection.vendor == "postgresql"


@pytest.fixture(autouse=True)
def _short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "LOCK_WAIT", 1)


@contextmanager
def locked(table: str, mode: str) -> Iterator[None]:
    """Locks a table in another session, in that mode of PostgreSQL, or for reads and writes."""
    other = connection.copy()
    begin = ["BEGIN", f"LOCK TABLE {table} IN {mode} MODE"]
    try:
        with other.cursor() as cursor:
            for statement in begin if POSTGRESQL else [f"LOCK TABLES {table} WRITE"]:
                cursor.execute(statement)
        yield
    finally:
        other.close()


@pytest.mark.parametrize(
    ("mode", "is_new"),
    # The first ones let others read, and are one to a flush.
    [*zip(MODES, [True, False, True, False], strict=True), ("ACCESS EXCLUSIVE", True)]
    if POSTGRESQL
    else [("WRITE", True), ("WRITE", False)],
)
def test_a_flush_leaves_a_locked_table_to_the_next_one_and_stores_all_others(
    redis: Redis, mode: str, *, is_new: bool
) -> None:
    posts = [factories.post() for _ in range(20)]
    page = Page.objects.create(slug="a")
    if not is_new:
        view(*posts)
    flush()
    view(*posts, page)
    with locked("site_post", mode):
        record = flush(only_changed=True)
        assert (record.error, record.failed) == ("", 0)
        assert record.locked >= len(posts)
        assert stored(page) == 1
    assert flush(only_changed=True).locked == 0
    assert {stored(post) for post in posts} == {2 - is_new}
    assert live(redis, posts[0]) == 2 - is_new


@pytest.mark.skipif(not POSTGRESQL, reason="MySQL does not show locks of tables")
@pytest.mark.parametrize("mode", MODES)
def test_the_doctor_names_the_session_that_has_locked_a_table(mode: str) -> None:
    post = factories.post()
    flush()
    view(post)
    with locked("site_post", mode):
        flush()
        [finding] = found("locks")
        assert finding.level == "warning"
        assert f"last statement: LOCK TABLE site_post IN {mode} MODE" in finding.message
        assert "pg_terminate_backend" in finding.hint
    flush()
    assert [finding.level for finding in found("locks")] == ["ok"]


@pytest.mark.needs_parts("numbers")
def test_a_full_flush_renews_the_lists_of_all_other_models() -> None:
    from readtrack.numbers.models import Popular

    post, page, category = factories.post(), Page.objects.create(slug="a"), factories.category()
    view(post, page)
    flush()
    Popular.objects.all().delete()
    tracker.mark_unread([category])
    with locked("site_post", MODES[-1]):
        assert flush().error == ""
    assert list(Popular.objects.values_list("subject", flat=True).distinct()) == [subject_of(page)]
    with locked("site_category", MODES[-1]):
        assert flush().error == ""
    assert Category.objects.exists()


def test_a_limit_of_waiting_ends_with_its_transaction() -> None:
    question = (
        "SHOW lock_timeout" if POSTGRESQL else "SELECT @@SESSION.lock_wait_timeout, 'seconds'"
    )
    with connection.cursor() as cursor:
        cursor.execute(question)
        before = cursor.fetchone()
        with databases.site_transaction(connection):
            cursor.execute(question)
            assert cursor.fetchone()[0] in {"1s", 1}
        cursor.execute(question)
        assert cursor.fetchone() == before
    assert Post.objects.count() == 0
