"""Archiving: sketches and breakdowns are stored in SQL, and idle subjects leave Redis."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.test.utils import override_settings
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, reports, tracker
from readtrack.flush import totals
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor, user_id
from readtrack.models import Archive, FlushRun
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import Breakdown, History
from readtrack.numbers.sql.history import of_stage
from readtrack.store import counters, scripts
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.counts import remaining_keys, stored
from tests.support.counts import view_times as view
from tests.support.interference import dump, restore

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def post() -> Post:
    return factories.post()


def test_a_settled_subject_gets_its_base_and_its_sketch_back(post: Post, redis: Redis) -> None:
    view(post, 3)
    _archive()
    redis.flushall()
    view(post, 2)
    run = flush(only_changed=True)
    assert run.settled == 2  # the total and the model's hour
    assert stored(post) == 5
    assert Post.objects.get(pk=post.pk).visitor_count == 5


@pytest.mark.parametrize("kind", ["full", "archive", "late"])
def test_no_more_views_are_stored_as_seen_than_as_viewed_while_the_site_is_visited(
    post: Post, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind != "late":
        flush()
    read = totals._live

    def visit_then(*args: Any) -> Any:
        found = read(*args)
        view(post, 3, is_seen=True)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(totals, "_live", visit_then)
        for _ in range(2):
            view(post, 5, is_seen=True)
            flush(must_archive=kind == "archive")
            assert sum_of("seen") <= sum_of("views") == stored(post)
            seen = Breakdown.objects.get(kind="reading", field="seen").count
            assert seen <= stored(post)
    flush()
    assert sum_of("seen") == sum_of("views") == stored(post) == 16


def sum_of(stage: str) -> int:
    """Returns what history has of the only post."""
    subject = subject_of(Post.objects.get())
    name = subject if stage == "views" else of_stage(stage, subject)
    return max(History.objects.filter(subject=name).values_list("views", flat=True), default=0)


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
    counters.mark_changed([subject_of(post)])
    flush(only_changed=True)
    assert redis.hgetall(name) == {"view": "6", "sign": "2"}

    redis.hset(name, "view", 1)  # out of an old snapshot
    counters.mark_changed([subject_of(post)])
    flush(only_changed=True)
    assert redis.hgetall(name) == {"view": "6", "sign": "2"}


@pytest.mark.parametrize("only_changed", [True, False])
def test_a_funnel_moves_on_without_a_view(post: Post, only_changed: bool) -> None:
    flush()
    tracker.step(post, "click", visitor=Visitor("a"))
    flush(only_changed=only_changed)
    assert dict(Breakdown.objects.values_list("field", "count")) == {"view": 1, "click": 1}
    assert reports.trending() == []


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


def test_a_sketch_that_was_lost_alone_comes_back_with_a_full_flush_as_a_lift(
    post: Post, redis: Redis
) -> None:
    view(post, 10)
    flush()
    redis.delete(f"views:hll:{subject_of(post)}")
    view(post, 3)
    run = flush()
    assert (run.lifted, flush().written) == (1, 1)
    assert Post.objects.get(pk=post.pk).visitor_count == 13


def test_a_hash_that_waits_for_its_base_is_not_stored(post: Post, redis: Redis) -> None:
    name = f"funnel:{subject_of(post)}"
    flush()
    view(post)
    redis.hset(name, "view", 9)
    redis.zadd("views:unsettled", {name: 2**53})  # marked while the flush was under way
    flush(only_changed=True)
    assert not Breakdown.objects.exists()


def refer(post: Post, *values: str) -> None:
    for value in values:
        tracker.record(factories.hit(subject_of(post), dimensions=(("referrer", value),)))


def junk(number: int) -> list[str]:
    return [f"{uuid.uuid4()}.example" for _ in range(number)]


def breakdowns_of(post: Post, redis: Redis) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the breakdown in Redis, and the one in SQL."""
    live = {
        str(value): int(count)
        for value, count in redis.hgetall(f"views:referrer:{subject_of(post)}").items()
    }
    return live, dict(Breakdown.objects.values_list("field", "count"))


