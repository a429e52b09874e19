"""The scope of a flush: which subjects it looks at, and when it has to look at all of them."""

from datetime import timedelta
from typing import Any

import pytest
from redis import Redis

from readtrack import buckets
from readtrack.flush import run, totals
from readtrack.flush.run import flush
from readtrack.models import FlushRun
from readtrack.store import counters, resetting
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.counts import stored
from tests.support.counts import view_times as view
from tests.support.interference import Dump, dump, restore

pytestmark = pytest.mark.django_db(transaction=True)

Kind = FlushRun.Kind


def set_clock(run: FlushRun, **values: Any) -> None:
    FlushRun.objects.filter(pk=run.pk).update(**values)


@pytest.fixture
def post() -> Post:
    return factories.post()


def test_a_first_changed_flush_looks_at_everything(post: Post, redis: Redis) -> None:
    redis.set(f"views:total:{subject_of(post)}", 7)
    assert flush(only_changed=True).kind == Kind.FULL
    assert stored(post) == 7


def test_a_changed_flush_writes_what_was_viewed_and_scans_nothing(post: Post, redis: Redis) -> None:
    flush()
    quiet = factories.post()
    redis.set(f"views:total:{subject_of(quiet)}", 5)
    view(post, 3)
    redis.config_resetstat()
    run = flush(only_changed=True)
    assert (run.kind, run.read, run.written) == (Kind.CHANGED, 1, 1)
    assert (stored(post), stored(quiet)) == (3, 0)
    assert "cmdstat_scan" not in redis.info("commandstats")


def test_flushing_again_writes_nothing(post: Post) -> None:
    flush()
    view(post)
    assert [flush(only_changed=changed).written for changed in (True, True, False)] == [1, 0, 0]


@pytest.mark.parametrize("minutes", [-2.5, 0, 1.5])
def test_a_web_servers_clock_may_be_off_by_minutes(post: Post, minutes: float) -> None:
    flush()
    view(post, at=buckets.now() + timedelta(minutes=minutes))
    assert flush(only_changed=True).written == 1


@pytest.mark.parametrize("days", [-1, 1])
def test_views_recorded_by_a_clock_a_day_off_are_stored_as_all_others(
    post: Post, days: int
) -> None:
    flush()
    view(post, at=buckets.now() + timedelta(days=days))
    assert flush(only_changed=True).written == 1


@pytest.mark.parametrize(
    ("values", "is_enough"),
    [
        ({}, True),
        ({"error": "OperationalError"}, False),  # failed
        ({"ended": None}, False),  # killed
        ({"flushed_until": 1}, False),  # long ago
        ({"flushed_until": 2**55}, False),  # by a clock that was set back since
    ],
)
def test_only_a_flush_that_ended_well_and_lately_spares_the_next_one_work(
    values: dict[str, Any], is_enough: bool
) -> None:
    set_clock(flush(), **values)
    assert (flush(only_changed=True).kind == Kind.CHANGED) == is_enough


def test_after_a_failed_run_nothing_is_skipped(post: Post, redis: Redis) -> None:
    before = flush()
    at = buckets.now() - timedelta(minutes=30)
    set_clock(before, flushed_until=int((at - timedelta(minutes=1)).timestamp() * 1e6))
    view(post, at=at)
    failed = FlushRun.objects.create(
        started=buckets.now(), ended=buckets.now(), error="x", flushed_until=2**60, kind="changed"
    )
    assert failed.pk > before.pk
    run = flush(only_changed=True)
    assert (run.kind, run.written) == (Kind.CHANGED, 1)


def test_a_restored_snapshot_is_lifted_by_the_next_changed_flush(
    post: Post, redis: Redis, redis_url: str
) -> None:
    other = factories.post()
    view(post, 2)
    view(other, 2)
    flush()
    raw: Any = Redis.from_url(redis_url)
    snapshot = {key: raw.dump(key) for key in raw.scan_iter()}
    view(post, 5)
    view(other, 1)
    flush(only_changed=True)
    redis.flushall()
    for key, value in snapshot.items():
        raw.restore(key, 0, value)
    raw.close()
    view(post)
    run = flush(only_changed=True)
    assert run.kind == Kind.FULL
    assert stored(other) == 3 == int(redis.get(f"views:total:{subject_of(other)}") or 0)
    assert stored(post) == 7


def test_a_snapshot_that_was_taken_during_a_flush_counts_as_old(
    post: Post, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    view(post)
    snapshot: Dump = {}
    read = totals._live

    def save_first(*args: Any) -> Any:
        snapshot.update(dump(redis))
        return read(*args)

    monkeypatch.setattr(totals, "_live", save_first)
    flush()
    restore(redis, snapshot)
    assert flush(only_changed=True).kind == Kind.FULL


@pytest.mark.parametrize(
    ("module", "name"), [(run, "server_time"), (resetting, "noted_resets")], ids=["begins", "ends"]
)
def test_a_redis_that_is_restored_while_a_flush_begins_or_ends_is_put_right(
    post: Post, redis: Redis, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    view(post)
    flush()
    snapshot = dump(redis)
    view(post)
    flush()
    go_on = getattr(module, name)

    def restore_first(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.undo()
        restore(redis, snapshot)
        return go_on(*args, **kwargs)

    monkeypatch.setattr(module, name, restore_first)
    counters.mark_changed([subject_of(post)])
    kinds = [flush(only_changed=True).kind for _ in range(3)]
    assert kinds.count(Kind.FULL) == 1
    assert redis.get(f"views:total:{subject_of(post)}") == "2"


def test_a_full_flush_stays_owed_until_one_has_ended_well(
    post: Post, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush()
    redis.delete("flush:last")
    with monkeypatch.context() as patched:
        patched.setattr(run, "_finish", _fail)
        with pytest.raises(RuntimeError, match="killed here"):
            flush(only_changed=True)
    assert [flush(only_changed=True).kind for _ in range(2)] == [Kind.FULL, Kind.CHANGED]


def _fail(*args: Any, **kwargs: Any) -> None:
    raise RuntimeError("killed here")
