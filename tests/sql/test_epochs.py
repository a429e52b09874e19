"""Epochs: SQL follows the settlings of Redis, and notices a Redis that was restored."""

import asyncio
from typing import Any

import pytest
from django.template import Context, Template
from pytest_django import DjangoAssertNumQueries, Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.flush import settling, totals
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.models import FlushRun, KnownEpoch
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.flush import breakdowns
from readtrack.sql.epochs import SqlEpoch
from readtrack.sql.faults import Faults
from readtrack.store import counters, keys, scripts
from readtrack.store.connection import server_time
from readtrack.store.counters import Epoch
from readtrack.subjects import subject_of
from tests.site.models import Manual, Post
from tests.support import factories
from tests.support.counts import view_times as view
from tests.support.depth import some
from tests.support.interference import Dump, dump, restore

pytestmark = pytest.mark.django_db(databases=["default", "lite"])

BASE = 100  # what SQL held before Redis ever heard of it


@pytest.mark.usefixtures("database")
def test_sql_follows_only_from_where_it_is() -> None:
    epoch = SqlEpoch()
    assert known(7) is None
    assert epoch.advance([Epoch(7, 10)])
    assert epoch.advance([Epoch(7, 10)])
    assert epoch.advance([Epoch(7, 20, 10)])
    assert not epoch.advance([Epoch(7, 30, 10)])
    assert not SqlEpoch().advance([Epoch(7)])
    assert known(7) == Epoch(7, 20)
    assert str(KnownEpoch.objects.get()) == "20"


@pytest.mark.usefixtures("database")
def test_each_list_of_unsettled_counters_has_epochs_of_its_own() -> None:
    epoch = SqlEpoch()
    assert not epoch.advance([Epoch()])
    assert epoch.advance([Epoch(7)])
    assert epoch.advance([Epoch(7, 10, until=5)])
    assert epoch.advance([Epoch(8)])
    assert epoch.advance([Epoch(7, 11, 10, until=6)])
    before = server_time()
    assert epoch.advance([Epoch(8, 20, 19)])  # the database was restored from before that list
    assert known(8) == Epoch(8, 20)
    # A Redis that shows the first list again was restored.
    assert not epoch.advance([Epoch(7, 11, 10, until=6)])
    assert not epoch.advance([Epoch(7, 12, 11, until=6)])
    closed = known(7)
    assert closed
    assert closed.until >= before


@pytest.mark.usefixtures("database")
def test_a_snapshot_is_known_although_the_database_forgot_what_was_settled_after_it(
    redis: Redis,
) -> None:
    post = factories.post(view_count=BASE)
    view(factories.post())
    flush()
    view(post)
    snapshot = dump(redis)
    backup = list(KnownEpoch.objects.values())
    flush()
    redis.delete(keys.unsettled(""))  # the list alone is lost
    Post.objects.filter(pk=post.pk).update(view_count=BASE)
    KnownEpoch.objects.all().delete()
    KnownEpoch.objects.bulk_create(KnownEpoch(**row) for row in backup)
    flush()
    assert stored() == [BASE + 1, 1]
    restore(redis, snapshot)
    for _ in range(2):
        flush()
        assert stored() == [BASE + 1, 1]
    view(post)
    flush()
    assert stored() == [BASE + 2, 1]


@pytest.mark.usefixtures("database")
def test_a_restored_redis_is_taken_into_the_line_only_when_none_of_its_old_marks_is_left(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts, "SLICE", 1)
    for _ in range(3):
        view(factories.post(view_count=BASE))
    snapshot = dump(redis)
    flush()
    restore(redis, snapshot)
    flush()
    assert stored() == [BASE + 1] * 3


@pytest.mark.usefixtures("database")
def test_a_flush_that_is_killed_before_it_tells_of_what_it_settled_leaves_no_other_base_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scripts, "SLICE", 1)
    posts = factories.neighbours(3, view_count=BASE)
    for post in posts:
        view(post)
    epoch = settle_and_die(posts[0])
    assert SqlEpoch().advance([epoch])
    settle_and_die(posts[0])  # the last mark is older than what SQL was told of
    flush()
    assert stored() == [BASE + 1] * 3


