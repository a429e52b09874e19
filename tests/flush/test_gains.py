"""What models gain of breakdowns and funnels by the hour: each gain once, whatever happens to the
flush.
"""

import re
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.hits.stages import READS
from readtrack.hits.visitors import Visitor
from readtrack.numbers.flush.steps import NumbersSteps
from readtrack.numbers.models import Breakdown, BreakdownHistory, DayBreakdown, History
from readtrack.numbers.sql import breakdown_history, day_breakdowns, history
from readtrack.numbers.sql.history import of_reads
from readtrack.script.reading import Reading
from readtrack.sql import databases
from readtrack.store import keys, scripts
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.interference import dump, restore
from tests.support.waiting import comes_true

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def referrer(settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer"]}, "RATE": (0, 10)}


@pytest.fixture
def post() -> Post:
    return factories.post()


def refer(post: Post, *values: str) -> None:
    for value in values:
        assert tracker.record(
            factories.hit(subject_of(post), dimensions=(("referrer", value),))
        ).counted


def gained(kind: str = "views:referrer") -> Counter[str]:
    found: Counter[str] = Counter()
    for field, gain in BreakdownHistory.objects.filter(subject="site.post", kind=kind).values_list(
        "field", "count"
    ):
        found[field] += gain
    return found


def gained_by_day(post: Post, kind: str = "views:referrer") -> Counter[str]:
    """Returns what the post gained on all days."""
    found: Counter[str] = Counter()
    rows = DayBreakdown.objects.filter(subject=f"site.post:{post.pk}", kind=kind)
    for field, gain in rows.values_list("field", "count"):
        found[field] += gain
    return found


def junk(number: int) -> list[str]:
    return [f"{uuid.uuid4()}.example" for _ in range(number)]


def test_a_gain_is_added_once_by_whatever_flush_is_first(post: Post) -> None:
    other = factories.post()
    for only_changed in (False, True, True, False):
        refer(post, "a.example", "direct")
        refer(other, "direct")
        tracker.step(post, "click", visitor=Visitor(str(uuid.uuid4())))
        for _ in range(2):
            flush(only_changed=only_changed)
    assert gained() == {"a.example": 4, "direct": 8}
    assert gained("funnel") == {"view": 4, "click": 4}
    assert gained_by_day(post) == {"a.example": 4, "direct": 4}
    assert gained_by_day(other) == {"direct": 4}
    assert gained_by_day(post, "funnel") == {"view": 4, "click": 4}


@pytest.mark.parametrize(
    ("zone", "days"),
    [("Asia/Tokyo", [5, 6]), ("America/New_York", [5, 5]), ("Asia/Kolkata", [5, 6])],
)
def test_an_object_gains_on_the_day_of_the_time_zone(
    post: Post, settings: Settings, monkeypatch: pytest.MonkeyPatch, zone: str, days: list[int]
) -> None:
    settings.TIME_ZONE = zone
    for utc_hour in (14, 19):  # in Tokyo 23 and 4 o'clock, in Kolkata half past 19 and 0
        refer(post, "direct")
        at = datetime(2026, 5, 5, utc_hour, tzinfo=timezone.utc)
        monkeypatch.setattr(NumbersSteps, "hour", buckets.hour_index(at))
        flush(only_changed=True)
    found = DayBreakdown.objects.order_by("day").values_list("day", "count")
    assert Counter({day.day: count for day, count in found}) == Counter(days)


def do_after_reading(deed: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Does the deed once, after a flush has read hashes in Redis and before it writes."""
    read = scripts.run_all

    def read_and_do(*calls: Any, **kwargs: Any) -> Any:
        found = read(*calls, **kwargs)
        if any(call.script == "hashes" for call in calls):
            monkeypatch.undo()
            deed()
        return found

    monkeypatch.setattr(scripts, "run_all", read_and_do)


@pytest.mark.parametrize("deed", ["flush", "reset", "delete"])
def test_what_happens_between_reading_and_writing_adds_nothing_twice(
    post: Post, monkeypatch: pytest.MonkeyPatch, deed: str
) -> None:
    def happen() -> None:
        if deed == "flush":
            refer(post, *junk(10))  # in the places of others
            flush(only_changed=True)
        elif deed == "reset":
            tracker.reset_views(post)
            refer(post, "direct")
        else:
            post.delete()

    refer(post, *junk(50), *["direct"] * 5)
    flush(only_changed=True)
    refer(post, *junk(2), "direct")
    do_after_reading(happen, monkeypatch)
    flush(only_changed=True)
    flush(only_changed=True)
    # What was not flushed before it was reset or deleted is lost.
    assert gained().total() == {"flush": 68, "reset": 56, "delete": 55}[deed]
    in_days = sum(DayBreakdown.objects.values_list("count", flat=True))
    assert in_days == {"flush": 68, "reset": 1, "delete": 0}[deed]


def test_a_new_hash_that_another_flush_stored_before_its_row_was_deleted_is_gained_once(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    def happen() -> None:
        flush(only_changed=True)
        post.delete()

    refer(post, "direct")
    do_after_reading(happen, monkeypatch)
    flush(only_changed=True)
    assert gained() == {"direct": 1}
    assert not Breakdown.objects.exists()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="asks PostgreSQL who waits")
def test_a_flush_adds_no_gain_that_another_one_is_about_to_commit(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = breakdown_history.add_gains
    pool = ThreadPoolExecutor(1)

    def flush_meanwhile(*args: Any, **named: Any) -> None:
        monkeypatch.undo()
        add(*args, **named)
        others.append(pool.submit(flush_in_thread))
        assert comes_true(is_anybody_waiting)

    refer(post, "direct")
    flush(only_changed=True)
    refer(post, "direct", "direct")
    others: list[Future[None]] = []
    monkeypatch.setattr(breakdown_history, "add_gains", flush_meanwhile)
    with pool:
        flush(only_changed=True)
        [other] = others
        other.result()
    assert gained() == {"direct": 3}


def flush_in_thread() -> None:
    try:
        flush(only_changed=True)
    finally:
        connection.close()


def is_anybody_waiting() -> bool:
    """Returns True if a transaction of this database waits for the end of another one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)"
            " WHERE NOT granted AND datname = current_database())"
        )
        return bool(cursor.fetchone()[0])