@override_settings(READTRACK={"NUMBERS": {"dimensions": ["referrer"]}})
def test_values_that_were_replaced_in_redis_are_so_in_sql(post: Post, redis: Redis) -> None:
    for turn in range(1, 5):
        refer(post, *junk(30), *["real.example"] * 5)
        flush(only_changed=True)
        live, in_sql = breakdowns_of(post, redis)
        assert live == in_sql
        assert sum(live.values()) == stored(post) == turn * 35
    assert live["real.example"] == 20


@override_settings(READTRACK={"NUMBERS": {"dimensions": ["referrer"]}})
def test_a_value_that_comes_back_between_two_flushes_adds_nothing(post: Post, redis: Redis) -> None:
    refer(post, "back.example", *["real.example"] * 60, *junk(48))
    flush(only_changed=True)
    for _ in range(3):
        refer(post, *junk(70), "back.example")
        flush(only_changed=True)
        live, in_sql = breakdowns_of(post, redis)
        assert live == in_sql
        assert sum(live.values()) == stored(post)
    assert live["back.example"] >= 3


@override_settings(READTRACK={"NUMBERS": {"dimensions": ["referrer"]}})
def test_a_breakdown_that_redis_lost_adds_up_to_the_views_again(post: Post, redis: Redis) -> None:
    refer(post, *junk(80), *["real.example"] * 40)
    flush()
    redis.flushdb()
    refer(post, *junk(80), *["real.example"] * 40)
    flush()
    assert sum(numbers_reports.breakdown(post, "referrer").values()) == stored(post) == 240
    refer(post, *junk(2))
    flush(only_changed=True)
    live, in_sql = breakdowns_of(post, redis)
    assert live == in_sql
    assert sum(live.values()) == stored(post) == 242
    assert 80 <= live["real.example"] <= 84
    assert len(live.keys() - {"other"}) == 50


@override_settings(READTRACK={"NUMBERS": {"dimensions": ["referrer"]}})
def test_a_flush_that_stores_replaced_values_late_brings_nothing_back(
    post: Post, redis: Redis
) -> None:
    refer(post, *junk(50), *junk(50))
    flush(only_changed=True)
    late = Breakdown.objects.first()
    assert late
    Breakdown.objects.create(
        subject=late.subject, kind=late.kind, field="replaced.example", count=1
    )
    Breakdown.objects.create(subject=late.subject, kind=late.kind, field="lost.example", count=900)
    refer(post, *junk(1))
    flush(only_changed=True)
    live, in_sql = breakdowns_of(post, redis)
    assert "replaced.example" not in {*live, *in_sql}
    assert live["lost.example"] == 900  # Redis came out of an older snapshot


def test_idle_subjects_leave_redis_and_come_back_with_their_base(post: Post, redis: Redis) -> None:
    active = factories.post()
    view(post, 3)
    redis.hset(f"funnel:{subject_of(post)}", "view", 3)
    view(active)
    _archive()
    Archive.objects.update(hour=1)
    view(active)
    _archive()
    assert remaining_keys(redis, post) == []
    assert remaining_keys(redis, active)
    view(post)
    flush(only_changed=True)
    assert stored(post) == 4
    assert redis.pfcount(f"views:hll:{subject_of(post)}") == 4


@pytest.mark.parametrize(
    ("strategy", "stays"),
    [("hll", False), ("set", True), ("daily", False), ("bitmap", True), ("none", False)],
)
def test_idle_subjects_leave_redis_unless_only_redis_knows_who_has_seen_them(
    post: Post, redis: Redis, settings: Settings, strategy: str, *, stays: bool
) -> None:
    user = factories.user()
    settings.READTRACK = {"UNIQUE": "set"}  # until now; its keys go, too
    tracker.record(factories.hit(subject_of(post)))
    settings.READTRACK = {"UNIQUE": strategy}
    for visitor, reader in ((user_id(user.pk), user.pk), ("a", user.pk + 1), ("b", user.pk + 2)):
        tracker.record(factories.hit(subject_of(post), visitor=Visitor(visitor), reader=reader))
    _archive()
    Archive.objects.update(hour=1)
    _archive()
    lasting = {key for key in redis.keys(f"*:{subject_of(post)}") if redis.ttl(key) == -1}
    kept = {"set": "unique"}.get(strategy, strategy)
    assert (
        lasting >= {f"views:{name}:{subject_of(post)}" for name in ("total", kept)}
        if stays
        else not lasting
    )
    post.refresh_from_db()
    before = post.visitor_count
    tracker.record(factories.hit(subject_of(post), visitor=Visitor("c"), reader=user.pk + 3))
    flush(only_changed=True)
    post.refresh_from_db()
    assert (post.view_count, post.visitor_count) == (5, 0 if strategy == "none" else before + 1)
    if stays:
        assert reports.has_seen(user, post)


