"""Read state by reader: positions of readers in threads, and the boards of threads."""

from collections import ChainMap
from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis

from readtrack import tracker
from readtrack.hits import readers
from readtrack.hits.readers import Reader
from readtrack.reports.page_state import page_state
from readtrack.store import connection, keys, read_state, scripts
from readtrack.store.channel import channel
from readtrack.store.read_state import Publication
from readtrack.threads import keys as threads_keys
from readtrack.threads.positions import LAST_BOARD
from tests.support import factories, forum
from tests.support.waiting import ENOUGH

pytestmark = pytest.mark.django_db

ONE, TWO = "site.thread:1", "site.thread:2"
BOARD, OTHER_BOARD, FORUM = "site.board:1", "site.board:2", "site.forum:1"
DAY = 86_400_000_000  # microseconds


@pytest.fixture(
    autouse=True,
    params=[{}, {"DOTS": {"readers": "ordinal"}}, {"CLUSTER": {"partitions": 16}}],
    ids=["by id", "by name", "16 partitions"],
)
def _forum(request: pytest.FixtureRequest, settings: Any) -> Iterator[None]:
    with forum.forum(settings, **request.param):
        yield


@pytest.fixture
def ann() -> Reader:
    return readers.reader_by_id(4)


@pytest.fixture
def bob() -> Reader:
    return readers.reader_by_id(5)


def unread(reader: Reader, *subjects: str) -> list[int]:
    numbers = page_state(dots=subjects, reader=reader).unread
    return [numbers[subject] for subject in subjects]


def read(reader: Reader, *subjects: str, as_of: int | None = None) -> set[str]:
    return {*tracker.mark_subjects_read(reader, subjects, as_of=as_of)}


def publish(*news: Publication) -> None:
    assert all(scripts.run_all(*read_state.publish(news)))


def reply(thread: str, number: int, **values: Any) -> Publication:
    return Publication(thread, post=f"site.reply:{number}", token=f"token{number}", **values)


def now() -> int:
    return connection.server_time()


def test_a_thread_without_publications_is_read(ann: Reader) -> None:
    assert unread(ann, ONE, TWO) == [0, 0]


def test_a_publication_is_unread_for_everybody_until_they_open_the_thread(
    ann: Reader, bob: Reader
) -> None:
    publish(reply(ONE, 1), reply(TWO, 2))
    assert unread(ann, ONE, TWO) == unread(bob, ONE, TWO) == [1, 1]
    assert read(ann, ONE) == {ONE}
    assert unread(ann, ONE, TWO) == [0, 1]
    assert unread(bob, ONE, TWO) == [1, 1]
    publish(reply(ONE, 3))
    assert unread(ann, ONE) == [1]


def test_publications_since_the_last_visit_are_counted_up_to_a_hundred(ann: Reader) -> None:
    publish(reply(ONE, 1))
    read(ann, ONE)
    for number in range(2, 101):
        publish(reply(ONE, number))
    assert unread(ann, ONE) == [99]
    publish(reply(ONE, 101))
    publish(reply(ONE, 102))
    assert unread(ann, ONE) == [100]


def test_what_is_published_after_a_page_began_stays_unread(ann: Reader) -> None:
    publish(reply(ONE, 1))
    began = now()
    publish(reply(ONE, 2))
    assert read(ann, ONE, as_of=began) == set()
    assert unread(ann, ONE) == [1]
    assert read(ann, ONE) == {ONE}
    assert unread(ann, ONE) == [0]


def test_a_page_that_began_in_the_very_moment_of_a_publication_did_not_show_it(
    ann: Reader,
) -> None:
    publish(reply(ONE, 1))
    published = scripts.run(forum.positions().last_published([ONE]))[ONE]
    assert now() - 1_000_000 < published <= now()
    assert read(ann, ONE, as_of=published) == set()
    assert unread(ann, ONE) == [1]
    assert read(ann, ONE, as_of=published + 1) == {ONE}


def test_a_position_never_falls(ann: Reader) -> None:
    publish(reply(ONE, 1))
    earlier = now()
    publish(reply(ONE, 2))
    read(ann, ONE)
    read(ann, ONE, as_of=earlier)
    assert unread(ann, ONE) == [0]
    forum.mark_all(ann)
    forum.mark_all(ann, as_of=earlier)
    assert unread(ann, ONE) == [0]


def test_a_time_of_a_page_in_the_future_marks_nothing(ann: Reader) -> None:
    publish(reply(ONE, 1))
    assert read(ann, ONE, as_of=now() + DAY) == set()
    forum.mark_all(ann, as_of=now() + DAY)
    assert unread(ann, ONE) == [1]


def test_a_publication_that_is_sent_again_changes_nothing(ann: Reader, bob: Reader) -> None:
    publish(reply(ONE, 1))
    read(ann, ONE)
    publish(reply(ONE, 1))
    assert unread(ann, ONE) == [0]
    assert unread(bob, ONE) == [1]


