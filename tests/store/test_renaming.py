"""Keys follow the new name of a model or of an object: each view stays counted once."""

from collections import Counter
from contextlib import nullcontext
from threading import Event, Thread
from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, tracker
from readtrack.hits.visitors import Visitor
from readtrack.models import Reset
from readtrack.sql import deletions
from readtrack.sql import renaming as sql_renaming
from readtrack.store import (
    counters,
    keys,
    read_state,
    renaming,
    resetting,
    scripts,
    trending,
    uniques,
)
from readtrack.store.connection import server_time
from readtrack.store.counters import Total
from tests.support import factories
from tests.support.partitions import asked, slots_checked

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.one_server("chooses its own number of partitions, which a cluster may refuse"),
]

OLD = "site.post:7"
NEW = "site.article:7"
MODEL = renaming.Rename("site.post", "site.article")


@pytest.fixture(params=[1, pytest.param(16, marks=pytest.mark.needs_parts("cluster"))])
def partitions(request: pytest.FixtureRequest, settings: Settings) -> int:
    settings.READTRACK = {"CLUSTER": {"partitions": request.param}}
    read_state.begin(0)
    return int(request.param)


def record(subject: str, times: int = 1, **values: Any) -> None:
    for _ in range(times):
        assert tracker.record(factories.hit(subject, **values)).counted


def move(rename: renaming.Rename = MODEL) -> int:
    with renaming.turn():
        return renaming.move(rename)


def total(subject: str) -> Total | None:
    return asked(counters.totals, [subject]).get(subject)


def visitors(subject: str) -> int:
    return asked(uniques.visitors, [subject])[subject]


def settle(subject: str, views: int) -> None:
    """Gives an unsettled total the count that SQL has of it."""
    [[_, epoch]] = [
        answer
        for answer in counters.unsettled(until=2**53, tags=keys.tags())
        if answer[1].tag == keys.tag(subject)
    ]
    stored = {subject: counters.Stored({"": views})}
    scripts.run(counters.settle(stored, epoch=epoch, sql_epoch=None))


def names(redis: Redis) -> set[str]:
    return {keys.TAG.sub("", str(name)) for name in redis.keys("*")}


def unread(reader: int, subject: str) -> int:
    [call] = read_state.unread_calls(reader, [subject])
    return scripts.run(call)[subject]


def read(reader: int, subject: str) -> None:
    scripts.run_all(*read_state.marks(reader, [subject]))


def publish(subject: str, items: int = 1) -> None:
    scripts.run_all(*read_state.publish([read_state.Publication(subject, items)]))


@pytest.mark.parametrize("strategy", ["hll", "set", "daily", "bitmap"])
def test_every_key_of_a_model_follows(
    redis: Redis, settings: Settings, partitions: int, strategy: str
) -> None:
    settings.READTRACK = {
        "CLUSTER": {"partitions": partitions},
        "UNIQUE": strategy,
        "NUMBERS": {"funnels": True},
    }
    with slots_checked() if partitions > 1 else nullcontext():
        for number in range(3):
            record(OLD, dimensions=(("device", "phone"),), reader=number + 1)
        record("site.poster:7")  # of a model whose name begins alike
        read(1, OLD)
        before = names(redis)
        assert move() > 6
    expected = {name.replace(":site.post:", ":site.article:") for name in before}
    expected = {name.removesuffix(":site.post") for name in expected}
    after = {name.removesuffix(":site.article") for name in names(redis)}
    assert after == expected
    marked = [str(name) for tag in keys.tags() for name in redis.zrange(keys.unsettled(tag), 0, -1)]
    assert not [name for name in marked if "site.post:" in name or name.endswith("site.post")]
    assert total(NEW) == Total(3, is_settled=False)
    assert total("site.poster:7") == Total(1, is_settled=False)
    assert visitors(NEW) == 3
    assert unread(1, NEW) == 0
    assert unread(2, NEW) == 1


