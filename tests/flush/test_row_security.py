"""Rows that a policy of PostgreSQL hides from a flush, or keeps it from changing, are not deleted rows."""

from typing import Any

import pytest
from django.core.checks import CheckMessage
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.checks.row_security import check_policies
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.models import FlushRun
from tests.doctor.conftest import found
from tests.site.models import Category, Post
from tests.support import factories
from tests.support.counts import live, stored, view, view_times
from tests.support.row_security import all_rows, row_security

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="is about PostgreSQL"),
]


@pytest.fixture(autouse=True)
def _a_day_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets each flush find that a row was missing a day ago, too."""
    monkeypatch.setattr("readtrack.flush.totals.ORPHAN_PATIENCE", 0)


def is_it(row: Any) -> str:
    return f"id = {row.pk}"


def test_rows_that_a_policy_hides_keep_their_counts(redis: Redis) -> None:
    own, other = factories.post(), factories.post()
    view(own, other)
    flush()
    view(own, other)
    with row_security(Post, shown=is_it(own)) as role:
        for only_changed in (True, False, False):
            record = flush(only_changed=only_changed)
            assert (record.orphans, record.locked, record.failed) == (0, 0, 1)
            assert "row-level security" in record.faults
            assert role in record.faults
        assert (stored(own), live(redis, other)) == (2, 2)
    record = flush()
    assert (record.faults, stored(other)) == ("", 2)


def test_a_row_that_may_not_be_changed_is_not_locked(redis: Redis) -> None:
    own, other = factories.post(), factories.post()
    view(own, other)
    with row_security(Post, shown="true", changed=is_it(own)):
        record = flush()
        assert (record.written, record.locked, record.failed) == (1, 0, 1)
        assert f"site.post:{other.pk}" in record.faults
        assert found("flushes")[0].level == "error"
        assert "row-level security" in found("flushes")[0].message
    assert flush().failed == 0
    assert (stored(other), live(redis, other)) == (1, 1)


def test_what_a_lost_redis_counts_anew_waits_for_a_flush_that_sees_its_row(redis: Redis) -> None:
    post = factories.post()
    view_times(post, 5)
    flush()
    redis.flushdb()
    view_times(post, 2)
    with row_security(Post, shown="false"):
        flush()
        assert live(redis, post) == 2  # SQL's count is not known
    flush()
    assert (stored(post), live(redis, post)) == (7, 7)


def test_a_hidden_row_that_redis_knows_less_of_is_not_lowered(redis: Redis) -> None:
    own, other = factories.post(), factories.post()
    view(own, other)
    flush()
    with row_security(Post, shown=is_it(own)) as role:
        with all_rows(role):
            Post.objects.update(view_count=9)
        flush()
        assert live(redis, own) == 9
    flush()
    assert (live(redis, other), stored(other)) == (9, 9)


def test_counts_of_a_model_that_is_not_the_sites_own_wait_too(
    settings: Settings, redis: Redis
) -> None:
    settings.READTRACK = {"MODELS": {"site.Category": {"counted": True}}}
    category = factories.category()
    view(category)
    with row_security(Category, shown="false"):
        record = flush()
        assert (record.orphans, record.failed) == (0, 1)
    assert (flush().written, live(redis, category)) == (1, 1)


@pytest.mark.needs_parts("numbers")
def test_the_funnel_of_a_hidden_row_is_stored() -> None:
    from readtrack.numbers.models import Breakdown

    post = factories.post()
    flush()
    tracker.step(post, "click", visitor=Visitor("a"))
    with row_security(Post, shown="false"):
        flush(only_changed=True)
    assert dict(Breakdown.objects.values_list("field", "count")) == {"view": 1, "click": 1}


def test_the_command_says_which_role_does_not_see_the_rows(capsys: Any) -> None:
    view(factories.post())
    with row_security(Post, shown="false") as role:
        with pytest.raises(CommandError, match="row-level security"):
            call_command("readtrack", "flush")
        assert role in FlushRun.objects.values_list("faults", flat=True)[0]


def test_a_rows_deletion_is_noticed_again_without_the_policy(redis: Redis) -> None:
    post = factories.post()
    view(post)
    flush()
    Post.objects.filter(pk=post.pk)._raw_delete("default")
    with row_security(Post, shown="false"):
        assert flush().orphans == 0
    assert [flush().orphans for _ in range(2)] == [1, 1]
    assert live(redis, post) == 0


def the_messages() -> list[CheckMessage]:
    return check_policies(None, databases=["default"])


def test_the_check_of_the_database_names_the_tables_and_the_role() -> None:
    assert the_messages() == []
    with row_security(Post, shown="true") as role:
        [message] = the_messages()
        assert message.id == "readtrack.W086"
        assert "site_post" in message.msg
        assert role in message.msg
        assert message.hint
        assert check_policies(None, databases=None) == []
