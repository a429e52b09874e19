"""Behind PgBouncer, where each transaction may have another connection to PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from redis import Redis

from readtrack import reports, tracker
from readtrack.doctor.report import examine
from readtrack.flush.run import flush
from readtrack.unread import starting
from tests.flush import test_crash
from tests.flush.test_crash import Crowd, Flusher
from tests.flush.test_crash import crowd as crowd
from tests.flush.test_crash import flusher as flusher
from tests.flush.test_crash import wires as wires
from tests.site.models import Category
from tests.support import factories
from tests.support.pgbouncer import SERVER_CONNECTIONS, pooled

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="PgBouncer is for PostgreSQL"),
]


# Before the fixtures of test_crash, whose flusher takes the way to the database that it finds.
@pytest.fixture(autouse=True)
def _pool() -> Iterator[None]:
    with pooled():
        yield


def session_values(expression: str) -> list[object]:
    """Returns what the expression has in each of PgBouncer's sessions."""
    values: dict[object, object] = {}
    with connection.cursor() as cursor:
        for _ in range(4 * SERVER_CONNECTIONS):
            cursor.execute(f"SELECT pg_backend_pid(), {expression}")
            pid, value = cursor.fetchone()
            values[pid] = value
    assert len(values) == SERVER_CONNECTIONS
    return list(values.values())


def test_flushes_at_the_same_time_count_each_view_once(crowd: Crowd, redis: Redis) -> None:
    for _ in range(9):
        crowd.new_post()
    with ThreadPoolExecutor(4) as threads:
        for _ in range(5):
            for flushing in [threads.submit(_flush_in_thread) for _ in range(4)]:
                flushing.result()
    test_crash.check_all_is_well(crowd, redis)


def _flush_in_thread() -> None:
    try:
        flush()
    finally:
        connection.close()


def test_flushes_are_killed_at_any_moment(flusher: Flusher, crowd: Crowd, redis: Redis) -> None:
    test_crash.test_flushes_are_killed_at_any_moment(flusher, crowd, redis)


def test_a_flush_leaves_no_setting_behind_for_those_who_share_its_connections() -> None:
    names = ("lock_timeout", "transaction_isolation", "statement_timeout", "TimeZone")
    everything = " || ' ' || ".join(f"current_setting('{name}')" for name in names)
    before = session_values(everything)
    tracker.record(factories.hit(f"site.post:{factories.post().pk}"))
    for _ in range(SERVER_CONNECTIONS):
        flush()
    assert session_values(everything) == before


def test_a_page_needs_no_setting_of_django_for_a_pool() -> None:
    connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] = False
    categories = [factories.category() for _ in range(3)]
    reader = factories.user()
    tracker.mark_unread(Category.objects.all())
    assert reports.unread(reader, categories) == {*categories}
    tracker.mark_all_read(reader, Category.objects.all())
    assert reports.unread(reader, categories) == set()


def test_commands_work_with_the_setting_of_django_for_a_pool() -> None:
    users = [factories.user() for _ in range(3)]
    assert starting.give_ordinals() == {"": len(users) - 1}


def test_the_doctor_says_what_a_pool_of_transactions_needs() -> None:
    [finding] = examine(["pooler"])
    assert finding.level == "ok"
    connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] = False
    [finding] = examine(["pooler"])
    assert finding.level == "note"
    assert "DISABLE_SERVER_SIDE_CURSORS" in finding.hint