def test_a_visitor_who_comes_back_under_the_new_name_counts_once(partitions: int) -> None:
    hit = factories.hit(OLD)
    tracker.record(hit)
    move()
    assert tracker.record(hit._replace(views=(NEW,))).skipped == {NEW: "repeat"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("unsettled", "missing", Total(5, is_settled=False)),
        ("settled", "missing", Total(105)),
        ("unsettled", "unsettled", Total(5 + 3, is_settled=False)),
        ("settled", "unsettled", Total(105 + 3)),
        ("unsettled", "settled", Total(5 + 103)),
        # Both hold the 100 of SQL.
        ("settled", "settled", Total(105)),
    ],
)
def test_what_was_counted_under_both_names_is_counted_once(
    partitions: int, old: str, new: str, expected: Total
) -> None:
    record(OLD, 5)
    if old == "settled":
        settle(OLD, 100)
    if new != "missing":
        record(NEW, 3)
    if new == "settled":
        settle(NEW, 100)
    move()
    assert total(NEW) == expected
    assert total(OLD) is None
    assert visitors(NEW) == (5 if new == "missing" else 8)
    assert move() == 0
    assert total(NEW) == expected


@pytest.mark.needs_parts("numbers")
def test_the_hashes_and_hours_of_both_names_add_up(redis: Redis, partitions: int) -> None:
    from readtrack.numbers import hours_of_models, live_counters

    record(OLD, 2, dimensions=(("device", "phone"),))
    record(NEW, 1, dimensions=(("device", "phone"),))
    record(NEW, 1, dimensions=(("device", "tablet"),))
    move()
    found = scripts.run_all(*live_counters.hashes([NEW], ["views:device"]))[0]
    assert found["views:device", NEW].counts == {"phone": 3, "tablet": 1}
    at = buckets.now()
    hours = scripts.run_all(
        *hours_of_models.calls(["site.article", "site.post"], [buckets.hour_index(at)])
    )
    views: Counter[str] = Counter()
    for model, by_hour in hours_of_models.by_model(hours).items():
        views[keys.TAG.sub("", model)] += sum(count.views for count in by_hour.values())
    assert views == {"site.article": 4}


@pytest.mark.parametrize("command", [("SET", "rubbish"), ("LPUSH", "x"), ("SADD", "x")])
def test_what_others_wrote_stands_in_the_way_of_nothing(
    partitions: int, command: tuple[str, str]
) -> None:
    for number in range(7, 10):
        record(f"site.post:{number}", 2)
        read(1, f"site.post:{number}")
    record(NEW)
    for row in (keys.total, keys.read_bits):
        name, value = command
        scripts.run_all(
            scripts.Call("UNLINK", [row(OLD)]), scripts.Call(name, [row(OLD)], (value,))
        )
    move()
    for number in (8, 9):
        assert total(f"site.article:{number}") == Total(2, is_settled=False)
        assert unread(1, f"site.article:{number}") == 0
    assert total(NEW) == Total(1, is_settled=False)


def test_what_is_trending_goes_on_under_the_new_name(partitions: int) -> None:
    record(OLD, 3)
    at = buckets.now()
    trending.refresh_trending(at=at)
    record(NEW, 1)
    move()
    assert trending.top_subjects(5, at=at) == [(NEW, 4)]


def test_a_reset_is_known_under_the_new_name(redis: Redis, partitions: int) -> None:
    record(OLD, 3)
    time = scripts.run(resetting.reset([OLD]))
    move()
    assert resetting.noted_resets() == {NEW: time}


@pytest.mark.parametrize("form", ["bitmap", "sequence"])
def test_what_was_published_under_either_name_is_unread(
    settings: Settings, partitions: int, form: str
) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": partitions}, "DOTS": {"form": form}}
    numbers = form == "sequence"
    read(1, OLD)
    read(2, NEW)
    publish(NEW)
    move()
    assert unread(1, NEW) == 1
    read(1, NEW)
    publish(OLD, items=2)  # by a process with the old code
    move()
    assert unread(1, NEW) == (2 if numbers else 1)
    read(1, NEW)
    assert unread(1, NEW) == 0
    assert move() == 0
    assert unread(1, NEW) == 0


def test_a_page_from_before_a_publication_does_not_hide_it(partitions: int) -> None:
    began = server_time()
    publish(OLD)
    move()
    scripts.run_all(*read_state.marks(1, [NEW], as_of=began))
    assert unread(1, NEW) == 1


@pytest.mark.parametrize("form", ["bitmap", "sequence"])
def test_readers_of_the_old_name_have_read_the_new_one(
    settings: Settings, partitions: int, form: str
) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": partitions}, "DOTS": {"form": form}}
    publish(OLD)
    for reader in (1, 2, 70_000):
        read(reader, OLD)
    others = [f"site.post:{number}" for number in range(10, 20)]  # some change their partition
    for other in others:
        publish(other)
        read(5, other)
    publish("site.post:8")
    read(3, NEW)  # a page of the new code, before the keys have followed
    move()
    assert [unread(reader, NEW) for reader in (1, 2, 70_000)] == [0, 0, 0]
    assert unread(4, NEW) == 1
    assert unread(1, "site.article:8") == 1
    articles = [other.replace("post", "article") for other in others]
    assert [unread(5, article) for article in articles] == [0] * 10
    assert [unread(6, article) for article in articles] == [1] * 10


