"""Several partitions: each is a small readtrack of its own, and no command has keys of two."""

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries, Settings
from redis import Redis

from readtrack import buckets, reports, tracker
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.models import KnownEpoch
from readtrack.sql.epochs import SqlEpoch
from readtrack.store import clock, counters, keys, scanning, scripts, uniques
from readtrack.store.counters import Epoch
from readtrack.store.uniques import UniquesError
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.counts import view
from tests.support.partitions import SlotError, servers, slots_checked

pytestmark = pytest.mark.django_db

COUNT = 16


@pytest.fixture(autouse=True)
def _partitions(settings: Settings, redis: Redis) -> Iterator[None]:
    settings.READTRACK = {"CLUSTER": {"partitions": COUNT}}
    clock.ask()
    with slots_checked():
        yield


@pytest.fixture
def posts() -> list[Post]:
    """Returns posts of several partitions."""
    made = [
        factories.post(pk=number, category=factories.category()) for number in range(1001, 1009)
    ]
    assert len({keys.tag(subject_of(post)) for post in made}) > 3
    return made


def test_tags_of_more_than_256_partitions_are_not_all_as_long(
    settings: Settings, posts: list[Post]
) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": 272}}
    posts += [
        factories.post(pk=pk)
        for pk in range(2001, 2201)
        if len(keys.tag(f"site.post:{pk}")) > len(":{rt00}")
    ]
    subjects = [subject_of(post) for post in posts]
    assert len({len(keys.tag(subject)) for subject in subjects}) == 2
    view(*posts)
    assert {*counters.scan()} == {*subjects}
    assert flush().written == len(posts)


def stored() -> list[int]:
    return list(Post.objects.order_by("pk").values_list("view_count", flat=True))


def test_a_command_with_keys_of_two_partitions_is_refused_in_tests(posts: list[Post]) -> None:
    with pytest.raises(SlotError):
        scripts.run(counters.sketches([subject_of(post) for post in posts]))


@pytest.mark.usefixtures("new_redis")
def test_every_key_of_a_hit_is_in_a_partition(posts: list[Post], redis: Redis) -> None:
    post = posts[0]
    view(post)
    tag = keys.tag(subject_of(post))
    found = [str(key) for client in servers(redis) for key in client.keys("*")]
    assert {key for key in found if keys.tag_in(key) != tag} <= {keys.rate("visitor1")} <= {*found}
    assert f"views:total{tag}:{subject_of(post)}" in found
    assert {keys.parse(key)[0] for key in found} >= {keys.total, keys.rate, keys.unsettled}


@pytest.mark.needs_parts("numbers")
def test_views_of_several_partitions_count_once_and_are_flushed(
    posts: list[Post], redis: Redis
) -> None:
    from readtrack.numbers import reports as numbers_reports
    from readtrack.numbers.models import History

    Post.objects.update(view_count=100)
    hit = factories.hit(*map(subject_of, posts))
    assert set(tracker.record(hit).counted) == set(hit.views)
    assert set(tracker.record(hit).skipped.values()) == {"repeat"}
    assert [*reports.views(Post.objects.order_by("pk")).values()] == [101] * 8  # unsettled
    assert flush().settled == 8 + len(
        {*map(keys.tag, hit.views)}
    )  # totals, and the hours of the model
    assert stored() == [101] * 8
    assert flush().written == 0
    view(*posts[:2])
    assert flush(only_changed=True).written == 2
    assert sum(point.views for point in numbers_reports.series(Post)) == 10
    assert History.objects.filter(subject__startswith="site.post:{").exists()


