"""A change of the number of partitions on a site in use: nothing is lost, and nothing counts twice."""

import os
import subprocess
import sys
from contextlib import ExitStack
from itertools import count
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, reports, tracker
from readtrack.cluster.dividing import divided_as_before
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.models import FlushRun
from readtrack.store import clock, keys, read_state, resetting, trending
from readtrack.store.flush_notes import LayoutError
from readtrack.subjects import subject_of
from tests.site.models import Post
from tests.support import factories
from tests.support.counts import view
from tests.support.depth import DEEP, some
from tests.support.interference import dump
from tests.support.waiting import comes_true

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.one_server("begins without partitions, which a cluster refuses"),
]

WRITER = """
import sys
from threading import Event, Thread
import django
django.setup()
from readtrack import tracker
from readtrack.hits.visitors import Visitor
from tests.support import factories
stop, counted, name, subjects = Event(), 0, sys.argv[1], sys.argv[2:]
Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
for number in range(10**6):
    hit = factories.hit(*subjects, visitor=Visitor(f"{name}-{number}"))
    counted += len(tracker.record(hit).counted)
    if stop.wait(0.01):  # or four writers leave a small machine no time for what they disturb
        break
print(counted)
"""


WRITERS = 2 if DEEP else 1  # of each number, each of which takes a second to start


@pytest.fixture(autouse=True)
def _plain_client(redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": 1}}
    read_state.begin(0)
    clock.ask()


@pytest.fixture
def posts() -> list[Post]:
    return [factories.post(category=factories.category()) for _ in range(8)]


def change(settings: Settings, partitions: int, **others: object) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": partitions}, **others}


def stored() -> list[int]:
    return [*Post.objects.order_by("pk").values_list("view_count", flat=True)]


@pytest.mark.needs_parts("numbers")
@pytest.mark.django_db(transaction=True)
def test_with_writers_of_both_numbers_each_view_is_stored_once(
    posts: list[Post], settings: Settings, redis: Redis, redis_url: str
) -> None:
    from readtrack.numbers import reports as numbers_reports

    names = count()
    subjects = [subject_of(post) for post in posts]

    def writer(partitions: int) -> "subprocess.Popen[str]":
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "READTRACK_TEST_PARTITIONS": str(partitions),
            "READTRACK_TEST_REDIS_URL": redis_url,
        }
        command = [sys.executable, "-c", WRITER, f"writer{next(names)}", *subjects]
        pipe = subprocess.PIPE
        return stack.enter_context(
            subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)
        )

    def counted(*writers: "subprocess.Popen[str]") -> int:
        return sum(int(one.communicate()[0]) for one in writers)

    with ExitStack() as stack:
        old = [writer(1) for _ in range(WRITERS)]
        assert comes_true(lambda: bool(redis.exists(f"views:total:{subjects[0]}")))
        flush()
        change(settings, 16)
        new = [writer(16) for _ in range(WRITERS)]
        assert comes_true(lambda: bool(redis.exists(keys.total(subjects[0]))))
        with pytest.raises(LayoutError, match="readtrack repartition"):
            flush()
        with divided_as_before(1):
            assert flush(only_changed=True).written == 8
        acknowledged = counted(*old)
        call_command("readtrack", "repartition", verbosity=0)
        flush()
        assert flush(only_changed=True).error == ""
        acknowledged += counted(*new)
    flush()
    assert sum(stored()) == acknowledged
    assert sum(point.views for point in numbers_reports.series(Post)) == acknowledged
    assert sum(reports.visitors(posts).values()) == pytest.approx(acknowledged, rel=0.05)


@pytest.mark.needs_parts("script")
@pytest.mark.needs_parts("numbers")
@pytest.mark.parametrize(
    "overrides",
    some(
        [
            {},
            {
                "DOTS": {"readers": "ordinal"},
                "UNIQUE": "set",
                "NUMBERS": {"dimensions": ["device"]},
            },
        ],
        deep=[
            {"DOTS": {"readers": "ordinal"}},
            {"UNIQUE": "set"},
            {"NUMBERS": {"dimensions": ["device"]}},
        ],
    ),
)
def test_what_sql_does_not_store_moves(
    posts: list[Post], overrides: dict[str, object], settings: Settings, redis: Redis
) -> None:
    from readtrack.numbers import reports as numbers_reports
    from readtrack.script import robots

    change(settings, 1, **overrides)
    categories, user = [post.category for post in posts if post.category], factories.user()
    visitor = Visitor("somebody")
    hit = factories.hit(*map(subject_of, posts), visitor=visitor)._replace(
        dimensions=(("device", "phone"),)
    )
    assert len(tracker.record(hit).counted) == 8
    view(*posts)
    tracker.mark_unread(categories)
    tracker.mark_read(user, categories[:3])
    robots.mark_robots(["robot"])
    flush()
    view(posts[0])
    for before, after in ((1, 16), (16, 64)):
        change(settings, after, **overrides)
        call_command("readtrack", "repartition", verbosity=1)
        assert stored() == [3] + [2] * 7
        assert set(tracker.record(hit).skipped.values()) == {"repeat"}, before
        robot = factories.hit(subject_of(posts[0]), visitor=Visitor("robot"))
        assert set(tracker.record(robot).skipped.values()) == {"honeypot"}
        assert reports.unread(user, categories) == set(categories[3:])
        assert [*reports.views(Post.objects.order_by("pk")).values()] == [3] + [2] * 7
        assert [*reports.visitors(Post.objects.order_by("pk")).values()] == [3] + [2] * 7
        assert sum(point.views for point in numbers_reports.series(Post)) == 17
        if overrides.get("NUMBERS"):
            assert numbers_reports.breakdown(posts[0], "device") == {"phone": 1}
        assert {keys.tag_in(key) for key in redis.scan_iter(keys.matching("views:total:*"))} <= {
            *keys.tags()
        }
    view(*posts)
    flush()
    assert stored() == [4] + [3] * 7
    assert [*reports.visitors(Post.objects.order_by("pk")).values()] == [4] + [3] * 7
    assert sum(point.views for point in numbers_reports.series(Post)) == 25