@pytest.mark.needs_parts("numbers")
def test_an_object_gets_a_new_key_and_others_keep_theirs(
    redis: Redis, settings: Settings, partitions: int
) -> None:
    settings.READTRACK |= {"NUMBERS": {"dimensions": ["device"]}}
    old, new = "site.page:hell", "site.page:hello%20w"
    record(old, 2, dimensions=(("device", "phone"),))
    record("site.page:hello", 1)
    read(1, old)
    assert move(renaming.Rename(old, new)) == 6
    assert total(new) == Total(2, is_settled=False)
    assert total("site.page:hello") == Total(1, is_settled=False)
    assert unread(1, new) == 0
    assert not [name for name in names(redis) if name.endswith(old) and "viewed" not in name]


@pytest.mark.needs_parts("cluster")
def test_a_process_that_dies_between_two_partitions_loses_nothing(
    redis: Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": 16}}
    read_state.begin(0)
    posts = [f"site.post:{number}" for number in range(1, 21)]
    for post in posts:
        record(post, 2)
        settle(post, 5)
        read(1, post)
    commands = 0
    run_all = scripts.run_all

    def dying(*calls: Any, **options: Any) -> Any:
        nonlocal commands
        commands += 1
        if commands == deadline:
            raise ConnectionError
        return run_all(*calls, **options)

    monkeypatch.setattr(scripts, "run_all", dying)
    deadline = 0
    ended = False
    while not ended:
        deadline += 7
        commands = 0
        try:
            renaming.move(MODEL)
            ended = True
        except ConnectionError:
            pass
    monkeypatch.undo()
    assert deadline > 30
    articles = [post.replace("post", "article") for post in posts]
    assert asked(counters.totals, articles) == dict.fromkeys(articles, Total(7))
    assert [unread(1, article) for article in articles] == [0] * 20
    assert not [name for name in names(redis) if name.startswith("moving")]


def test_one_process_at_a_time_moves_keys(redis: Redis) -> None:
    with renaming.turn():
        [name] = redis.keys("renaming*")
        assert 0 < redis.ttl(name) <= 60
        assert not scripts.run(
            scripts.Call("SET", [keys.renaming(keys.tags()[0])], ("x", "NX"), bool)
        )
    assert not redis.keys("renaming*")


def test_pages_that_count_under_either_name_meanwhile_lose_nothing(partitions: int) -> None:
    subjects = [f"site.{name}:{number}" for name in ("post", "article") for number in range(5)]
    stop = Event()
    counted: dict[str, Counter[str]] = {"a": Counter(), "b": Counter()}  # by thread

    def count_views(name: str) -> None:
        for number in range(10**6):
            hit = factories.hit(*subjects, visitor=Visitor(f"{name}{number}"))
            for subject in tracker.record(hit).counted:
                counted[name][subject.rpartition(":")[2]] += 1
            if stop.is_set():
                return

    writers = [Thread(target=count_views, args=(name,)) for name in counted]
    for writer in writers:
        writer.start()
    for _ in range(8):
        move()
    stop.set()
    for writer in writers:
        writer.join()
    move()
    articles = [f"site.article:{number}" for number in range(5)]
    totals = asked(counters.totals, articles)
    acknowledged = counted["a"] + counted["b"]
    assert {name.rpartition(":")[2]: one.views for name, one in totals.items()} == acknowledged
    assert min(acknowledged.values()) > 5


def test_what_was_noted_of_resets_and_deletions_follows(redis: Redis, partitions: int) -> None:
    redis.zadd(keys.purged(keys.tag(OLD)), {OLD: 5})
    deletions.note_times({OLD: 7}, is_deletion=True)
    deletions.note_times({"site.post:8": 9})
    move()
    sql_renaming.rename_model("site.post", "site.article", pks=[7, 8])
    assert redis.zscore(keys.purged(keys.tag(NEW)), NEW) == 5
    rows = Reset.objects.order_by("pk").values_list("subject", "redis_time", "is_deletion")
    assert [*rows] == [(NEW, 7, True), ("site.article:8", 9, False)]
