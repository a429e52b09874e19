"""The flush: SQL never decreases, never exceeds the views, and gets all that Redis holds."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from django.db import Error, connection
from django.db.models.signals import post_save, pre_save
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries
from redis import Redis
from redis.exceptions import RedisError

from readtrack import signals, tracker
from readtrack.flush import run as running
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.models import FlushRun
from readtrack.store import flush_notes
from tests.site.models import Headline, Page, Post, Product, Review
from tests.support import factories
from tests.support.counts import live, stored, view
from tests.support.depth import some
from tests.support.interference import database_down, disconnect
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db(databases=["default", "lite"])


MAKERS: dict[str, Any] = {
    "number": lambda: Post.objects.create(title="x"),
    "uuid": lambda: Product.objects.create(name="x"),
    "text": lambda: Page.objects.create(slug="*:{}%é x!"),
    "quotes": lambda: Page.objects.create(slug="'; DROP TABLE site_page --\\"),
    "child": lambda: Review.objects.create(title="x"),
    "proxy": lambda: Headline.objects.create(title="x"),
}


@pytest.mark.parametrize(
    ("database", "kind"),
    some(
        [*product(["default"], MAKERS), *product(["lite"], ["number", "uuid", "text"])],
        deep=product(["default", "lite"], MAKERS),
    ),
    indirect=["database"],
)
def test_counts_arrive_in_sql_whatever_the_primary_key_is(database: str, kind: str) -> None:
    obj = MAKERS[kind]()
    view(obj, obj, obj)
    run = flush()
    assert (run.read, run.written) == (1, 1)
    obj.refresh_from_db()
    assert (obj.view_count, obj.visitor_count) == (3, 3)
    assert obj._state.db == database


def test_a_flush_carries_all_models_and_many_chunks(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.flush.run.TOTALS_AT_ONCE", 7)
    posts = [factories.post() for _ in range(20)]
    products = [Product.objects.create(name="x") for _ in range(5)]
    view(*posts, *products, *posts)
    run = flush()
    assert (run.read, run.written) == (25, 25)
    assert [stored(post) for post in posts] == [2] * 20
    assert [stored(product) for product in products] == [1] * 5


def test_more_totals_than_one_script_takes_are_flushed(redis: Redis) -> None:
    Post.objects.bulk_create(Post(title="x") for _ in range(2_300))
    pks = list(Post.objects.values_list("pk", flat=True))
    redis.mset({f"views:total:site.post:{pk}": 5 for pk in pks})
    redis.zadd("views:unsettled", {f"site.post:{pk}": 1 for pk in pks})
    Post.objects.update(view_count=2)
    run = flush()
    assert (run.read, run.written, run.settled) == (2_300, 2_300, 2_300)
    assert set(Post.objects.values_list("view_count", flat=True)) == {7}


def test_flushing_again_writes_nothing(database: str) -> None:
    view(factories.post(), Product.objects.create(name="x"))
    assert flush().written == 2
    again = flush()
    assert (again.written, again.settled, again.lifted) == (0, 0, 0)


def test_a_deleted_post_is_an_orphan_and_no_error(database: str) -> None:
    post, gone = factories.post(), factories.post()
    view(post, gone)
    Post.objects.filter(pk=gone.pk).delete()
    run = flush()
    assert (run.written, run.orphans) == (1, 1)
    assert Post.objects.count() == 1


NOTHINGS = ["nowhere.thing:1", "site.category:1", "site.post:x", "rubbish", "site.product:1"]


@pytest.mark.parametrize(
    ("database", "subject"),
    some(
        [*product(["default"], NOTHINGS), ("lite", "site.product:1")],
        deep=product(["default", "lite"], NOTHINGS),
    ),
    indirect=["database"],
)
def test_totals_that_belong_to_nothing_are_orphans(database: str, subject: str) -> None:
    post = factories.post()
    view(post)
    tracker.record(factories.hit(subject))
    run = flush()
    assert (run.read, run.written, run.orphans) == (2, 1, 1)


def test_other_keys_in_the_same_redis_are_left_alone(redis: Redis) -> None:
    redis.set("session:1", "x")
    redis.set("other:views:total:site.post:1", 7)
    assert flush().read == 0
    assert redis.get("session:1") == "x"


def test_the_flush_neither_saves_instances_nor_fires_their_signals() -> None:
    seen: list[Any] = []

    def receive(sender: Any, **kwargs: Any) -> None:
        seen.append(sender)

    post = factories.post()
    view(post)
    for signal in (pre_save, post_save):
        signal.connect(receive, sender=Post)
    try:
        flush()
    finally:
        for signal in (pre_save, post_save):
            signal.disconnect(receive, sender=Post)
    assert stored(post) == 1
    assert seen == []


def test_a_flush_leaves_a_record_and_tells_listeners(database: str) -> None:
    runs: list[Any] = []

    def listen(*, record: FlushRun, **kwargs: Any) -> None:
        runs.append(record)
        raise ValueError("a listener's own mistake")

    signals.flushed.connect(listen)
    try:
        view(factories.post())
        run = flush()
    finally:
        signals.flushed.disconnect(listen)
    assert runs == [run]
    recorded = FlushRun.objects.get()
    assert (recorded.read, recorded.written, recorded.error) == (1, 1, "")
    assert recorded.ended
    assert recorded.ended >= recorded.started


@pytest.mark.parametrize("is_id_taken", [False, True])
def test_a_flush_that_spans_a_restore_of_the_database_takes_no_id_of_a_later_one(
    monkeypatch: pytest.MonkeyPatch, is_id_taken: bool
) -> None:
    """The flush did not store everything in this database, so the next one begins before it."""
    post = factories.post()
    view(post)
    flush()
    backup = FlushRun.objects.get()
    finish = running._finish

    def restore_first(*args: Any, **kwargs: Any) -> None:
        own = FlushRun.objects.latest("pk")
        FlushRun.objects.exclude(pk=backup.pk).delete()
        if is_id_taken:
            FlushRun.objects.create(pk=own.pk, started=backup.started)
        Post.objects.update(view_count=0)
        finish(*args, **kwargs)
        spanning.append(own.pk)

    spanning: list[int] = []
    monkeypatch.setattr(running, "_finish", restore_first)
    view(post)
    last = flush(only_changed=True)
    monkeypatch.undo()
    assert last.pk != spanning[0]
    assert "restored" in last.error
    assert FlushRun.objects.filter(pk=spanning[0]).exists() == is_id_taken
    flush(only_changed=True)
    assert FlushRun.objects.latest("pk").error == ""
    assert Post.objects.get().view_count == 2


def test_old_records_are_forgotten(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readtrack.flush.run.RECORDS_KEPT", 3)
    runs = [flush() for _ in range(5)]
    assert list(FlushRun.objects.all()) == runs[:1:-1]


def test_progress_is_reported_by_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readtrack.flush.run.TOTALS_AT_ONCE", 4)
    view(*(factories.post() for _ in range(10)))
    steps: list[int] = []
    flush(progress=steps.append)
    assert sum(steps) == 10
    assert len(steps) >= 3


@pytest.mark.parametrize(
    ("database", "trip"),
    some(
        [*product(["default"], range(1, 8)), ("lite", 3), ("lite", 6)],
        deep=product(["default", "lite"], range(1, 8)),
    ),
    indirect=["database"],
)
def test_a_flush_that_loses_redis_anywhere_is_made_good_by_the_next(
    database: str, wire: Wire, redis: Redis, trip: int
) -> None:
    settled, fresh, old = (
        factories.post(view_count=10),
        factories.post(),
        factories.post(view_count=5),
    )
    view(settled, fresh)
    redis.set(f"views:total:site.post:{old.pk}", 3)
    last = wire.trips + trip

    def cut(moment: str, number: int) -> None:
        if number >= last and moment == "answer":
            wire.hook = None
            wire.cut()

    wire.hook = cut
    with pytest.raises(RedisError):
        flush()
    wire.mend()
    assert FlushRun.objects.get().error.startswith("ConnectionError: ")
    assert (stored(settled), stored(fresh), stored(old)) in {(10, 0, 5), (11, 1, 5)}
    flush()
    assert [stored(post) for post in (settled, fresh, old)] == [11, 1, 5]
    assert [live(redis, post) for post in (settled, fresh, old)] == [11, 1, 5]
    assert flush().written == 0


def test_a_listener_hears_only_of_flushes_that_ended_well(wire: Wire) -> None:
    runs: list[FlushRun] = []

    def listen(*, record: FlushRun, **kwargs: Any) -> None:
        runs.append(record)

    signals.flushed.connect(listen)
    wire.cut()
    try:
        with pytest.raises(RedisError):
            flush()
    finally:
        signals.flushed.disconnect(listen)
    assert runs == []


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_down_for_some_runs_loses_nothing(redis: Redis) -> None:
    post, settled = factories.post(), factories.post(view_count=10)
    view(post, settled)
    with database_down(connection):
        for _ in range(3):
            with pytest.raises(Error):
                flush()
            connection.close()
            view(post)
    flush()
    assert stored(post) == live(redis, post) == 4
    assert stored(settled) == live(redis, settled) == 11


@pytest.mark.django_db(transaction=True)
def test_a_database_that_goes_down_in_the_midst_loses_nothing(wire: Wire, redis: Redis) -> None:
    post, settled = factories.post(), factories.post(view_count=10)
    view(post, settled)
    start = wire.trips
    for trip in range(1, 9):
        _flush_with_database_lost_at(wire, start + trip)
        connection.close()
        assert (stored(post), stored(settled)) in {(trip - 1, 9 + trip), (trip, 10 + trip)}
        flush()
        assert (stored(post), stored(settled)) == (trip, 10 + trip)
        view(post, settled)
        start = wire.trips


def _flush_with_database_lost_at(wire: Wire, trip: int) -> None:
    def lose(moment: str, number: int) -> None:
        if number == trip and moment == "request":
            wire.hook = None
            disconnect(connection.settings_dict)

    wire.hook = lose
    try:
        flush()
    except Error:
        connection.close()
    wire.hook = None


@pytest.fixture
def post() -> Post:
    return factories.post()


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


def test_old_records_go_but_the_last_good_one_of_each_kind_stays(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = flush()
    monkeypatch.setattr("readtrack.flush.run.RECORDS_KEPT", 2)
    for _ in range(4):
        flush(only_changed=True)
    last = flush()
    left = FlushRun.objects.order_by("pk").values_list("kind", flat=True)
    assert list(left) == [good.kind, FlushRun.Kind.CHANGED, last.kind]
    assert FlushRun.objects.filter(pk=good.pk).exists()


def test_a_chunk_is_few_queries_and_round_trips_however_many_rows(
    wire: Wire, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    posts = [factories.post() for _ in range(300)]
    view(*posts)
    flush()
    view(*posts)
    # One of them in the last minute of an hour only.
    with django_assert_max_num_queries(91), wire.counted() as trips:
        assert flush().written == 300
    assert trips[0] <= 40  # some of them are SCAN's, as many as it likes


@pytest.mark.one_server("a cluster takes more round trips")
def test_a_changed_flush_with_nothing_new_takes_four_queries_and_three_trips(
    post: Post, wire: Wire, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    view(post)
    flush()
    with django_assert_max_num_queries(4), wire.counted() as trips:
        quiet = flush(only_changed=True)
    assert trips[0] <= 3
    assert FlushRun.objects.get(pk=quiet.pk).ended
    assert (quiet.kind, quiet.read) == (FlushRun.Kind.CHANGED, 0)
    view(post)
    assert flush(only_changed=True).read == 1


def test_a_flush_that_another_one_overtakes_does_not_take_redis_for_a_restored_one(
    post: Post, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    view(post)
    flush()

    def be_late(tags: Sequence[str]) -> flush_notes.LastFlushes:
        monkeypatch.undo()
        found = flush_notes.last_flushes(tags)
        view(post)
        assert flush(only_changed=True).read == 1
        return found

    monkeypatch.setattr(flush_notes, "last_flushes", be_late)
    assert flush(only_changed=True).kind == FlushRun.Kind.CHANGED
    assert flush(only_changed=True).kind == FlushRun.Kind.CHANGED
    assert (stored(post), live(redis, post)) == (2, 2)


@pytest.mark.parametrize(
    "has_step", [False, pytest.param(True, marks=pytest.mark.needs_parts("numbers"))]
)
def test_a_flush_reads_hashes_only_where_there_are_any(redis: Redis, has_step: bool) -> None:
    posts = [factories.post() for _ in range(200)]
    view(*posts)
    if has_step:
        assert tracker.step(posts[0], "click", visitor=Visitor("a"))
    redis.config_resetstat()
    assert flush(only_changed=True).written == 200
    assert ("cmdstat_hgetall" in redis.info("commandstats")) is has_step