def test_a_post_that_is_published_again_is_new_once_more_and_counts_once(ann: Reader) -> None:
    publish(reply(ONE, 1))
    publish(reply(ONE, 1)._replace(token="another"))
    assert unread(ann, ONE) == [1]
    read(ann, ONE)
    publish(reply(ONE, 1)._replace(token="a third"))
    assert unread(ann, ONE) == [1]


def test_several_items_without_names_are_counted(ann: Reader) -> None:
    publish(Publication(ONE, items=3), Publication(TWO))
    publish(Publication(ONE))
    assert unread(ann, ONE, TWO) == [4, 1]


def test_an_author_who_had_read_all_gets_no_dot(ann: Reader, bob: Reader) -> None:
    publish(reply(ONE, 1))
    read(ann, ONE)
    publish(reply(ONE, 2, author=ann))
    assert unread(ann, ONE) == [0]
    assert unread(bob, ONE) == [2]
    publish(reply(ONE, 3, author=bob))
    assert unread(bob, ONE) == [3]


def test_an_author_with_something_unread_keeps_the_dot(ann: Reader, bob: Reader) -> None:
    publish(reply(ONE, 1, author=bob))
    assert unread(bob, ONE) == [0]
    publish(reply(ONE, 2, author=ann))
    assert unread(ann, ONE) == [2]


def test_an_authors_own_thread_is_read(ann: Reader, bob: Reader) -> None:
    publish(reply(ONE, 1, author=bob))
    publish(reply(ONE, 2, author=ann, is_own=True))
    assert unread(ann, ONE) == [0]


def test_all_is_read_by_one_position_whatever_is_unread(
    ann: Reader, bob: Reader, redis: Redis
) -> None:
    publish(*[reply(f"site.thread:{number}", number) for number in range(1, 30)])
    read(ann, ONE)
    forum.mark_all(ann)
    assert unread(ann, ONE, TWO, "site.thread:29") == [0, 0, 0]
    assert unread(bob, ONE, TWO) == [1, 1]
    for name in positions_of(redis, ann):
        assert [*redis.hgetall(name)] == ["*"]
    publish(reply(TWO, 31))
    assert unread(ann, ONE, TWO) == [0, 1]


def test_what_is_older_than_a_time_is_read(ann: Reader) -> None:
    publish(reply(ONE, 1))
    between = now()
    publish(reply(TWO, 2))
    forum.mark_all(ann, as_of=between)
    assert unread(ann, ONE, TWO) == [0, 1]


def test_a_board_is_read_by_one_position(ann: Reader) -> None:
    publish(reply(ONE, 1, within=(BOARD, FORUM)), reply(TWO, 2, within=(OTHER_BOARD, FORUM)))
    forum.mark_all(ann, board=BOARD)
    assert unread(ann, ONE, TWO, BOARD, OTHER_BOARD, FORUM) == [0, 1, 0, 1, 1]
    forum.mark_all(ann, board=FORUM)
    assert unread(ann, ONE, TWO, BOARD, OTHER_BOARD, FORUM) == [0, 0, 0, 0, 0]
    publish(reply(ONE, 3, within=(BOARD, FORUM)))
    assert unread(ann, ONE, TWO, BOARD, OTHER_BOARD, FORUM) == [1, 0, 1, 0, 1]


def test_marking_a_board_marks_its_threads(ann: Reader) -> None:
    publish(reply(ONE, 1, within=(BOARD,)), reply(TWO, 2, within=(OTHER_BOARD,)))
    assert tracker.mark_subjects_read(ann, [BOARD]) == [BOARD]
    assert unread(ann, ONE, TWO, BOARD, OTHER_BOARD) == [0, 1, 0, 1]


def test_a_board_has_a_dot_while_one_of_its_threads_is_unread(ann: Reader) -> None:
    threads = [f"site.thread:{number}" for number in range(1, 9)]
    publish(*[reply(thread, 1, within=(BOARD, FORUM)) for thread in threads])
    for thread in threads:
        assert unread(ann, BOARD, FORUM, OTHER_BOARD) == [1, 1, 0]
        read(ann, thread)
    assert unread(ann, BOARD, FORUM) == [0, 0]


def test_a_thread_that_moves_takes_its_dot_to_its_new_board(ann: Reader) -> None:
    publish(reply(ONE, 1, within=(BOARD,)))
    scripts.run(forum.positions().place(ONE, [OTHER_BOARD]))
    assert unread(ann, BOARD, OTHER_BOARD) == [0, 1]
    forum.mark_all(ann, board=BOARD)
    assert unread(ann, ONE, OTHER_BOARD) == [1, 1]
    scripts.run(forum.positions().place(TWO, [OTHER_BOARD]))
    assert unread(ann, TWO) == [0]