def test_a_key_in_its_new_place_stays_as_it_is(
    posts: list[Post], settings: Settings, redis: Redis
) -> None:
    category, user = posts[0].category, factories.user()
    assert category
    tracker.mark_read(user, [category])
    redis.set("skip me", 1)
    flush()
    change(settings, 16)
    other = factories.user()
    read_state.begin(0)
    tracker.mark_read(other, [category])
    call_command("readtrack", "repartition", verbosity=0)
    assert (reports.unread(other, [category]), reports.unread(user, [category])) == (
        set(),
        {category},
    )
    assert redis.get("skip me") == "1"


SEVERAL = 20  # categories, so that they are in most of the partitions


@pytest.mark.parametrize(
    "overrides",
    some(
        [{}, {"DOTS": {"form": "sequence"}}, {"DOTS": {"readers": "ordinal"}}],
        deep=[{"DOTS": {"form": "sequence", "readers": "ordinal"}}],
    ),
)
@pytest.mark.parametrize("has_marks", [False, True])
def test_what_a_process_of_either_number_publishes_last_is_unread(
    overrides: dict[str, object], has_marks: bool, settings: Settings
) -> None:
    change(settings, 1, **overrides)
    categories = [factories.category() for _ in range(SEVERAL)]
    early, late = factories.user(), factories.user()
    flush()
    tracker.mark_unread(categories)
    tracker.mark_read(early, categories)
    change(settings, 16, **overrides)
    if has_marks:
        tracker.mark_read(late, categories)
    tracker.mark_unread(categories[:10])  # by a process of the new number
    with divided_as_before(1):
        tracker.mark_unread(categories[10:])  # by one of the old number
    call_command("readtrack", "repartition", verbosity=0)
    assert reports.unread(early, categories) == {*categories}
    assert reports.unread(late, categories) == {*categories}


@pytest.mark.parametrize("overrides", some([{}], deep=[{"DOTS": {"form": "sequence"}}]))
def test_of_two_publications_the_last_one_decides_who_has_read(
    overrides: dict[str, object], settings: Settings
) -> None:
    change(settings, 1, **overrides)
    categories = [factories.category() for _ in range(SEVERAL)]
    old_reader, new_reader = factories.user(), factories.user()
    flush()
    change(settings, 16, **overrides)
    ended_new = {*categories[:10]}
    tracker.mark_unread(categories)
    tracker.mark_read(new_reader, categories)
    with divided_as_before(1):
        tracker.mark_unread(categories)
        tracker.mark_read(old_reader, categories)
    tracker.mark_unread(ended_new)
    tracker.mark_read(new_reader, ended_new)
    call_command("readtrack", "repartition", verbosity=0)
    assert reports.unread(old_reader, categories) == ended_new
    assert reports.unread(new_reader, categories) == {*categories} - ended_new


def test_marks_of_both_numbers_without_news_between_them_leave_dots_of_one(
    settings: Settings,
) -> None:
    change(settings, 1)
    categories = [factories.category() for _ in range(SEVERAL)]
    early, late = factories.user(), factories.user()
    flush()
    tracker.mark_unread(categories)
    tracker.mark_read(early, categories)
    change(settings, 16)
    read_state.begin(reports.as_of())
    tracker.mark_read(late, categories[:10])
    call_command("readtrack", "repartition", verbosity=0)
    assert reports.unread(late, categories[:10]) == set()
    assert reports.unread(early, categories) == {*categories[:10]}