@pytest.mark.parametrize("is_done", [False, True])
def test_a_flush_that_ends_while_it_adds_a_gain_has_stored_nothing(
    post: Post, monkeypatch: pytest.MonkeyPatch, *, is_done: bool
) -> None:
    add = breakdown_history.add_gains

    def fail(*args: Any, **named: Any) -> None:
        if is_done:
            add(*args, **named)
        raise RuntimeError("killed")

    refer(post, "a.example", "direct")
    monkeypatch.setattr(breakdown_history, "add_gains", fail)
    with pytest.raises(RuntimeError, match="killed"):
        flush(only_changed=True)
    monkeypatch.undo()
    assert not Breakdown.objects.exists()
    assert not DayBreakdown.objects.exists()
    for _ in range(2):
        flush(only_changed=True)
    assert gained() == {"a.example": 1, "direct": 1}
    assert gained_by_day(post) == {"a.example": 1, "direct": 1}


@pytest.mark.parametrize("is_done", [False, True])
def test_a_flush_that_is_killed_while_it_adds_days_has_stored_nothing(
    post: Post, monkeypatch: pytest.MonkeyPatch, *, is_done: bool
) -> None:
    add = day_breakdowns.add_gains

    def fail(*args: Any, **named: Any) -> None:
        if is_done:
            add(*args, **named)
        raise RuntimeError("killed")

    refer(post, "direct")
    flush(only_changed=True)
    refer(post, "a.example", "direct")
    monkeypatch.setattr(day_breakdowns, "add_gains", fail)
    with pytest.raises(RuntimeError, match="killed"):
        flush(only_changed=True)
    monkeypatch.undo()
    assert gained_by_day(post) == {"direct": 1} == gained()
    for _ in range(2):
        flush(only_changed=True)
    assert gained_by_day(post) == {"a.example": 1, "direct": 2} == gained()