def test_a_board_has_no_dot_for_a_thread_that_is_gone_or_whose_post_is(ann: Reader) -> None:
    publish(reply(ONE, 1, within=(BOARD,)), reply(TWO, 2, within=(OTHER_BOARD,)))
    read_state.remove(ONE)
    scripts.run_all(*read_state.unpublish([TWO], post="site.reply:2", token_start=""))
    assert unread(ann, ONE, TWO, BOARD, OTHER_BOARD) == [0, 0, 0, 0]


def test_a_list_of_a_board_and_the_publications_of_a_thread_are_bounded(redis: Redis) -> None:
    for start in range(0, 300, 50):
        numbers = range(start, start + 50)
        publish(*[reply(f"site.thread:{number}", 1, within=(BOARD,)) for number in numbers])
        publish(*[reply(ONE, 1_000 + number, within=(BOARD, FORUM)) for number in numbers])
    for name in raw_keys(redis, "positions:board*"):
        assert redis.zcard(name) <= 100
    [news] = raw_keys(redis, "positions:news*:site.thread:1")
    assert redis.zcard(news) == 100 + len([BOARD, FORUM])


def test_a_reader_has_a_bounded_number_of_positions(ann: Reader, redis: Redis) -> None:
    threads = factories.subjects("site.thread", 700)
    for portion in scripts.sliced(threads, 100):
        publish(*[reply(thread, 1) for thread in portion])
    for thread in threads:
        read(ann, thread)
    [name] = positions_of(redis, ann)
    assert redis.hlen(name) <= 500
    assert int(str(redis.memory_usage(name, samples=0))) < 12_000  # a large hash takes 40 kB
    assert set(unread(ann, *threads)) == {0}
    publish(reply(threads[0], 2), reply(threads[-1], 2))
    assert unread(ann, threads[0], threads[1], threads[-1]) == [1, 0, 1]


def test_a_full_hash_takes_what_is_older_for_read(ann: Reader, redis: Redis) -> None:
    threads = factories.subjects("site.thread", 600)
    publish(*[reply(thread, 1) for thread in threads])
    old, *others = threads
    for thread in others:
        read(ann, thread)
    assert unread(ann, old) == [0]


def test_everybody_starts_as_read_by_one_write(ann: Reader, bob: Reader) -> None:
    publish(reply(ONE, 1))
    as_of = now()
    publish(reply(TWO, 2))
    scripts.run_all(*forum.positions().mark_all_for_everybody(as_of=as_of))
    assert unread(ann, ONE, TWO) == unread(bob, ONE, TWO) == [0, 1]


def test_what_is_older_than_read_days_is_read(ann: Reader, settings: Any, redis: Redis) -> None:
    publish(reply(ONE, 1, within=(BOARD,)))
    [news] = raw_keys(redis, "positions:news*")
    redis.zadd(news, {"site.reply:1": now() - 91 * DAY})
    assert unread(ann, ONE, BOARD) == [0, 0]
    publish(reply(ONE, 2, within=(BOARD,)))
    assert unread(ann, ONE, BOARD) == [1, 1]
    assert redis.zrange(news, 0, -1) == ["@site.board:1", "site.reply:2"]


def test_all_keys_expire_after_read_days(ann: Reader, redis: Redis) -> None:
    publish(reply(ONE, 1, within=(BOARD,), author=ann))
    read(ann, ONE)
    forum.mark_all(ann)
    scripts.run_all(*forum.positions().mark_all_for_everybody(as_of=now()))
    names = raw_keys(redis, "positions:*")
    assert len({keys.parse(name)[0] for name in names}) == 4
    for name in names:
        assert 89 * 86_400 < redis.ttl(name) <= 90 * 86_400


def age(client: Any, *, days: int) -> None:
    """Moves all positions and publications that far into the past, as if nothing had happened since."""
    for name in raw_keys(client, "positions:*"):
        if client.type(name) == "hash":
            for field, time in client.hgetall(name).items():
                client.hset(name, field, int(time) - days * DAY)
        else:
            for member, time in client.zrange(name, 0, -1, withscores=True):
                if time > LAST_BOARD:
                    client.zincrby(name, -days * DAY, member)


@pytest.mark.parametrize(("days", "is_missed"), [(89, True), (90, False)])
def test_a_reader_whose_positions_ended_needs_none_of_them(
    ann: Reader, redis: Redis, days: int, is_missed: bool
) -> None:
    """They end `days` after the last visit; so idle readers are not brought back from SQL."""
    third = "site.thread:3"
    publish(reply(ONE, 1, within=(BOARD,)), reply(TWO, 1), reply(third, 1))
    read(ann, ONE, TWO)
    forum.mark_all(ann, board=BOARD)
    publish(reply(TWO, 2))
    age(redis, days=days)
    publish(reply(third, 2))
    before = unread(ann, ONE, TWO, third, BOARD)
    for name in positions_of(redis, ann):
        redis.unlink(name)
    assert (unread(ann, ONE, TWO, third, BOARD) != before) == is_missed