def test_a_second_move_keeps_what_was_published_after_the_first(
    settings: Settings, redis: Redis
) -> None:
    change(settings, 1)
    categories = [factories.category() for _ in range(SEVERAL)]
    user = factories.user()
    flush()
    tracker.mark_read(user, categories)
    snapshot = dump(redis)
    change(settings, 16)
    call_command("readtrack", "repartition", verbosity=0)
    tracker.mark_unread(categories)
    client = Redis(connection_pool=redis.connection_pool)
    for key, value in snapshot.items():  # a kill before the old keys were removed
        client.restore(key, 0, value, replace=True)
    call_command("readtrack", "repartition", verbosity=0)
    assert reports.unread(user, categories) == {*categories}


@pytest.fixture
def moved(settings: Settings) -> list[Post]:
    """Returns a post that stays in its partition when 16 become 64, and one that leaves it, with
    two views each.
    """
    change(settings, 16)
    posts = [factories.post(pk=3006), factories.post(pk=3007)]
    for post in posts:
        view(post)
        tracker.reset_views(post)
        view(post, post)
    flush()
    trending.refresh_trending()
    before = [keys.tag(subject_of(post)) for post in posts]
    change(settings, 64)
    assert [keys.tag(subject_of(post)) == tag for post, tag in zip(posts, before, strict=True)] == [
        True,
        False,
    ]
    call_command("readtrack", "repartition", verbosity=0)
    return posts


def test_a_reset_ends_after_its_subject_has_moved(moved: list[Post], redis: Redis) -> None:
    flush()
    subjects = [subject_of(post) for post in moved]
    assert sorted(resetting.noted_resets()) == subjects
    client: Any = redis
    for key in client.scan_iter("views:reset*"):
        client.zadd(key, dict.fromkeys(client.zrange(key, 0, -1), 1))  # a day later
    flush()
    assert resetting.noted_resets() == {}
    redis.unlink(*map(keys.total, subjects))  # idle
    flush()
    assert stored() == [2, 2]


def test_a_post_that_has_moved_is_trending_once(moved: list[Post]) -> None:
    stays, leaves = map(subject_of, moved)
    view(moved[1])
    assert sorted(trending.top_subjects(9, at=buckets.now())) == [(stays, 2), (leaves, 3)]


def test_nobody_is_given_what_another_reader_has_read(settings: Settings) -> None:
    change(settings, 1, DOTS={"readers": "ordinal"})
    flush()
    categories = [factories.category(pk=pk) for pk in (3001, 3029, 3002)]
    first, second = factories.user(), factories.user()
    tracker.mark_read(first, categories)
    change(settings, 16, DOTS={"readers": "ordinal"})
    tags = [keys.tag(subject_of(category)) for category in categories]
    assert tags[0] == tags[1] != tags[2]
    read_state.begin(0)
    tracker.mark_read(second, categories[:1])
    call_command("readtrack", "repartition", verbosity=0)
    assert reports.unread(second, categories) == {*categories[1:]}
    assert reports.unread(first, categories) == {*categories[:2]}


@pytest.mark.parametrize("pk", [2373, 2376])  # in partitions 15 and 0
def test_after_a_kill_what_is_read_moves_with_the_readers_that_moved_before(
    settings: Settings, redis: Redis, pk: int
) -> None:
    change(settings, 1, DOTS={"readers": "ordinal"})
    flush()
    category, user = factories.category(pk=pk), factories.user()
    tracker.mark_read(user, [category])
    snapshot = dump(redis)
    change(settings, 16, DOTS={"readers": "ordinal"})
    call_command("readtrack", "repartition", verbosity=0)
    client = Redis(connection_pool=redis.connection_pool)
    client.delete(keys.ordinal_read_bits(subject_of(category)))
    for key, value in snapshot.items():
        client.restore(key, 0, value, replace=True)
    others = (factories.category() for _ in range(50))
    tag = keys.tag(
        subject_of(category)
    )  # where a new process has numbered a reader, what was read is lost
    tracker.mark_read(
        factories.user(), [next(one for one in others if keys.tag(subject_of(one)) != tag)]
    )
    call_command("readtrack", "repartition", verbosity=0)
    assert reports.unread(user, [category]) == set()


def test_to_move_again_moves_nothing(posts: list[Post], settings: Settings, redis: Redis) -> None:
    call_command("readtrack", "repartition", verbosity=0)
    view(*posts)
    flush()
    change(settings, 16)
    for _ in range(2):
        call_command("readtrack", "repartition", verbosity=0)
    flush()
    assert (stored(), FlushRun.objects.filter(error="").count()) == ([1] * 8, 3)


def test_the_doctor_and_the_command_say_that_keys_wait_to_be_moved(
    posts: list[Post], settings: Settings
) -> None:
    flush()
    change(settings, 16)
    with pytest.raises(CommandError, match="readtrack repartition"):
        call_command("readtrack", "flush")
    assert "readtrack repartition" in FlushRun.objects.latest("pk").error


def test_only_a_multiple_will_do(settings: Settings) -> None:
    change(settings, 16)
    flush()
    change(settings, 24)
    with pytest.raises(CommandError, match="partitions in Redis is 16"):
        call_command("readtrack", "repartition")
