"""A Redis whose memory is full: nothing counts any more, and what was counted is stored."""

from contextlib import suppress
from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis
from redis.exceptions import OutOfMemoryError

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.models import FlushRun
from readtrack.scheduled import flush_views
from tests.conftest import Start
from tests.doctor.conftest import found
from tests.site.models import Post
from tests.support import factories
from tests.support.counts import live, stored, view

pytestmark = pytest.mark.django_db(transaction=True)


def fill(url: str) -> Redis:
    """Limits the memory, and fills it. Returns a client."""
    client: Redis = Redis.from_url(url, decode_responses=True)
    client.config_set("maxmemory", "1mb")
    with suppress(OutOfMemoryError):
        for number in range(10_000):
            client.set(f"filler:{number}", "x" * 10_000)
    return client


@pytest.mark.one_server("has a limit of memory of its own")
def test_what_was_counted_is_stored_by_every_kind_of_flush(start_redis: Start) -> None:
    url = start_redis().url
    old, new, gone = factories.post(view_count=5), factories.post(), factories.post()
    view(old)
    flush()
    view(old, new, gone)
    Post.objects.filter(pk=gone.pk)._raw_delete("default")
    client = fill(url)
    with pytest.raises(OutOfMemoryError):
        tracker.record(factories.hit(f"site.post:{old.pk}"))
    flush(only_changed=True)
    assert (stored(old), stored(new)) == (7, 1)
    assert live(client, new) == 1
    Post.objects.filter(pk=new.pk).update(view_count=9)  # as after a restored snapshot of Redis
    assert flush().lifted == 1
    flush(must_archive=True)
    assert not FlushRun.objects.exclude(error="").exists()
    assert (stored(old), stored(new), live(client, new)) == (7, 9, 9)
    client.config_set("maxmemory", 0)
    view(old)
    flush(only_changed=True)
    assert stored(old) == 8
    client.close()


@pytest.mark.one_server("has a limit of memory of its own")
def test_the_doctor_says_that_nothing_counts_now(start_redis: Start) -> None:
    url = start_redis().url
    flush()
    client = fill(url)
    [finding] = found("eviction")
    assert finding.level == "error"
    assert finding.message.startswith("Redis is full: ")
    assert finding.message.endswith("Nothing is counted now.")
    client.config_set("maxmemory", 0)
    assert [finding.level for finding in found("eviction")] == ["ok"]
    client.close()


def test_publications_that_cannot_be_sent_do_not_keep_counts_from_sql(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    def refuse(*args: Any) -> None:
        raise OutOfMemoryError("command not allowed")

    monkeypatch.setattr(tracker, "resend", refuse)
    post = factories.post()
    view(post)
    with pytest.raises(OutOfMemoryError):
        flush_views()
    assert stored(post) == 1