def test_a_thread_with_nothing_new_gets_no_position(ann: Reader, redis: Redis) -> None:
    assert read(ann, ONE) == {ONE}
    assert raw_keys(redis, "positions:*") == []


def test_an_anonymous_reader_has_no_dots_and_no_positions(settings: Any, redis: Redis) -> None:
    settings.READTRACK = {
        **settings.READTRACK,
        "DOTS": {**settings.READTRACK.get("DOTS", {}), "anonymous": 1_000_000},
    }
    reader = f"{readers.ANONYMOUS}visitor"
    publish(reply(ONE, 1, within=(BOARD,)))
    assert unread(reader, ONE, BOARD) == [0, 0]
    assert read(reader, ONE, BOARD) == set()
    assert positions_of(redis, reader) == []


def test_a_publication_removes_the_state_of_other_forms(settings: Any, redis: Redis) -> None:
    options = settings.READTRACK
    for form in ("bitmap", "sequence"):
        settings.READTRACK = {
            **options,
            "MODELS": {},
            "DOTS": {**options.get("DOTS", {}), "form": form},
        }
        read_state.begin(0)
        read(readers.reader_by_id(4), ONE)
    assert raw_keys(redis, "category:*")
    settings.READTRACK = options
    publish(Publication(ONE))
    assert raw_keys(redis, "category:*") == []


def test_each_model_has_its_own_form(settings: Any, ann: Reader) -> None:
    settings.READTRACK = {
        **settings.READTRACK,
        "MODELS": {
            "site.Thread": {"read_state": "positions"},
            "site.Board": {"read_state": "sequence"},
            "site.Category": {"read_state": "bitmap"},
            "site.Manual": {"read_state": True},
        },
    }
    subjects = ["site.thread:1", "site.board:1", "site.category:1", "site.manual:1"]
    names = [read_state.form_of(subject).name for subject in subjects]
    assert names == ["positions", "sequence", "bitmap", "bitmap"]
    read_state.begin(0)
    publish(*[Publication(subject, items=2) for subject in subjects])
    assert unread(ann, *subjects) == [2, 2, 1, 1]
    assert read(ann, *subjects) == {*subjects}
    assert unread(ann, *subjects) == [0, 0, 0, 0]


def test_fifty_dots_take_one_trip(ann: Reader, settings: Any, redis: Redis) -> None:
    threads = [f"site.thread:{number}" for number in range(50)]
    publish(*[reply(thread, 1) for thread in threads])
    assert unread(ann, *threads) == [1] * 50
    calls = read_state.unread_calls(ann, threads)
    assert len(calls) == min(50, len({keys.tag(thread) for thread in threads}))
    assert set(ChainMap(*scripts.run_all(*calls)).values()) == {1}


def raw_keys(redis: Redis, pattern: str) -> list[str]:
    """Returns the names of keys as they are, with the tags of partitions."""
    return sorted(redis.scan_iter(match=pattern))


def positions_of(redis: Redis, reader: Reader) -> list[str]:
    """Returns the keys of the reader's positions."""
    names = raw_keys(redis, f"positions*:site.thread:{read_state.field(reader)}")
    return [name for name in names if keys.parse(name)[0] is threads_keys.positions]


def test_the_last_publications_of_threads_are_known() -> None:
    publish(reply(ONE, 1))
    first = ChainMap(*scripts.run_all(*read_state.last_published([ONE, TWO])))
    assert [*first] == [ONE]
    publish(reply(ONE, 2))
    [second] = scripts.run_all(*read_state.last_published([ONE]))
    assert second[ONE] > first[ONE]


@pytest.mark.needs_parts("live")
def test_an_event_tells_of_a_publication_once(settings: Any) -> None:
    from readtrack.live import subscription as events

    settings.READTRACK = {**settings.READTRACK, "LIVE": {"events": "/readtrack/events/"}}
    with connection.connect(patient=True).pubsub() as subscription:  # type: ignore[no-untyped-call]
        subscription.subscribe(channel())
        times = []
        for number in (1, 1, 2):  # the first is sent again, which changes nothing
            publish(reply(ONE, number))
            [call] = read_state.last_published([ONE])
            times.append(scripts.run(call)[ONE])
        expected = [events.Publication("", ONE, time) for time in times[1:]]
        told: list[events.Publication | None] = []
        while len(told) < len(expected):
            message = subscription.get_message(timeout=ENOUGH)
            assert message is not None
            if message["type"] == "message":
                told.append(events.parse(message["data"].decode()))
    assert times[0] == times[1]
    assert told == expected