@pytest.mark.usefixtures("database")
def test_sql_is_told_of_an_epoch_before_it_stores_a_total_that_was_settled_in_it(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = factories.post(view_count=BASE)
    view(post)
    flush()
    snapshot: Dump = {}
    read = totals._live

    def be_late(*args: Any) -> Any:
        """Lets another flush settle, which is then killed, before this one reads."""
        monkeypatch.setattr(totals, "_live", read)
        redis.delete(f"views:total:{subject_of(post)}")
        view(post)
        snapshot.update(dump(redis))
        settle_and_die(post)
        return read(*args)

    monkeypatch.setattr(totals, "_live", be_late)
    flush()
    assert stored() == [BASE + 2]
    restore(redis, snapshot)
    flush()
    assert stored() == [BASE + 2]


@pytest.mark.usefixtures("database")
def test_a_redis_that_went_back_between_settling_and_reading_is_settled_again_before_its_totals_are_stored(
    redis: Redis,
) -> None:
    first, second = factories.neighbours(2)
    view(first)
    flush()
    view(second)
    before = dump(redis)
    epoch, tag = SqlEpoch(), keys.tag(subject_of(first))
    settle_and_die(second)
    settled = dump(redis)
    restore(redis, before)
    redis.delete(f"views:total:{subject_of(first)}")
    view(first)
    [(_, present)] = counters.unsettled(until=server_time(patient=True), tags=[tag])
    # A flush that read the list before the second post was on it.
    base = settling.stored_counters([subject_of(first)], Faults())
    _, told = scripts.run(
        counters.settle(base, epoch=present, sql_epoch=SqlEpoch().known([present])[tag])
    )
    assert SqlEpoch().advance([told])
    unsettled = dump(redis)
    restore(redis, settled)
    now = server_time(patient=True)
    run = FlushRun(redis_time=now, flushed_until=now)
    work = totals.Work(run, epoch, Faults(), steps=[], changed={})
    totals.write_chunk([subject_of(second)], work, extent=totals.Extent())
    assert stored() == [1, 1]
    restore(redis, unsettled)
    flush()
    assert stored() == [2, 1]


@pytest.mark.usefixtures("database")
def test_sql_is_told_of_an_epoch_before_it_stores_a_hash_that_was_settled_in_it(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = factories.post()
    click(post, "a")
    flush()
    snapshot: Dump = {}
    keep = breakdowns.store

    def be_late_and_die(subjects: Any, epoch: SqlEpoch, *, hours: Any, **options: Any) -> None:
        redis.delete(f"funnel:{subject_of(post)}")
        click(post, "b")
        snapshot.update(dump(redis))
        settle_and_die(post)
        keep([subject_of(post)], epoch, hours=hours)
        raise RuntimeError("killed here")

    with monkeypatch.context() as patched:
        patched.setattr(breakdowns, "store", be_late_and_die)
        counters.mark_changed([subject_of(post)])
        with pytest.raises(RuntimeError, match="killed here"):
            flush(only_changed=True)
    restore(redis, snapshot)
    flush()
    assert [stage.count for stage in numbers_reports.funnel(Post.objects.get())][1] == 2


@pytest.mark.usefixtures("database")
def test_a_flush_that_two_others_overtook_settles_by_the_epoch_of_now(redis: Redis) -> None:
    post = factories.post(view_count=BASE)
    epoch = SqlEpoch()
    for _ in range(2):
        redis.delete(f"views:total:{subject_of(post)}")
        view(post)
        flush()
    settling.settle(epoch, Faults())
    current = scripts.run(counters.epoch(keys.tag(subject_of(post))))
    assert SqlEpoch().known([current]) == {current.tag: current._replace(previous=0)}
    redis.delete(f"views:total:{subject_of(post)}")
    view(post)
    flush()
    assert stored() == [BASE + 3]


@pytest.mark.usefixtures("database")
def test_views_after_a_loss_count_though_the_successors_clock_is_behind(redis: Redis) -> None:
    posts = [factories.post() for _ in range(20)]
    for post in posts:
        view(post)
    flush()
    redis.flushdb()
    for post in posts:
        view(post)
    set_back(redis, 3600)
    flush()
    assert stored() == [2] * 20
    assert all(shown == 2 for shown in reports.views(posts).values())


@pytest.mark.usefixtures("database")
def test_views_after_a_second_loss_count_though_no_flush_came_between(redis: Redis) -> None:
    post = factories.post(view_count=BASE)
    view(post)
    flush()
    for _ in range(2):
        redis.flushdb()
        view(post)
        set_back(redis, 3600)
    flush()
    assert stored() == [BASE + 2]  # the view between the losses is lost


@pytest.mark.usefixtures("database")
def test_a_snapshot_of_an_emptied_redis_is_known_again_whatever_the_clock_says(
    redis: Redis,
) -> None:
    post = factories.post(view_count=BASE)
    view(post)
    flush()
    redis.flushdb()
    view(post)
    set_back(redis, 3600)
    snapshot = dump(redis)
    flush()
    redis.flushdb()
    view(post)
    flush()
    assert stored() == [BASE + 3]
    restore(redis, snapshot)  # two losses ago
    flush()
    assert stored() == [BASE + 3]


@pytest.mark.usefixtures("database")
def test_a_list_that_lost_its_epoch_adds_nothing_that_may_be_stored(redis: Redis) -> None:
    post, fresh = factories.post(view_count=BASE), factories.post(view_count=BASE)
    view(post)
    snapshot = dump(redis)
    flush()
    restore(redis, snapshot)
    redis.zremrangebyscore("views:unsettled", "+inf", "+inf")
    view(fresh)
    flush()
    assert stored() == [BASE + 1, BASE + 1]


@pytest.mark.usefixtures("database")
def test_pages_and_reports_show_no_view_twice_while_a_restored_redis_waits_for_a_flush(
    redis: Redis,
) -> None:
    post = factories.post()
    for number in range(10):
        click(post, f"before {number}")
        view(post)
    flush()
    redis.flushdb()
    for number in range(4):
        click(post, f"after {number}")
        view(post)
    snapshot = dump(redis)
    assert shown() == (14, 14, 14, 14)
    flush()
    restore(redis, snapshot)
    assert shown() == (14, 14, 14, 14)
    redis.zremrangebyscore("views:unsettled", "+inf", "+inf")
    assert shown() == (14, 14, 14, 14)
    flush()
    assert shown() == (14, 14, 14, 14)


@pytest.mark.parametrize(
    ("database", "lifts"),
    some([("default", True), ("lite", False)], deep=[("default", False), ("lite", True)]),
    indirect=["database"],
)
@pytest.mark.usefixtures("database")
def test_rows_that_do_not_carry_their_count_show_no_less_than_sql_while_a_restored_redis_waits_for_a_flush(
    redis: Redis, settings: Settings, *, lifts: bool
) -> None:
    settings.READTRACK = {"MODELS": {"site.Manual": {"counted": True}}}
    post, manual = factories.post(), Manual.objects.create(title="A")
    for _ in range(14):
        tracker.record(factories.hit(subject_of(post), subject_of(manual)))
    flush()
    snapshot = dump(redis)
    for _ in range(4):
        tracker.record(factories.hit(subject_of(post), subject_of(manual)))
    flush()
    restore(redis, snapshot)
    rows: list[Any] = [
        Post.objects.only("title").get(),
        Post.objects.defer("view_count").get(),
        manual,
    ]
    page = "{% load readtrack %}{% for row in rows %}{% view_count row exact %};{% endfor %}"
    if lifts:
        flush()
    assert list(reports.views(rows).values()) == [18, 18]
    assert Template(page).render(Context({"rows": rows})) == "18;18;18;"
    tracker.record(factories.hit(subject_of(post), subject_of(manual)))
    assert list(reports.views(rows).values()) == [18 + lifts] * 2


@pytest.mark.django_db(transaction=True)
def test_where_sql_cannot_be_asked_the_higher_count_is_shown(redis: Redis) -> None:
    post = factories.post(view_count=BASE)
    view(post)
    assert reports.views([post]) == {post: BASE + 1}

    async def view_in_a_loop() -> dict[Post, int]:
        return reports.views([post])

    assert asyncio.run(view_in_a_loop()) == {post: BASE}


@pytest.mark.usefixtures("database")
def test_a_new_post_takes_no_query_to_show(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    post = factories.post()
    view(post)
    with django_assert_num_queries(0):
        assert reports.views([post]) == {post: 1}


def shown() -> tuple[int, int, int, int]:
    """Returns what a page, the model's chart, a funnel and the site's chart show of the only post."""
    post = Post.objects.get()
    page = Template("{% load readtrack %}{% view_count post exact %}").render(
        Context({"post": post})
    )
    charts = [sum(point.views for point in numbers_reports.series(of)) for of in (Post, None)]
    assert reports.views([post]) == {post: int(page)}
    return int(page), charts[0], numbers_reports.funnel(post)[1].count, charts[1]


@pytest.mark.parametrize(
    ("database", "replaces", "expected"),
    some(
        [("default", True, [12, 12]), ("lite", False, [16, 12])],
        deep=[("default", False, [16, 12]), ("lite", True, [12, 12])],
    ),
    indirect=["database"],
)
@pytest.mark.usefixtures("database")
def test_keys_that_are_copied_into_a_redis_that_counts_are_not_added(
    redis: Redis, expected: list[int], *, replaces: bool
) -> None:
    posts = [factories.post(), factories.post()]
    for _ in range(12):
        view(posts[0])
        view(posts[1])
    flush()
    copied = dump(redis)
    redis.flushdb()
    for _ in range(4):
        view(posts[0])
    for key, value in copied.items():
        if replaces or not redis.exists(key):
            redis.restore(key, 0, value, replace=True)
    flush()
    assert stored() == expected
    assert list(reports.views(posts).values()) == expected


def set_back(redis: Redis, seconds: int) -> None:
    """Makes Redis's unsettled counters as old as if its clock were behind by that."""
    client: Any = redis
    for unsettled in map(keys.unsettled, keys.tags()):
        for name, time in client.zrange(unsettled, 0, -1, withscores=True):
            client.zadd(unsettled, {name: time - seconds * 1_000_000})


def known(origin: int) -> Epoch | None:
    """Returns what SQL knows of the list with that origin."""
    return SqlEpoch().known([Epoch(origin)]).get("")


def settle_and_die(post: Post) -> Epoch:
    """Settles the post's partition without telling SQL, as a flush does that is killed in between.

    Returns what it would have told.
    """
    [(names, epoch)] = counters.unsettled(
        until=server_time(patient=True), tags=[keys.tag(subject_of(post))]
    )
    bases = settling.stored_counters([*names], Faults())
    known = SqlEpoch().known([epoch]).get(epoch.tag)
    settled, present = scripts.run(counters.settle(bases, epoch=epoch, sql_epoch=known))
    assert settled == 1
    return present


def click(post: Post, visitor: str) -> None:
    assert tracker.step(post, "click", visitor=Visitor(visitor))


def stored() -> list[int]:
    return list(Post.objects.order_by("pk").values_list("view_count", flat=True))