@pytest.mark.parametrize(
    ("strategy", "key"),
    [("hll", "views:hours:{}"), ("hll", "views:hll:day:{}"), ("daily", "views:unique:day:{}")],
)
def test_what_reports_still_read_of_an_idle_subject_stays_until_it_expires(
    post: Post, redis: Redis, settings: Settings, strategy: str, key: str
) -> None:
    settings.READTRACK = {"UNIQUE": strategy}
    view(post)
    _archive()
    Archive.objects.update(hour=1)
    _archive()
    assert remaining_keys(redis, post) == []
    today = buckets.local_day_bucket(buckets.now())
    name = f"{today}:{subject_of(post)}" if "day" in key else subject_of(post)
    assert redis.ttl(key.format(name)) > 0


def _begin_anew(redis: Redis, post: Post) -> None:
    """Gives Redis a new total, as high as SQL's, of other views."""
    redis.delete(f"views:total:{subject_of(post)}")
    view(post, 3)


DEEDS: dict[str, tuple[Callable[[Redis, Post], object], tuple[int, int]]] = {
    "a view": (lambda redis, post: view(post), (4, 1)),
    "a total begun anew": (_begin_anew, (6, 1)),
    "a step": (lambda redis, post: tracker.step(post, "click", visitor=Visitor("b")), (3, 2)),
}


@pytest.mark.parametrize(("deed", "expected"), DEEDS.values(), ids=DEEDS)
def test_views_of_an_idle_subject_at_the_last_moment_are_not_lost(
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
    read = scripts.run_all

    def be_late(*calls: Any, **kwargs: Any) -> Any:
        found = read(*calls, **kwargs)
        if any(call.script == "hashes" for call in calls):
            monkeypatch.setattr(scripts, "run_all", read)
            deed(redis, post)
        return found

    monkeypatch.setattr(scripts, "run_all", be_late)
    _archive()
    flush()
    clicks = Breakdown.objects.get(kind="funnel", field="click").count
    assert (stored(post), clicks) == expected


def test_a_step_that_is_in_no_bucket_any_more_is_stored_before_an_idle_subject_leaves(
    post: Post, redis: Redis
) -> None:
    view(post)
    _archive()
    Archive.objects.update(hour=1)
    tracker.step(post, "click", visitor=Visitor("a"))
    redis.delete(*redis.keys("trending:*"))
    _archive()
    assert remaining_keys(redis, post) == []
    assert Breakdown.objects.get(field="click").count == 1


@override_settings(READTRACK={"IDLE_DAYS": 0})
def test_nothing_leaves_redis_where_a_site_wants_it_so(post: Post, redis: Redis) -> None:
    view(post)
    _archive()
    Archive.objects.update(hour=1)
    _archive()
    assert remaining_keys(redis, post)


def _archive() -> FlushRun:
    """Runs a full flush for which the archive is due."""
    flush()
    FlushRun.objects.update(flushed_until=1)
    run = flush()
    assert run.kind == FlushRun.Kind.ARCHIVE
    return run


def test_the_archive_is_not_due_before_its_time_unless_it_must_be(post: Post) -> None:
    assert [flush().kind for _ in range(2)] == [FlushRun.Kind.FULL] * 2
    assert flush(must_archive=True).kind == FlushRun.Kind.ARCHIVE
    assert flush().kind == FlushRun.Kind.FULL


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