def test_no_view_is_seen_twice_after_a_kill_between_history_and_counts_and_a_loss_of_redis(
    post: Post, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = subject_of(post)

    def see(views: int) -> None:
        for number in range(views):
            visitor = Visitor(f"{uuid.uuid4()}-{number}")
            hit = factories.hit(subject, visitor=visitor, is_report=True, is_seen=True)
            assert tracker.record(hit).counted

    def fail(model: Any, *args: Any, **named: Any) -> None:
        if model is Breakdown:
            raise RuntimeError("killed")
        upsert(model, *args, **named)

    see(10)
    flush(only_changed=True)
    see(5)
    upsert = databases.upsert
    monkeypatch.setattr(databases, "upsert", fail)
    with pytest.raises(RuntimeError, match="killed"):
        flush(only_changed=True)
    monkeypatch.undo()
    redis.flushdb()
    see(2)
    an_hour_later = buckets.hour_index(buckets.now()) + 1
    monkeypatch.setattr(NumbersSteps, "hour", an_hour_later)
    flush(only_changed=True)
    seen = history.of_stage("seen", subject)
    [of_views, of_seen] = [
        sum(sums.by_hour().values())
        for sums in history.sums([subject, seen], since=0, until=history.FOREVER).values()
    ]
    assert of_views == 12
    assert of_seen == 12


def test_values_that_differ_in_case_gain_no_more_than_was_viewed(post: Post) -> None:
    refer(post, "A.example", "a.example", "a.example")
    for _ in range(3):
        flush()
    assert 2 <= gained().total() <= 3  # MySQL takes the two for one


def test_what_redis_lost_is_no_gain_when_it_comes_back(post: Post, redis: Redis) -> None:
    refer(post, "a.example", *["direct"] * 4)
    flush()
    snapshot = dump(redis)
    refer(post, *["direct"] * 3)
    flush()
    restore(redis, snapshot)  # the flush lifts what it lacks
    flush()
    redis.flushdb()
    refer(post, "direct")
    flush()
    assert gained() == {"a.example": 1, "direct": 8} == gained_by_day(post)


def test_what_a_restored_redis_holds_of_a_deleted_row_is_not_stored_and_gains_nothing_again(
    post: Post, redis: Redis
) -> None:
    subject, reader = subject_of(post), Visitor("a")
    refer(post, *["direct"] * 3)
    assert tracker.record(factories.hit(subject, visitor=reader)).counted
    text = Reading(subject, 5, 9, stage=READS)
    assert len(tracker.record(factories.hit(visitor=reader, part_record=text)).steps) == 2
    tracker.step(post, "click", visitor=Visitor("b"))
    flush()
    snapshot = dump(redis)
    post.delete()
    flush(only_changed=True)
    restore(redis, snapshot)
    for only_changed in (True, True, False):
        flush(only_changed=only_changed)
        assert not Breakdown.objects.filter(subject=subject).exists()
        assert not History.objects.filter(subject=of_reads(subject)).exists()
    assert gained() == {"direct": 3}
    assert gained("funnel") == {"view": 1, "click": 1}


@pytest.mark.parametrize("deed", ["delete", "reset"])
def test_a_row_that_is_deleted_or_reset_before_an_old_snapshot_is_restored_gains_nothing_again(
    post: Post, redis: Redis, deed: str
) -> None:
    refer(post, *["direct"] * 3)
    flush()
    redis.unlink(keys.total(subject_of(post)))  # so that its total is unsettled in the snapshot
    refer(post, "direct")
    snapshot = dump(redis)
    flush(only_changed=True)
    if deed == "delete":
        post.delete()
    else:
        tracker.reset_views(post)
    restore(redis, snapshot)
    for _ in range(3):
        flush()
    assert gained() == {"direct": 4}


def test_what_redis_still_holds_of_a_row_that_was_deleted_while_it_was_down_gains_nothing_again(
    post: Post, settings: Settings
) -> None:
    refer(post, "direct", "a.example")
    flush(only_changed=True)
    there = settings.CACHES
    settings.CACHES = {"default": {**there["default"], "LOCATION": "redis://127.0.0.1:1/0"}}
    post.delete()
    settings.CACHES = there
    assert not Breakdown.objects.exists()
    for _ in range(2):
        flush(only_changed=True)
    assert gained() == {"direct": 1, "a.example": 1}


def test_a_value_that_takes_the_place_of_another_gains_only_its_own_views(post: Post) -> None:
    for turn in range(1, 5):
        refer(post, *junk(60), *["real.example"] * 5)
        flush(only_changed=True)
        assert gained().total() == turn * 65
    real = gained()["real.example"]
    assert 20 <= real <= 22  # by the space that it took of a value that was never stored
    assert gained_by_day(post)["real.example"] == real
    assert gained_by_day(post).total() == 260
    assert DayBreakdown.objects.count() == day_breakdowns.VALUES + 1
    assert gained().total() == 260 == sum(Breakdown.objects.values_list("count", flat=True))


def test_a_value_that_was_lost_and_too_many_that_come_back_gain_only_their_views(
    post: Post, redis: Redis
) -> None:
    refer(post, *junk(80), *["real.example"] * 40)
    flush()
    redis.flushdb()
    refer(post, *junk(80), *["real.example"] * 40)
    flush()
    refer(post, *junk(2))
    flush(only_changed=True)
    assert gained().total() == 242
    assert 80 <= gained()["real.example"] <= 84


def test_rows_of_a_reset_that_were_written_late_go_and_what_was_counted_since_is_gained_once(
    post: Post, redis: Redis
) -> None:
    subject = subject_of(post)
    refer(post, "direct")
    tracker.reset_views(post)
    refer(post, *["direct"] * 3, "a.example")
    flush()
    Breakdown.objects.filter(field="direct").update(count=90)
    Breakdown.objects.create(subject=subject, kind="views:referrer", field="old.example", count=7)
    redis.zadd("views:reset", {subject: 1})
    flush()
    assert dict(Breakdown.objects.values_list("field", "count")) == {"direct": 3, "a.example": 1}
    assert gained_by_day(post) == {"direct": 3, "a.example": 1}
    refer(post, "a.example")
    flush()
    assert gained()["a.example"] == 2 == gained_by_day(post)["a.example"]


def test_without_history_nothing_is_gained(post: Post, settings: Settings) -> None:
    numbers = settings.READTRACK["NUMBERS"]
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {**numbers, "history": False}}
    refer(post, "direct")
    flush()
    assert not gained()
    assert not DayBreakdown.objects.exists()
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": numbers}
    refer(post, "direct")
    flush()
    assert gained() == {"direct": 1}


@pytest.mark.parametrize("only_changed", [True, False])
def test_a_flush_of_a_site_without_dimensions_and_funnels_makes_no_query_for_gains(
    post: Post, settings: Settings, only_changed: bool
) -> None:
    settings.READTRACK = {}
    flush()
    visitor = Visitor("a")
    tracker.record(factories.hit(subject_of(post), visitor=visitor))
    text = Reading(subject_of(post), 5, 9, stage=READS)
    assert len(tracker.record(factories.hit(visitor=visitor, part_record=text)).steps) == 2
    with CaptureQueriesContext(connection) as queries:
        flush(only_changed=only_changed)
    assert Breakdown.objects.filter(kind="reading").exists()
    assert not BreakdownHistory.objects.filter(kind="reading").exists()
    # Not those of categories. MariaDB does not show what it inserts.
    of_groups = f"section:views|'mark'|INSERT INTO `{BreakdownHistory._meta.db_table}`"
    statements = [query["sql"] for query in queries if not re.search(of_groups, query["sql"])]
    own = [statement for statement in statements if "breakdown" in statement]
    for model in (BreakdownHistory, DayBreakdown):
        assert not [sql for sql in own if model._meta.db_table in sql]
    assert len(own) == 3, own
