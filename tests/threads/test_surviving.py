"""Read state by positions, after Redis has lost its data."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone
from pytest_django import Settings
from redis import Redis

from readtrack import renames, reports, scheduled, tracker
from readtrack.doctor.report import examine
from readtrack.flush import read_state as keeping
from readtrack.flush.run import flush
from readtrack.hits.readers import reader_by_id
from readtrack.models import PendingPublication
from readtrack.store import keys, read_state, scripts
from readtrack.store.read_state import Publication, copies
from readtrack.subjects import subject_of
from readtrack.threads import keys as threads_keys
from readtrack.threads import read_times, times
from readtrack.threads import reports as threads_reports
from readtrack.threads.models import ReadTimes
from readtrack.threads.options import threads_options
from readtrack.unread import starting
from tests.site.models import Board, Forum, Reply, Thread
from tests.support import factories, forum
from tests.support.asking import ask_again
from tests.support.interference import dump, restore

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "lite"]),
    pytest.mark.usefixtures("a_forum"),
]


@pytest.fixture
def boards() -> list[Board]:
    help_forum = Forum.objects.create(name="Help")
    return [Board.objects.create(forum=help_forum, name=name) for name in ("Django", "Redis")]


@pytest.fixture
def threads(boards: list[Board]) -> list[Thread]:
    """Three threads with two replies, two of them in the first board."""
    made = [Thread.objects.create(board=board) for board in (boards[0], boards[0], boards[1])]
    for thread in made * 2:
        Reply.objects.create(thread=thread)
    return made


def lose(redis: Redis) -> None:
    redis.flushdb()
    ask_again()


def unread(user: User, *objs: Any) -> list[bool]:
    unread_objs = reports.unread(user, objs)
    return [obj in unread_objs for obj in objs]


@pytest.mark.usefixtures("database")
def test_what_was_read_is_read_after_redis_lost_its_data(
    ann: User, bob: User, threads: list[Thread], redis: Redis
) -> None:
    tracker.mark_read(ann, threads[:2])
    last = Reply.objects.create(thread=threads[0])
    flush(only_changed=True)
    assert not PendingPublication.objects.exists()
    lose(redis)
    tracker.mark_read(bob, threads)  # nothing is marked
    tracker.mark_all_read(bob, Thread)
    assert unread(ann, *threads) == [False] * 3  # no dots while they are not known
    assert threads_reports.first_unread(ann, threads[0].replies) is None
    flush(only_changed=True)
    assert unread(ann, *threads) == [True, False, True]
    assert unread(bob, *threads) == [True] * 3
    assert reports.unread_counts(ann, threads)[threads[0]] == 1
    assert threads_reports.first_unread(ann, threads[0].replies) == last
    assert redis.ttl(times.short(threads_keys.thread_news(subject_of(threads[0])))) > 0


def test_boards_get_their_dots_back(
    ann: User, bob: User, boards: list[Board], threads: list[Thread], redis: Redis
) -> None:
    tracker.mark_read(ann, threads[:2])
    flush()
    lose(redis)
    flush()
    assert unread(ann, *boards, boards[0].forum) == [False, True, True]
    assert unread(bob, *boards, boards[0].forum) == [True, True, True]


def test_what_was_marked_as_a_whole_is_read(
    ann: User, bob: User, boards: list[Board], threads: list[Thread], redis: Redis
) -> None:
    tracker.mark_all_read(ann, Thread)
    tracker.mark_all_read(bob, Thread, within=boards[0])
    flush()
    lose(redis)
    flush()
    assert unread(ann, *threads, *boards) == [False] * 5
    assert unread(bob, *threads, *boards) == [False, False, True, False, True]


def test_a_start_as_read_is_not_forgotten(ann: User, threads: list[Thread], redis: Redis) -> None:
    starting.start_as_read(Thread)
    flush()
    lose(redis)
    flush()
    Reply.objects.create(thread=threads[0])
    assert unread(ann, *threads) == [True, False, False]


def test_news_that_sql_has_no_copy_of_lights_its_dot(
    ann: User, threads: list[Thread], redis: Redis
) -> None:
    tracker.mark_read(ann, threads)
    flush()
    Reply.objects.create(thread=threads[0])
    lose(redis)
    Reply.objects.create(thread=threads[1])  # waits
    assert PendingPublication.objects.filter(sent=None).count() == 1
    flush()
    assert unread(ann, *threads) == [True, True, False]
    flush()
    assert not PendingPublication.objects.exists()


def test_an_older_snapshot_is_brought_up_to_date(
    ann: User, bob: User, boards: list[Board], threads: list[Thread], redis: Redis
) -> None:
    tracker.mark_read(ann, threads)
    flush()
    snapshot = dump(redis)
    Reply.objects.create(thread=threads[0])
    threads[1].board = boards[1]
    threads[1].save()
    Reply.objects.create(thread=threads[1])
    tracker.mark_read(bob, threads)
    flush()
    restore(redis, snapshot)
    flush(only_changed=True)
    assert unread(ann, *threads) == [True, True, False]
    assert unread(bob, *threads) == [False] * 3
    tracker.mark_read(ann, threads[:1])
    assert unread(ann, *boards) == [False, True]


def test_what_a_snapshot_has_and_sql_lacks_is_copied(
    ann: User, threads: list[Thread], redis: Redis
) -> None:
    tracker.mark_read(ann, threads)
    flush()
    snapshot = dump(redis)
    flush()
    ReadTimes.objects.all().delete()
    restore(redis, snapshot)
    flush()
    lose(redis)
    flush()
    assert unread(ann, *threads) == [False] * 3
    assert unread(factories.user(), *threads) == [True] * 3


def test_a_redis_that_has_not_begun_shows_nothing_and_marks_nothing(
    ann: User, boards: list[Board], threads: list[Thread], redis: Redis
) -> None:
    flush()
    notes = {tag: redis.getdel(keys.reads_began(tag)) for tag in keys.tags()}
    assert unread(ann, *threads, *boards) == [False] * 5
    assert threads_reports.first_unread(ann, threads[0].replies) is None
    assert tracker.mark_subjects_read(ann.pk, [subject_of(threads[0]), subject_of(boards[1])]) == []
    tracker.mark_all_read(ann, Thread)
    Reply.objects.create(thread=threads[0])
    for tag, note in notes.items():
        redis.set(keys.reads_began(tag), str(note))
    assert unread(ann, *threads, *boards) == [True] * 5
    assert reports.unread_counts(ann, threads)[threads[0]] == 2


def test_news_that_a_replica_never_got_is_sent_again(
    ann: User, threads: list[Thread], redis: Redis
) -> None:
    tracker.mark_read(ann, threads)
    flush()
    snapshot = dump(redis)
    Reply.objects.create(thread=threads[0])
    restore(redis, snapshot)  # it knows of the last flush, so nothing else shows the loss
    assert unread(ann, threads[0]) == [False]
    scheduled.flush_changed()
    assert unread(ann, threads[0]) == [True]


def test_a_publication_that_was_sent_twice_leaves_the_outbox(threads: list[Thread]) -> None:
    flush()
    Reply.objects.create(thread=threads[0])
    PendingPublication.objects.update(sent=None)  # the process died before it noted that
    scheduled.flush_changed()
    scheduled.flush_changed()
    assert not PendingPublication.objects.exists()
    assert reports.unread_counts(factories.user(), threads)[threads[0]] == 3


def test_an_erased_reader_leaves_the_copies(
    ann: User, bob: User, threads: list[Thread], redis: Redis
) -> None:
    tracker.mark_read(ann, threads)
    tracker.mark_read(bob, threads)
    flush()
    # In Redis and in SQL a reader has one row of positions for each partition.
    expected = 2 * len({keys.tag(subject_of(thread)) for thread in threads})
    assert tracker.erase(ann.pk, is_dry_run=True).of_parts == expected
    assert tracker.erase(ann.pk).of_parts == expected
    assert tracker.erase(ann.pk).of_parts == 0
    lose(redis)
    flush()
    assert unread(ann, *threads) == [True] * 3
    assert unread(bob, *threads) == [False] * 3


def test_an_erased_reader_whom_a_flush_had_copied_leaves_the_copies_by_the_next_flush(
    ann: User, bob: User, threads: list[Thread], redis: Redis
) -> None:
    flush()
    tracker.mark_read(ann, threads)
    tracker.mark_read(bob, threads)
    copied_before = {
        tag: [*times.copies(tag, copies.oldest_changes(tag).of_parts)] for tag in keys.tags()
    }
    tracker.erase(ann.pk)
    for tag, portions in copied_before.items():
        for portion in portions:
            read_times.store(portion)
            copies.forget_keys(tag, {keys.prefix() + copy.name: copy.changed for copy in portion})
    flush(only_changed=True)
    assert tracker.erase(ann.pk).of_parts == 0
    lose(redis)
    flush()
    assert unread(ann, *threads) == [True] * 3
    assert unread(bob, *threads) == [False] * 3


def test_a_deleted_thread_leaves_the_copies(ann: User, threads: list[Thread], redis: Redis) -> None:
    flush()
    pk = threads[0].pk
    threads[0].delete()
    flush()
    lose(redis)
    flush()
    thread = Thread.objects.create(pk=pk)
    assert unread(ann, thread) == [False]


def test_the_copies_of_a_renamed_thread_follow(
    ann: User, threads: list[Thread], redis: Redis
) -> None:
    flush()
    old = subject_of(threads[0])
    renames.rename_subject(old, "site.thread:9000", using=None)
    flush()
    lose(redis)
    flush()
    assert unread(ann, Thread(pk=9000)) == [True]
    assert not ReadTimes.objects.filter(name__endswith=f":{old}").exists()


@pytest.mark.parametrize("is_of_model", [True, False])
@pytest.mark.parametrize("is_lost", [False, True])
def test_the_dots_and_marks_of_a_renamed_board_follow(
    is_of_model: bool, is_lost: bool, ann: User, bob: User, redis: Redis
) -> None:
    before, after = ("old.board", "site.board") if is_of_model else ("site.board:7", "site.board:8")
    old_board = "old.board:8" if is_of_model else before
    board = Board(pk=8)
    topics = [Thread.objects.create() for _ in range(20)]
    read_before, unread_since = topics[:10], topics[10:]

    def publish(threads: list[Thread]) -> None:
        news = [
            Publication(subject_of(topic), within=(old_board, "site.forum:1")) for topic in threads
        ]
        scripts.run_all(*read_state.publish(news))

    publish(read_before)
    forum.mark_all(reader_by_id(ann.pk), board=old_board)
    publish(unread_since[:1])
    flush()
    if is_of_model:
        renames.rename_model(before, after, pks=[], using=None)
    else:
        renames.rename_subject(before, after, using=None)
    if is_lost:
        lose(redis)
    scheduled.flush_views()
    assert unread(ann, *read_before, unread_since[0]) == [False] * 10 + [True]
    assert unread(bob, *read_before, board, Forum(pk=1)) == [True] * 12
    assert unread(ann, board) == [True]
    tracker.mark_read(ann, unread_since)
    assert unread(ann, board, Forum(pk=1)) == [False, False]
    for row in ReadTimes.objects.all():
        assert f"@{old_board}" not in read_times._times(row)
    assert list(redis.scan_iter(f"*{old_board}")) == []


@pytest.mark.parametrize("is_renamed", [False, True])
def test_what_moved_threads_have_is_the_same_after_a_loss(
    ann: User,
    boards: list[Board],
    threads: list[Thread],
    redis: Redis,
    *,
    is_renamed: bool,
) -> None:
    """The first thread was read by the mark of its board, the last one never."""
    tracker.mark_all_read(ann, Thread, within=boards[0])
    for thread, board in ((threads[0], boards[1]), (threads[2], boards[0])):
        thread.board = board
        thread.save()
    flush()
    if is_renamed:
        new = Board.objects.create(forum=boards[0].forum)
        Thread.objects.filter(board=boards[0]).update(board=new)
        renames.rename_subject(subject_of(boards[0]), subject_of(new), using=None)
        boards[0] = new
    lose(redis)
    scheduled.flush_views()
    assert unread(ann, *threads, *boards) == [False, False, True, True, False]
    tracker.mark_all_read(ann, Thread, within=boards[0])
    assert unread(ann, *threads, *boards) == [False] * 5


def test_the_copies_of_a_renamed_model_follow() -> None:
    name = f"positions{keys.tag('old.topic:1')}:old.topic:7"
    read_times.store([times.TimesCopy(name, {"1": 200, "@old.topic:1": 300})])
    news = times.short(threads_keys.thread_news("old.topic:1"))
    read_times.store([times.TimesCopy(news, {"old.topic:8": 200, "site.reply:1": 300})])
    read_times.rename("old.topic", "site.thread")
    copied = {row.name: read_times._times(row) for row in ReadTimes.objects.all()}
    new_news = times.short(threads_keys.thread_news("site.thread:1"))
    assert copied == {
        name.replace("old.topic", "site.thread"): {"1": 200, "@site.thread:1": 300},
        new_news: {"site.thread:8": 200, "site.reply:1": 300},
    }


def test_the_copies_follow_to_new_partitions(
    ann: User, threads: list[Thread], redis: Redis, settings: Settings
) -> None:
    tracker.mark_read(ann, threads[:2])
    flush()
    more = 16 if not keys.is_divided() else 64
    settings.READTRACK = {**settings.READTRACK, "CLUSTER": {"partitions": more}}
    call_command("readtrack", "repartition", verbosity=0)
    flush()
    lose(redis)
    flush()
    assert unread(ann, *threads) == [False, False, True]


def test_what_did_not_change_is_copied_once(
    ann: User, threads: list[Thread], django_assert_num_queries: Any
) -> None:
    tracker.mark_read(ann, threads)
    flush()
    for tag in keys.tags():
        assert copies.oldest_changes(tag) == ([], [])
    tracker.mark_read(ann, threads)
    tracker.resend()
    for tag in keys.tags():
        assert copies.oldest_changes(tag) == ([], [])


def test_a_flush_that_has_no_time_leaves_the_latest_changes_to_the_next_ones(
    ann: User, threads: list[Thread], monkeypatch: pytest.MonkeyPatch, redis: Redis
) -> None:
    flush()
    monkeypatch.setattr(keeping, "COPYING_SECONDS", 0)
    monkeypatch.setattr(copies, "CHANGES_AT_ONCE", 2)
    several = [factories.user() for _ in range(5)]
    for user in several:
        tracker.mark_read(user, threads)
    Reply.objects.create(thread=threads[2])
    tags = {keys.tag(subject_of(thread)) for thread in threads}

    def readers_in_sql() -> int:
        return (
            ReadTimes.objects.filter(name__startswith="positions")
            .exclude(name__startswith="positions:news")
            .count()
        )

    for expected in (2, 4, 5):
        flush(only_changed=True)
        assert readers_in_sql() == expected * len(tags)
        assert not PendingPublication.objects.exists()
    lose(redis)
    flush()
    for user in several:
        assert unread(user, *threads) == [False, False, True]


def test_a_change_during_a_copy_is_copied_by_the_next_flush(
    ann: User, threads: list[Thread]
) -> None:
    flush()
    tag = keys.tag(subject_of(threads[0]))
    tracker.mark_read(ann, threads[:1])
    [[copy]] = times.copies(tag, copies.oldest_changes(tag).of_parts)
    Reply.objects.create(thread=threads[0])
    tracker.mark_read(ann, threads[:1])
    copies.forget_keys(tag, {copy.name: copy.changed})
    assert copy.name in copies.oldest_changes(tag).of_parts


def test_of_two_copies_the_later_times_stay() -> None:
    name = "positions:site.thread:7"
    read_times.store([times.TimesCopy(name, {"*": 150, "1": 200, "2": 500})])
    read_times.store([times.TimesCopy(name, {"*": 300, "1": 400, "2": 450})])
    assert read_times._times(ReadTimes.objects.get()) == {"*": 300, "1": 400, "2": 500}
    read_times.store([times.TimesCopy(name, {"*": 450})])
    assert read_times._times(ReadTimes.objects.get()) == {"*": 450, "2": 500}


def test_an_archive_forgets_what_is_older_than_read_days(
    threads: list[Thread], redis: Redis
) -> None:
    flush()
    row = ReadTimes.objects.first()
    assert row is not None
    redis.delete(keys.prefix() + row.name)  # it has expired
    old = timezone.now() - timedelta(days=threads_options().days + 1)
    ReadTimes.objects.filter(pk=row.pk).update(stored=old)
    flush(must_archive=True)
    assert not ReadTimes.objects.filter(pk=row.pk).exists()
    assert ReadTimes.objects.exists()


def test_the_doctor_tells_of_lost_positions(ann: User, threads: list[Thread], redis: Redis) -> None:
    def level() -> str:
        [finding] = [each for each in examine() if each.name == "read state"]
        return finding.level

    flush()
    assert level() == "ok"
    lose(redis)
    assert level() == "error"
    flush()
    assert level() == "ok"


def test_a_redis_that_has_begun_takes_no_copies_and_one_that_has_not_gives_none(
    ann: User, threads: list[Thread], redis: Redis
) -> None:
    subject = subject_of(threads[0])
    tag = keys.tag(subject)
    key_name = threads_keys.thread_news(subject)
    [[copy]] = times.copies(tag, [key_name])
    redis.delete(key_name)
    assert copies.begin_restoring(tag) is None
    assert not times.restore(tag, [copy], restoration_id="any")
    assert not redis.exists(key_name)
    redis.flushdb()
    assert list(times.copies(tag, [key_name])) == []
    token = copies.begin_restoring(tag)
    assert token is not None
    assert times.restore(tag, [copy], restoration_id=token)
    assert redis.zcard(key_name) == len(copy.times)


def test_a_redis_that_somebody_else_restores_takes_nothing(
    threads: list[Thread], redis: Redis
) -> None:
    subject = subject_of(threads[0])
    tag = keys.tag(subject)
    [[copy]] = times.copies(tag, [threads_keys.thread_news(subject)])
    redis.flushdb()
    first, second = (copies.begin_restoring(tag) for _ in range(2))
    assert first is not None
    assert second is not None
    assert not times.restore(tag, [copy], restoration_id=first)
    assert not copies.restore_readers(tag, [], following=3, restoration_id=first)
    assert not copies.end_restoring(tag, first, at=1)
    assert times.restore(tag, [copy], restoration_id=second)
    assert copies.end_restoring(tag, second, at=1)
    assert read_state.not_begun([tag]) == []


def test_the_copy_of_a_thread_has_a_bounded_number_of_publications() -> None:
    name = times.short(threads_keys.thread_news("site.thread:1"))
    for start in (1000, 1080):
        publications = {f"site.reply:{number}": number for number in range(start, start + 100)}
        read_times.store([times.TimesCopy(name, {"@site.board:1": 1, **publications})])
    copied = read_times._times(ReadTimes.objects.get())
    assert len(copied) == 101
    assert min(time for time in copied.values() if time > 1) == 1080
