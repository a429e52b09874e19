"""The flush: what it looks at, and that the two sides come to the same."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext, override_settings
from redis import Redis

from readtrack import buckets, reports, tracker
from readtrack.flush import resets, run, writing
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.models import Archive, Breakdown, FlushRun, History
from readtrack.sql import runs
from readtrack.store import lifecycle
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.interference import Dump, dump, restore

pytestmark = pytest.mark.django_db(transaction=True)

Kind = FlushRun.Kind


def view(post: Post, times: int = 1, *, at: datetime | None = None) -> None:
    for _ in range(times):
        tracker.record(factories.hit(subject_of(post), at=at or buckets.now()))


def stored(post: Post) -> int:
    return int(Post.objects.get(pk=post.pk).view_count)


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
def test_what_a_clock_a_day_off_recorded_waits_for_the_full_flush(post: Post, days: int) -> None:
    flush()
    view(post, at=buckets.now() + timedelta(days=days))
    assert flush(only_changed=True).written == 0
    assert flush().written == 1


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


def test_a_restored_snapshot_is_lifted_by_the_next_changed_flush(post: Post, redis: Redis, redis_url: str) -> None:
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


def test_a_snapshot_from_in_the_midst_of_a_flush_is_an_old_one_too(
    post: Post, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    view(post)
    snapshot: Dump = {}
    read = writing._live

    def save_first(*args: Any) -> Any:
        snapshot.update(dump(redis))
        return read(*args)

    monkeypatch.setattr(writing, "_live", save_first)
    flush()
    restore(redis, snapshot)
    assert flush(only_changed=True).kind == Kind.FULL


@pytest.mark.parametrize(("module", "name"), [(resets, "repeat"), (runs, "prune")], ids=["begins", "ends"])
def test_a_redis_that_is_restored_while_a_flush_begins_or_ends_is_put_right(
    post: Post, redis: Redis, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    view(post)
    flush()
    snapshot = dump(redis)
    view(post)
    flush()
    go_on = getattr(module, name)

    def restore_first(*args: Any, **kwargs: Any) -> None:
        monkeypatch.undo()
        restore(redis, snapshot)
        go_on(*args, **kwargs)

    monkeypatch.setattr(module, name, restore_first)
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
        with pytest.raises(ValueError, match="killed here"):
            flush(only_changed=True)
    assert [flush(only_changed=True).kind for _ in range(2)] == [Kind.FULL, Kind.CHANGED]


def _fail(run: FlushRun) -> None:
    raise ValueError("killed here")


def test_a_settled_subject_gets_its_base_and_its_sketch_back(post: Post, redis: Redis) -> None:
    view(post, 3)
    _archive()
    redis.flushall()
    view(post, 2)
    run = flush(only_changed=True)
    assert run.settled == 2  # the total and the model's hour
    assert stored(post) == 5
    assert Post.objects.get(pk=post.pk).visitor_count == 5


def test_a_lifted_subject_gets_its_sketch_back(post: Post, redis: Redis) -> None:
    view(post, 3)
    _archive()
    redis.set(f"views:total:{subject_of(post)}", 1)
    redis.delete(f"views:hll:{subject_of(post)}")
    assert flush().lifted == 1
    assert redis.pfcount(f"views:hll:{subject_of(post)}") == 3
    assert redis.get(f"views:total:{subject_of(post)}") == "3"


def test_hashes_are_stored_settled_and_lifted_like_totals(post: Post, redis: Redis) -> None:
    name = f"funnel:{subject_of(post)}"
    view(post)
    redis.hset(name, mapping={"view": 5, "sign": 2})
    flush()
    view(post)
    flush(only_changed=True)
    assert dict(Breakdown.objects.values_list("field", "count")) == {"view": 5, "sign": 2}

    redis.delete(name)  # begun anew, as record.lua would
    redis.hset(name, "view", 1)
    redis.zadd("views:unsettled", {name: int(buckets.now().timestamp() * 1e6)})
    flush(only_changed=True)
    assert redis.hgetall(name) == {"view": "6", "sign": "2"}

    redis.hset(name, "view", 1)  # out of an old snapshot
    flush(only_changed=True)
    assert redis.hgetall(name) == {"view": "6", "sign": "2"}


@pytest.mark.parametrize("only_changed", [True, False])
def test_a_funnel_moves_on_without_a_view(post: Post, only_changed: bool) -> None:
    flush()
    tracker.step(post, "click", visitor=Visitor("a"))
    flush(only_changed=only_changed)
    assert dict(Breakdown.objects.values_list("field", "count")) == {"view": 1, "click": 1}
    assert reports.trending(minutes=5) == []


def test_hashes_out_of_an_old_snapshot_are_lifted_by_the_next_flush_whatever_was_viewed(
    post: Post, redis: Redis
) -> None:
    name = f"funnel:{subject_of(post)}"
    flush()
    view(post)
    tracker.step(post, "click", visitor=Visitor("a"))
    flush(only_changed=True)
    snapshot = dump(redis)
    tracker.step(post, "click", visitor=Visitor("b"))
    flush(only_changed=True)
    restore(redis, {key: value for key, value in snapshot.items() if "trending:bucket" not in key})
    flush(only_changed=True)
    assert redis.hgetall(name) == {"view": "2", "click": "2"}


def test_an_archived_sketch_is_never_replaced_by_an_emptier_one(post: Post, redis: Redis) -> None:
    view(post, 8)
    _archive()
    redis.delete(f"views:hll:{subject_of(post)}")
    view(post)
    _archive()
    redis.flushdb()
    view(post)
    flush()
    assert redis.pfcount(f"views:hll:{subject_of(post)}") >= 9  # of ten, as a sketch has it


def test_a_hash_that_waits_for_its_base_is_not_stored(post: Post, redis: Redis) -> None:
    name = f"funnel:{subject_of(post)}"
    flush()
    view(post)
    redis.hset(name, "view", 9)
    redis.zadd("views:unsettled", {name: 2**53})  # marked while the flush was under way
    flush(only_changed=True)
    assert not Breakdown.objects.exists()


def test_idle_subjects_leave_redis_and_come_back_with_their_base(post: Post, redis: Redis) -> None:
    active = factories.post()
    view(post, 3)
    redis.hset(f"funnel:{subject_of(post)}", "view", 3)
    view(active)
    _archive()
    Archive.objects.update(hour=1)
    view(active)
    _archive()
    assert _lasting(redis, post) == []
    assert _lasting(redis, active)
    view(post)
    flush(only_changed=True)
    assert stored(post) == 4
    assert redis.pfcount(f"views:hll:{subject_of(post)}") == 4


def _begin_anew(redis: Redis, post: Post) -> None:
    """Just as many views as SQL holds, and none of them among those."""
    redis.delete(f"views:total:{subject_of(post)}")
    view(post, 3)


DEEDS: dict[str, tuple[Callable[[Redis, Post], object], tuple[int, int]]] = {
    "a view": (lambda redis, post: view(post), (4, 1)),
    "a total begun anew": (_begin_anew, (6, 1)),
    "a step": (lambda redis, post: tracker.step(post, "click", visitor=Visitor("b")), (3, 2)),
}


@pytest.mark.parametrize(("deed", "expected"), DEEDS.values(), ids=DEEDS)
def test_what_happens_to_an_idle_subject_at_the_last_moment_is_not_lost(
    post: Post,
    redis: Redis,
    monkeypatch: pytest.MonkeyPatch,
    deed: Callable[[Redis, Post], object],
    expected: tuple[int, int],
) -> None:
    view(post, 3)
    tracker.step(post, "click", visitor=Visitor("a"))
    _archive()
    Archive.objects.update(hour=1)
    redis.delete(*redis.keys("trending:*"))
    read = lifecycle.live_counts

    def be_late(subjects: Any, **kwargs: Any) -> Any:
        found = read(subjects, **kwargs)
        if subjects:
            monkeypatch.setattr(lifecycle, "live_counts", read)
            deed(redis, post)
        return found

    monkeypatch.setattr(lifecycle, "live_counts", be_late)
    _archive()
    flush()
    clicks = Breakdown.objects.get(family="funnel", field="click").count
    assert (stored(post), clicks) == expected


def test_a_step_that_no_bucket_tells_of_any_more_is_stored_before_an_idle_subject_leaves(
    post: Post, redis: Redis
) -> None:
    view(post)
    _archive()
    Archive.objects.update(hour=1)
    tracker.step(post, "click", visitor=Visitor("a"))
    redis.delete(*redis.keys("trending:*"))
    _archive()
    assert _lasting(redis, post) == []
    assert Breakdown.objects.get(field="click").count == 1


def _lasting(redis: Redis, post: Post) -> list[str]:
    subject = subject_of(post)
    return [key for key in (f"views:total:{subject}", f"views:hll:{subject}", f"funnel:{subject}") if redis.exists(key)]


@override_settings(READTRACK={"IDLE_DAYS": 0})
def test_nothing_leaves_redis_where_a_site_wants_it_so(post: Post, redis: Redis) -> None:
    view(post)
    _archive()
    Archive.objects.update(hour=1)
    _archive()
    assert _lasting(redis, post)


def _archive() -> FlushRun:
    """A full flush that finds the archive due."""
    flush()
    FlushRun.objects.update(flushed_until=1)
    run = flush()
    assert run.kind == Kind.ARCHIVE
    return run


def test_the_archive_is_not_due_before_its_time_and_may_be_off(post: Post) -> None:
    assert [flush().kind for _ in range(2)] == [Kind.FULL, Kind.FULL]
    FlushRun.objects.update(flushed_until=1)
    with override_settings(READTRACK={"ARCHIVE_EVERY": 0}):
        assert flush().kind == Kind.FULL


def test_an_archived_subject_is_written_again_only_when_it_changed(post: Post) -> None:
    view(post)
    _archive()
    before = Archive.objects.get()
    Archive.objects.update(hour=before.hour - 5)
    _archive()
    assert Archive.objects.get().hour == before.hour - 5
    view(post)
    _archive()
    assert (Archive.objects.get().views, Archive.objects.get().hour) == (2, before.hour)


def test_a_row_has_to_be_missing_twice_before_its_keys_go(post: Post, redis: Redis) -> None:
    subject = subject_of(post)
    view(post, 2)
    flush()
    with connection.cursor() as cursor:  # no signal
        cursor.execute("DELETE FROM site_post")
    with override_settings(READTRACK={"ORPHAN_AGE": 0}):
        assert flush().orphans == 1
        assert redis.exists(f"views:total:{subject}")
        assert flush().orphans == 1
    assert _lasting(redis, post) == []
    assert not History.objects.filter(subject=subject).exists()
    assert flush().orphans == 0


def test_a_deleted_row_leaves_no_mark(post: Post, redis: Redis) -> None:
    view(post)
    tracker.step(post, "click", visitor=Visitor("a"))
    subject = subject_of(post)
    names = {subject, f"funnel:{subject}"}
    assert names <= {*redis.zrange("views:unsettled", 0, -1)}
    post.delete()
    assert not names & {*redis.zrange("views:unsettled", 0, -1)}


def test_a_row_that_is_missing_for_a_moment_keeps_its_count(post: Post, redis: Redis) -> None:
    view(post, 2)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM site_post")
    assert [flush().orphans for _ in range(2)] == [1, 1]
    post.save(force_insert=True)
    flush()
    assert stored(post) == 2


@pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL's way to fail on purpose")
def test_a_deadlock_is_tried_again(post: Post) -> None:
    view(post)
    flush()
    view(post)
    failures = iter([1])

    def fail_once(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("WITH raised") and next(failures, None):
            return execute("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40P01'; END $$", (), many, context)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(fail_once):
        assert flush().written == 1


@pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL's way to fail on purpose")
def test_another_failure_is_not(post: Post) -> None:
    view(post)

    def fail(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("WITH raised"):
            return execute("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57014'; END $$", (), many, context)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(fail), pytest.raises(OperationalError):
        flush()
    assert FlushRun.objects.get().error
    assert flush().written == 1


def test_nothing_to_do_costs_no_statement_a_subject(post: Post) -> None:
    for _ in range(5):
        view(factories.post())
    flush()
    with CaptureQueriesContext(
        connection,
    ) as few:
        flush(only_changed=True)
    for _ in range(20):
        view(factories.post())
    flush(only_changed=True)
    with CaptureQueriesContext(connection) as many:
        flush(only_changed=True)
    assert len(many) == len(few)


def test_old_records_go_but_the_last_good_one_of_each_kind_stays(post: Post) -> None:
    good = flush()
    with override_settings(READTRACK={"FLUSH_RUNS": 2}):
        for _ in range(4):
            flush(only_changed=True)
    assert list(FlushRun.objects.order_by("pk").values_list("kind", flat=True)) == [
        Kind.FULL,
        Kind.CHANGED,
        Kind.CHANGED,
    ]
    assert FlushRun.objects.filter(pk=good.pk).exists()


def test_history_is_kept_by_the_hour_for_row_and_model(post: Post) -> None:
    flush()
    view(post, 2)
    flush(only_changed=True)
    view(post)
    flush(only_changed=True)
    hour = buckets.hour_index(buckets.now())
    rows = History.objects.order_by("subject").values_list("subject", "views", "visitors")
    assert list(rows.filter(hour__in=[hour, hour - 1])) == [
        ("site.post", 3, 0),
        (subject_of(post), 3, 3),
    ]


@override_settings(READTRACK={"HISTORY": False})
def test_a_site_may_do_without_history(post: Post) -> None:
    view(post)
    flush()
    view(post)
    flush(only_changed=True)
    assert not History.objects.exists()