@pytest.mark.needs_parts("numbers")
def test_the_epochs_of_all_partitions_are_one_query(
    posts: list[Post], django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    from readtrack.numbers.flush import hours

    view(*posts)
    flush()
    with django_assert_max_num_queries(7):
        assert hours.store_hours(buckets.hour_index(buckets.now())) == {}


def test_what_sql_knows_of_another_list_of_a_partition_is_not_taken_for_its_present_one() -> None:
    one, two, *_ = keys.tags()
    for tag, origin, epoch in ((one, 1, 11), (two, 2, 22), (one, 2, 33)):
        KnownEpoch.objects.create(tag=tag, origin=origin, epoch=epoch)
    found = SqlEpoch().known([Epoch(1, tag=one), Epoch(2, tag=two)])
    assert {tag: epoch.current for tag, epoch in found.items()} == {one: 11, two: 22}


def test_a_partition_that_lost_its_data_goes_on_from_sql(posts: list[Post], redis: Redis) -> None:
    view(*posts)
    flush()
    tag = keys.tag(subject_of(posts[0]))
    redis.delete(*(key for key in map(str, redis.keys("*")) if keys.tag_in(key) == tag))
    view(*posts)
    flush()
    assert stored() == [2] * 8


@pytest.mark.needs_parts("script")
def test_a_visitor_has_one_rate_for_all_partitions(posts: list[Post], settings: Settings) -> None:
    from readtrack.script import robots

    settings.READTRACK = {"CLUSTER": {"partitions": COUNT}, "RATE": (3, 10)}
    visitor = Visitor("somebody")
    outcomes = [
        tracker.record(factories.hit(subject_of(post), visitor=visitor)) for post in posts[:4]
    ]
    assert [bool(outcome.counted) for outcome in outcomes] == [True] * 3 + [False]
    robots.mark_robots(["somebody", "other"])
    assert not tracker.step(posts[0], "click", visitor=visitor)
    assert tracker.step(posts[0], "click", visitor=Visitor("person"))


def test_what_a_script_tells_again_takes_nothing_of_the_rate(
    posts: list[Post], redis: Redis
) -> None:
    hit = factories.hit(*map(subject_of, posts), is_report=True)
    for _ in range(3):
        tracker.record(hit)
    assert redis.get(keys.rate(hit.visitor.id)) == "1"
    redis.delete(keys.rate(hit.visitor.id))
    assert scripts.run(scripts.Call("rate", [keys.rate(hit.visitor.id)], (-1, 10), int)) == 0


def test_dots_of_several_partitions_are_one_answer(posts: list[Post], settings: Settings) -> None:
    for overrides in ({}, {"DOTS": {"readers": "ordinal"}}):
        settings.READTRACK = {"CLUSTER": {"partitions": COUNT}, **overrides}
        user, categories = factories.user(), [post.category for post in posts if post.category]
        tracker.mark_unread(categories)
        as_of = reports.as_of()
        assert reports.unread(user, categories) == set(categories)
        tracker.mark_read(user, categories[:5], as_of=as_of + 10_000_000)
        assert len(reports.unread(user, categories)) == 8
        tracker.mark_read(user, categories[:5])
        assert reports.unread(user, categories) == set(categories[5:])
        assert tracker.erase(user.pk).bits == 5
        assert reports.unread(user, categories) == set(categories)


def test_trending_is_the_best_of_all_partitions(posts: list[Post]) -> None:
    for place, post in enumerate(posts):
        view(*[post] * (place + 1))
    tracker.refresh_trending()
    assert [(trend.obj, trend.views) for trend in reports.trending(3)] == [
        (posts[7], 8),
        (posts[6], 7),
        (posts[5], 6),
    ]


def test_a_reset_stays_a_reset(posts: list[Post]) -> None:
    view(*posts)
    flush()
    tracker.reset_views(posts[3])
    flush()
    assert stored() == [1, 1, 1, 0, 1, 1, 1, 1]
    assert {*scanning.subjects("site.post")} == {
        subject_of(post) for post in posts if post != posts[3]
    }


def test_lists_that_began_in_the_same_microsecond_have_epochs_of_their_own() -> None:
    first, second = (
        Epoch(7, current, tag=tag) for current, tag in ((1, ":{rt01}"), (2, ":{rt02}"))
    )
    assert SqlEpoch().advance([first, second])
    assert SqlEpoch().known([first, second]) == {":{rt01}": first, ":{rt02}": second}
    assert KnownEpoch.objects.count() == 2


@pytest.mark.needs_parts("numbers", "imports")
@pytest.mark.parametrize("loses", [False, True])
def test_an_import_that_is_killed_between_two_partitions_goes_on(
    posts: list[Post], redis: Redis, *, loses: bool, settings: Settings
) -> None:
    from readtrack.imports import ledger
    from readtrack.imports.ledger import Batch
    from readtrack.imports.models import Import
    from readtrack.numbers import reports as numbers_reports

    batch, at = Batch(), buckets.now()
    for post in posts:
        batch.add(subject_of(post), visitor="visitor", at=at)
    part = ledger.part_of(batch, at=at)
    record = Import.objects.create(source="log", intended=100, part=part.text)
    scripts.run_all(*ledger.intend("log", batch.views, before=0, after=100))
    first, *others = ledger.apply("log", part, before=0, after=100)
    assert scripts.run(first) == ledger.UNSETTLED
    flush()
    assert scripts.run(first) == ledger.APPLIED
    if loses:
        redis.delete(others[0].keys[0])
    assert ledger.resume(record) == (100, 100 if loses else 0)
    lacking = (
        sum(keys.tag(subject) == keys.tag_in(others[0].keys[0]) for subject in batch.views)
        if loses
        else 0
    )
    assert sum(stored()) == 8 - lacking
    assert sum(point.views for point in numbers_reports.series(Post)) == 8 - lacking
    assert ledger.resume(Import.objects.get()) == (100, 0)


@pytest.mark.needs_parts("numbers", "imports")
def test_without_history_an_import_needs_its_part_all_the_same(
    posts: list[Post], settings: Settings
) -> None:
    from readtrack.imports import ledger
    from readtrack.imports.ledger import Batch
    from readtrack.imports.models import Import
    from readtrack.numbers.models import History

    settings.READTRACK = {"CLUSTER": {"partitions": COUNT}, "NUMBERS": {"history": False}}
    batch: Any = Batch()
    for post in posts:
        batch.add(subject_of(post), visitor="visitor", at=buckets.now())
    ledger.add(Import.objects.create(source="log"), batch, position=1)
    assert (stored(), History.objects.count()) == ([1] * 8, 0)


@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize("strategy", ["hll", "set", "bitmap"])
def test_visitors_of_several_partitions_are_counted_together(
    posts: list[Post], strategy: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from readtrack.numbers import reports as numbers_reports

    settings.READTRACK = {"CLUSTER": {"partitions": COUNT}, "UNIQUE": strategy}
    everywhere = factories.hit(*map(subject_of, posts), reader=1)
    tracker.record(everywhere)
    for number, post in enumerate(posts, start=2):
        tracker.record(factories.hit(subject_of(post), reader=number))
    assert reports.visitors(posts) == dict.fromkeys(posts, 2)
    assert numbers_reports.visitors_together(posts) == 9
    assert numbers_reports.visitors(posts, days=2) == dict.fromkeys(posts, 2)
    assert numbers_reports.visitors_together(posts, days=2) == 9
    flush()
    assert numbers_reports.visitors_together(Post, days=2) == 9
    monkeypatch.setattr(uniques, "UNION_LIMIT", 10)
    if strategy == "set":
        with pytest.raises(UniquesError):
            numbers_reports.visitors_together(posts)


@pytest.mark.needs_parts("buffer")
def test_queued_views_are_sent_to_their_partitions(
    posts: list[Post], settings: Settings, redis: Redis
) -> None:
    from readtrack.buffer.queue import hit_buffer
    from tests.support import buffered

    settings.READTRACK = {
        "CLUSTER": {"partitions": COUNT},
        "BUFFER": {"seconds": 1},
        "RATE": (2, 10),
    }
    subjects = tuple(map(subject_of, posts))
    first = factories.hit(*subjects[:4])
    told = factories.hit(*subjects[4:], is_report=True)
    for hit in (first, first, told, told, told):
        assert hit_buffer.take(hit)
    buffered.send()
    flush()
    assert stored() == [1] * 8
    assert reports.skips()["repeat"] == 4
    assert [redis.get(keys.rate(hit.visitor.id)) for hit in (first, told)] == ["2", "1"]


@pytest.mark.needs_parts("numbers")
def test_a_dimension_that_leaves_the_settings_stops_no_flush_and_loses_nothing(
    settings: Settings, posts: list[Post]
) -> None:
    from readtrack.numbers import reports as numbers_reports

    def record() -> None:
        for post in posts:
            tracker.record(factories.hit(subject_of(post), dimensions=(("device", "phone"),)))

    with_devices = {
        "CLUSTER": {"partitions": COUNT},
        "NUMBERS": {"dimensions": ["readtrack.numbers.dimensions.device"]},
    }
    record()
    assert flush().written == len(posts)
    settings.READTRACK = with_devices
    record()
    assert flush().written == len(posts)
    assert numbers_reports.breakdown(posts, "device") == {"phone": 2 * len(posts)}
